package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// page is what was read of a shard last: the groups of a process come to it one after the other.
type page struct {
	after events.Position
	read  store.Records
}

// Read returns records of a shard. If this process does not have the lease, the error is runner.ErrElsewhere. If the
// records after the position have expired, it keeps a dead letter for the gap, and continues behind it.
func (r *Reader) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	if r.holds() == 0 {
		return store.Records{}, runner.ErrElsewhere
	}
	at := place{table, shard}
	if p := r.lastPage(at); p != nil && p.after == after && len(p.read.Records) > 0 && len(p.read.Records) <= limit {
		return p.read, nil
	}
	read, err := r.run.Store.Read(ctx, table, shard, after, limit)
	switch {
	case errors.Is(err, store.ErrTrimmed):
		read, err = r.resumeBehindGap(ctx, at, after, limit)
	case errors.Is(err, store.ErrNoTable) && r.isGone(at):
		read, err = store.Records{End: true}, r.gap(ctx, at, after, "the shard was gone before its end was read")
	case errors.Is(err, store.ErrNoTable):
		return store.Records{}, nil // the next listings say whether the shard is gone, or the table
	}
	if err != nil {
		if !errors.Is(err, runner.ErrElsewhere) {
			r.note(Reads)
			err = fmt.Errorf("%w: %w", runner.ErrShard, err)
		}
		return store.Records{}, err
	}
	r.keep(at, after, read)
	return read, nil
}

// lastPage returns the page of a shard that was read last, nil if there is none.
func (r *Reader) lastPage(at place) *page {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pages[at]
}

// keep notes a page. It has the shards listed again when this one has ended, as it may have children by now.
func (r *Reader) keep(at place, after events.Position, read store.Records) {
	if len(read.Records) > 0 {
		r.alarm(at, read.Records[0].Time)
	}
	r.mu.Lock()
	was := r.pages[at]
	r.pages[at] = &page{after, read}
	r.mu.Unlock()
	if read.End && (was == nil || !was.read.End) {
		r.poke()
	}
}

// isGone reports whether two listings in a row have not shown the shard.
func (r *Reader) isGone(at place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone[at] > 1
}

// resumeBehindGap records the gap and then continues at the oldest record that the stream
// still has. If nothing was ever read of the shard, nothing can be missing.
func (r *Reader) resumeBehindGap(ctx context.Context, at place, after events.Position, limit int) (store.Records, error) {
	oldest, err := r.run.Store.Horizon(ctx, at.table, at.shard)
	if err != nil {
		return store.Records{}, err
	}
	read, err := r.run.Store.Read(ctx, at.table, at.shard, oldest, limit)
	if err != nil || after.IsZero() {
		return read, err
	}
	to := "the end of the shard"
	if len(read.Records) > 0 {
		to = read.Records[0].Position.String()
	}
	return read, r.gap(ctx, at, after, "the stream had forgotten what came after it, at least up to "+to)
}

// gap records a gap of a shard. A gap behind one position is one dead letter, however often it is told. A process that resumes
// after a long pause may find that records have expired which others had applied: that is no gap, so it looks whether it
// still has the lease.
func (r *Reader) gap(ctx context.Context, at place, after events.Position, what string) error {
	fence := r.holds()
	if fence == 0 {
		return runner.ErrElsewhere
	}
	if ok, err := beat(ctx, r.run.Store, r.lease(), fence); err != nil || !ok {
		return errors.Join(err, runner.ErrElsewhere)
	}
	stands := false // a group stands before the gap; else what follows was applied before this process got the lease
	for _, g := range r.run.Groups() {
		p, err := r.run.Place(ctx, g, at.table, at.shard)
		if err != nil {
			return err
		}
		stands = stands || p.At == after && !p.Done
	}
	if !stands {
		return runner.ErrElsewhere
	}
	return r.keepGap(ctx, runner.ShardGap(at.table, at.shard, after, what, r.run.Now()))
}

// old is the age from which the records that are read are close to expiry.
const old = 20 * time.Hour

// alarm warns that the reader is so far behind that the records are close to expiry.
func (r *Reader) alarm(at place, t time.Time) {
	if age := r.run.Now().Sub(t); !t.IsZero() && age > old && age < 2*24*time.Hour {
		r.opts.Log.Warn("the stream forgets records after 24 hours, and these are close to it", "table", at.table, "shard", at.shard, "age", age.Round(time.Minute))
		r.note(Old)
	}
}
