package live

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weir/internal/events"
	"weir/internal/store"
)

// holding is a shard that is ours: its lease, its spool, and who fills it.
type holding struct {
	*Reader
	place
	tenure int64
	before string // who had it
	beatAt atomic.Pointer[time.Time]
	spool  *spool
	behind atomic.Pointer[time.Time] // time of the last record read, zero when there were no more

	said string // the last gap, where it is

	leaving bool // it is being given up; Reader.mu guards it
	cancel  context.CancelFunc
	join    func() // waits until it is not filled any more
}

func (h *holding) beaten(at time.Time) { h.beatAt.Store(&at) }

// lapsed reports whether the lease may be somebody else's by now.
func (h *holding) lapsed() bool { return h.since(*h.beatAt.Load()) >= h.opts.Lease }

// open opens the spool where the group that is furthest back goes on.
func (h *holding) open(ctx context.Context) error {
	var least events.Position
	for i, g := range h.run.Groups() {
		p, err := h.run.Place(ctx, g, h.table, h.shard)
		if err != nil {
			return err
		}
		if i == 0 || p.At.Compare(least) < 0 {
			least = p.At
		}
	}
	var err error
	h.spool, err = openSpool(h.opts.Disk, h.spoolDir(h.place), h.opts.Segment, least, h.opts.Log)
	return err
}

func (h *holding) start(ctx context.Context) {
	ctx, h.cancel = context.WithCancel(ctx)
	h.join = h.opts.Go(func() { h.fill(ctx) })
}

// stop ends the reading. What is spooled stays on disk: who gets the shard again
// goes on from it, if nobody has come further meanwhile.
func (h *holding) stop() {
	h.cancel()
	h.join()
	h.spool.close()
}

// fill reads the stream into the spool until the shard ends or the holding does. It
// reads nothing while the lease may be another's.
func (h *holding) fill(ctx context.Context) {
	wait := h.opts.Poll
	for ctx.Err() == nil {
		last, ended := h.spool.position()
		if ended {
			h.poke()
			return
		}
		if h.lapsed() {
			h.opts.Wait(ctx, nil, h.opts.Lease/10)
			continue
		}
		more := h.more()
		n, err := h.page(ctx, last)
		switch {
		case err != nil && ctx.Err() == nil:
			h.opts.Log.Warn("reading a shard", "table", h.table, "shard", h.shard, "error", err, "again in", wait)
			h.note(Reads)
			h.opts.Wait(ctx, nil, wait)
			wait = min(2*wait, time.Minute)
		case n == 0:
			wait = h.opts.Poll
			h.opts.Wait(ctx, more, wait)
		default:
			wait = h.opts.Poll
			h.wake()
		}
	}
}

// more is the store's notice that the stream has grown, nil where it gives none.
func (h *holding) more() <-chan struct{} {
	c, err := h.run.Store.Changed(h.table)
	if err != nil {
		return nil // Read says it
	}
	return c
}

// pageRecords is as many as a page of DynamoDB Streams has.
const pageRecords = 1000

// page spools a page of the stream.
func (h *holding) page(ctx context.Context, after events.Position) (int, error) {
	page, err := h.run.Store.Read(ctx, h.table, h.shard, after, pageRecords)
	switch {
	case errors.Is(err, store.ErrTrimmed):
		return h.resumeBehindGap(ctx, after)
	case errors.Is(err, store.ErrNoTable) && h.isGone():
		return 0, h.lost(ctx, after)
	case err != nil:
		return 0, err
	}
	return len(page.Records), h.keep(ctx, page)
}

func (h *holding) keep(ctx context.Context, page store.Records) error {
	if len(page.Records) > 0 {
		if err := h.run.Store.Sync(ctx); err != nil {
			return err
		}
		if err := h.spool.append(page.Records); err != nil {
			return fmt.Errorf("spooling: %w", err)
		}
		h.alarm(page.Records[len(page.Records)-1].Time)
	}
	if page.End {
		if err := h.spool.end(); err != nil {
			return err
		}
		h.poke()
		h.wake()
	}
	return nil
}

// poke has the shards listed again: this one's children may be there.
func (h *holding) poke() {
	select {
	case h.stale <- struct{}{}:
	default:
	}
}

func (h *holding) isGone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone[h.place] > 1
}

// resumeBehindGap says what is missing, then goes on at the oldest record there is.
// Where nothing was ever read there is nothing to miss; a spool that was begun shows that
// something was, though nothing of it can be read.
func (h *holding) resumeBehindGap(ctx context.Context, after events.Position) (int, error) {
	oldest, err := h.run.Store.Horizon(ctx, h.table, h.shard)
	if err != nil {
		return 0, err
	}
	page, err := h.run.Store.Read(ctx, h.table, h.shard, oldest, pageRecords)
	if err != nil {
		return 0, err
	}
	to := "the end of the shard"
	if len(page.Records) > 0 {
		to = page.Records[0].Position.String()
	}
	if said := between(after, to); (!after.IsZero() || h.spool.begun) && h.said != said {
		if still, err := h.still(ctx); !still || err != nil {
			return 0, err
		}
		if err := h.gap(ctx, after, to, "the stream had forgotten what came after it, up to "+to); err != nil {
			return 0, err
		}
		h.said = said
	}
	return len(page.Records), h.keep(ctx, page)
}

func between(after events.Position, to string) string {
	return fmt.Sprintf("after %v, up to %s", after, to)
}

// still reports whether the shard is ours for certain. Who comes back after a long
// pause finds that others have read on, and records gone that they have applied:
// that is no gap.
func (h *holding) still(ctx context.Context) (bool, error) {
	if h.lapsed() {
		return false, nil
	}
	return beat(ctx, h.run.Store, h.lease(h.place), h.tenure)
}

// lost gives up a shard that went away before its end was read.
func (h *holding) lost(ctx context.Context, after events.Position) error {
	if still, err := h.still(ctx); !still || err != nil {
		return err
	}
	if err := h.gap(ctx, after, "the end of the shard", "the shard was gone before its end was read"); err != nil {
		return err
	}
	return h.spool.end()
}

// gap names a gap of the shard. One that another process has named, and that has
// grown before anything behind it was applied, is another one.
func (h *holding) gap(ctx context.Context, after events.Position, to, what string) error {
	return h.keepGap(ctx, fmt.Sprintf("shard %s of %s", h.shard, h.table), after, between(after, to),
		fmt.Sprintf("records are missing after %v: %s; what is derived from them may be wrong. Before, the shard was read by %s: start a process on that directory, if its spool has them; else run projector verify, which says what is wrong (docs/guide/operations.md, After a gap)", after, what, orNobody(h.before)))
}

func orNobody(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}

// old is the age from which what is read is close to being forgotten by the stream.
const old = 20 * time.Hour

// alarm says that the reader is far behind.
func (h *holding) alarm(t time.Time) {
	if age := h.run.Now().Sub(t); !t.IsZero() && age > old && age < 2*24*time.Hour {
		h.opts.Log.Warn("the stream forgets records after 24 hours, and these are close to it", "table", h.table, "shard", h.shard, "age", age.Round(time.Minute))
		h.note(Old)
	}
}
