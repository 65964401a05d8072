package live

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// holding is a shard whose lease this process holds: the lease, the spool, and the function
// (fill) that reads the stream into the spool.
type holding struct {
	*Reader
	place
	fence  int64
	before string // owner of the lease before this process
	beatAt atomic.Pointer[time.Time]
	spool  *spool
	behind atomic.Pointer[time.Time] // time of the last record read; zero if the stream had no more

	said     string // the last gap that was reported, by its range
	saidLate atomic.Bool

	stays    time.Time   // not released for another process before this time; only round uses it
	drains   time.Time   // since when it drains, zero if it does not; only round uses it
	draining atomic.Bool // nothing more is to be read of the stream
	// upTo is where the spool ended when every group was seen to have applied it.
	upTo events.Position

	leaving bool // lose has begun to give it up; guarded by Reader.mu
	cancel  context.CancelFunc
	join    func() // waits until fill has returned
	// ahead is the least position that a group has, where another group has none: see gapAhead.
	ahead events.Position
}

// beaten notes when the last successful beat was sent.
func (h *holding) beaten(at time.Time) { h.beatAt.Store(&at) }

// lapsed reports whether another process may hold the lease by now.
func (h *holding) lapsed() bool { return h.since(*h.beatAt.Load()) >= h.opts.Lease }

// open opens the spool at the position of the group that is furthest behind.
func (h *holding) open(ctx context.Context) error {
	least, ahead, err := h.passed(ctx)
	if err != nil {
		return err
	}
	h.ahead = ahead
	if h.spool, err = openSpool(h.opts.Disk, h.spoolDir(h.place), h.opts.Segment, least, h.opts.Log); err != nil {
		err = fmt.Errorf("%w: %w", runner.ErrShard, err)
	}
	return err
}

// passed is the position of the group that is furthest behind, and the least position that a
// group has, where another group has none.
func (h *holding) passed(ctx context.Context) (least, ahead events.Position, err error) {
	for i, g := range h.run.Groups() {
		p, err := h.run.Place(ctx, g, h.table, h.shard)
		if err != nil {
			return least, ahead, err
		}
		if i == 0 || p.At.Compare(least) < 0 {
			least = p.At
		}
		if ahead.IsZero() || !p.At.IsZero() && p.At.Compare(ahead) < 0 {
			ahead = p.At
		}
	}
	if ahead == least {
		ahead = events.Position{}
	}
	return least, ahead, nil
}

// start begins to read the stream into the spool, until ctx ends or stop is called.
func (h *holding) start(ctx context.Context) {
	ctx, h.cancel = context.WithCancel(ctx)
	h.join = h.opts.Go(func() { h.fill(ctx) })
}

// stop ends the reading and closes the spool. The files stay on disk: if this process gets
// the shard again, and the groups are not past these files by then, it continues from them.
func (h *holding) stop() {
	h.cancel()
	h.join()
	h.spool.close()
}

// fill reads the stream into the spool until the shard or the holding ends. It reads
// nothing while another process may hold the lease, or while the shard drains.
func (h *holding) fill(ctx context.Context) {
	wait := h.opts.Poll
	var failing time.Time // since when the stream cannot be read; zero if it can
	defer h.stands(stepRead, h.place, nil)
	for ctx.Err() == nil {
		last, ended := h.spool.position()
		if ended {
			h.poke()
			return
		}
		if h.draining.Load() {
			h.opts.Wait(ctx, nil, h.opts.Lease/drainLook)
			continue
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
			if failing.IsZero() {
				failing = h.now()
			}
			if h.since(failing) >= h.opts.Lease {
				h.stands(stepRead, h.place, err)
			}
			h.opts.Wait(ctx, nil, wait)
			wait = min(2*wait, max(longestPause, h.opts.Poll))
			continue
		case n == 0:
			wait = h.opts.Poll
			h.opts.Wait(ctx, more, wait)
		default:
			wait = h.opts.Poll
			h.wake()
		}
		failing = time.Time{}
		h.stands(stepRead, h.place, nil)
	}
}

// more is the store's signal that the stream has grown, nil if the store has none.
func (h *holding) more() <-chan struct{} {
	c, err := h.run.Store.Changed(h.table)
	if err != nil {
		return nil // Read returns the error
	}
	return c
}

// pageRecords is the size of a page of DynamoDB Streams.
const pageRecords = 1000

// page reads one page of the stream into the spool and returns the number of records. If
// the records after the position have expired, it continues behind the gap.
func (h *holding) page(ctx context.Context, after events.Position) (int, error) {
	if err := h.gapAhead(ctx); err != nil {
		return 0, err
	}
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

// keep spools a page. It syncs the store first, so that the spool never has a record that a
// crash of the store could undo.
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

// poke makes the reader list the shards again, as this one may have children by now.
func (h *holding) poke() {
	select {
	case h.stale <- struct{}{}:
	default:
	}
}

// isGone reports whether two listings in a row have not shown the shard.
func (h *holding) isGone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone[h.place] > 1
}

// resumeBehindGap records the gap and then continues at the oldest record that the stream
// still has. If nothing was ever read of the shard, nothing can be missing. A spool that
// had been written to before it was opened shows that something was read, even if none of
// it is readable any more.
func (h *holding) resumeBehindGap(ctx context.Context, after events.Position) (int, error) {
	// A batch that another process left may have been applied from the stream meanwhile.
	if passed, _, err := h.passed(ctx); err != nil {
		return 0, err
	} else if passed.Compare(after) > 0 {
		page, err := h.run.Store.Read(ctx, h.table, h.shard, passed, pageRecords)
		if !errors.Is(err, store.ErrTrimmed) {
			if err != nil {
				return 0, err
			}
			return len(page.Records), h.keep(ctx, page)
		}
		after = passed
	}
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

// gapAhead records a gap behind the position of a group where another group has none, such as
// that of a new index: the stream is then read from its beginning, where nothing seems to be
// missing.
func (h *holding) gapAhead(ctx context.Context) error {
	if h.ahead.IsZero() {
		return nil
	}
	_, err := h.run.Store.Read(ctx, h.table, h.shard, h.ahead, 1)
	if errors.Is(err, store.ErrTrimmed) {
		// A batch that another process left may have been applied from the stream meanwhile.
		var ahead events.Position
		if _, ahead, err = h.passed(ctx); err != nil {
			return err
		}
		if ahead != h.ahead {
			h.ahead = ahead
			return h.gapAhead(ctx)
		}
		if still, err := h.still(ctx); !still || err != nil {
			return err
		}
		err = h.gap(ctx, h.ahead, "the oldest record that the stream has", "the stream had forgotten what came after it")
	}
	if errors.Is(err, store.ErrNoTable) && h.isGone() {
		err = nil // the caller finds that all of the shard is gone
	}
	if err == nil {
		h.ahead = events.Position{}
	}
	return err
}

// late records that a record has waited in the spool for so long that what was counted of it
// may be forgotten.
func (h *holding) late(ctx context.Context, rec *events.Record) error {
	age := h.run.Now().Sub(rec.Time)
	if rec.Time.IsZero() || age <= runner.MaxPending || h.saidLate.Load() {
		return nil
	}
	err := h.tellGap(ctx, rec.Position, "from "+rec.Position.String(), fmt.Sprintf(
		"records from %v on waited in the spool for %d days; what counts for rows that are gone is forgotten after %d, so it may be counted twice: run projector verify, which says what is wrong (docs/guide/operations.md, After a gap)",
		rec.Position, age/(24*time.Hour), runner.MaxPending/(24*time.Hour)))
	if err == nil {
		h.saidLate.Store(true)
	}
	return err
}

// between names the range of a gap, by which a gap that is found again is known to be the same.
func between(after events.Position, to string) string {
	return fmt.Sprintf("after %v, up to %s", after, to)
}

// still reports whether this process certainly holds the shard's lease. A process that
// resumes after a long pause may find that others have read on, and that records have
// expired which the others had applied: that is no gap.
func (h *holding) still(ctx context.Context) (bool, error) {
	if h.lapsed() {
		return false, nil
	}
	return beat(ctx, h.run.Store, h.lease(h.place), h.fence)
}

// lost ends the reading of a shard that disappeared before it was read to its end, and
// records the gap.
func (h *holding) lost(ctx context.Context, after events.Position) error {
	// A batch that another process left may have been applied from the stream meanwhile.
	if passed, _, err := h.passed(ctx); err != nil {
		return err
	} else if passed.Compare(after) > 0 {
		after = passed
	}
	if still, err := h.still(ctx); !still || err != nil {
		return err
	}
	if err := h.gap(ctx, after, "the end of the shard", "the shard was gone before its end was read"); err != nil {
		return err
	}
	return h.spool.end()
}

// gap records a gap of the shard. If another process had recorded one, and it has grown
// before a record behind it was applied, the grown gap is recorded as a gap of its own.
func (h *holding) gap(ctx context.Context, after events.Position, to, what string) error {
	return h.tellGap(ctx, after, between(after, to), fmt.Sprintf(
		"records are missing after %v: %s; what is derived from them may be wrong. Before, the shard was read by %s: start a process on that directory, if its spool has them; else run projector verify, which says what is wrong (docs/guide/operations.md, After a gap)",
		after, what, orNobody(h.before)))
}

// tellGap keeps the dead letter of a gap of the shard.
// A gap with the same source is one dead letter, however often it is told.
func (h *holding) tellGap(ctx context.Context, at events.Position, source, reason string) error {
	return h.keepGap(ctx, runner.Dead{
		Kind: runner.DeadGap, Target: fmt.Sprintf("shard %s of %s", h.shard, h.table), Position: at, Time: h.run.Now().UTC(), Source: source, Reason: reason,
	})
}

// orNobody is the owner of a lease in a message.
func orNobody(s string) string {
	if s == "" {
		return "no process"
	}
	return s
}

// old is the age from which the records that are read are close to expiry.
const old = 20 * time.Hour

// alarm warns that the reader is so far behind that the records are close to expiry.
func (h *holding) alarm(t time.Time) {
	if age := h.run.Now().Sub(t); !t.IsZero() && age > old && age < 2*24*time.Hour {
		h.opts.Log.Warn("the stream forgets records after 24 hours, and these are close to it", "table", h.table, "shard", h.shard, "age", age.Round(time.Minute))
		h.note(Old)
	}
}
