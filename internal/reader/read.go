package reader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/store"
)

// page is the last page of a shard that was read.
type page struct {
	read  time.Time
	empty int       // how many without records there were up to it
	first time.Time // of its first record; zero if it has none
	end   bool      // the shard ends behind it
}

// Read returns records of a shard. If this process does not have the lease, the error is errElsewhere. If the
// records after the position have expired, it keeps a dead letter for the gap, and continues behind it.
func (r *Leased) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	if r.currentFence() == 0 {
		return store.Records{}, errElsewhere
	}
	at := shardName{table, shard}
	if r.isQuiet(at) {
		return store.Records{}, nil
	}
	read, err := r.run.Store.Read(ctx, table, shard, after, limit)
	switch {
	case errors.Is(err, store.ErrTrimmed):
		read, err = r.resumeBehindGap(ctx, at, after, limit)
	case errors.Is(err, store.ErrNoTable) && r.isGone(at):
		read, err = store.Records{End: true}, r.recordGap(ctx, at, after, "the shard was gone before its end was read")
	case errors.Is(err, store.ErrNoTable):
		return store.Records{}, nil // the next listings say whether the shard is gone, or the table
	}
	if err != nil {
		if !errors.Is(err, errElsewhere) {
			r.report(Reads)
			err = fmt.Errorf("%w: %w", errShard, err)
		}
		return store.Records{}, err
	}
	r.keepPage(at, read)
	return read, nil
}

// Each poll of a shard is charged, also of one that gives nothing. All quiet shards together are polled quietPolls times in the
// time of Options.Poll, and each at least once in leastPolls times that. A shard is quiet that gave nothing quietPages times: before
// its records, DynamoDB may give empty pages.
const (
	quietPolls = 150
	leastPolls = 10
	quietPages = 10
)

// quietPoll is how long a quiet shard waits for its next poll.
func (r *Leased) quietPoll() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(max(r.opts.Poll, r.opts.Poll*time.Duration(r.open)/quietPolls), leastPolls*r.opts.Poll)
}

// isQuiet reports whether a shard is quiet, and was polled a short while ago. With few shards, none is.
func (r *Leased) isQuiet(at shardName) bool {
	wait := r.quietPoll()
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.pages[at]
	return wait > r.opts.Poll && last.empty >= quietPages && !last.end && r.elapsed(last.read) < wait
}

// keepPage notes a page. It has the shards listed again when this one has ended, as it may have children by now.
func (r *Leased) keepPage(at shardName, read store.Records) {
	p := page{read: r.monotonicNow(), end: read.End}
	if len(read.Records) > 0 {
		p.first = read.Records[0].Time
		r.warnNearExpiry(at, p.first)
	}
	r.mu.Lock()
	was := r.pages[at]
	if len(read.Records) == 0 {
		p.empty = was.empty + 1
	}
	r.pages[at] = p
	r.mu.Unlock()
	if p.end && !was.end {
		r.requestListing()
	}
}

// isGone reports whether two listings in a row have not shown the shard.
func (r *Leased) isGone(at shardName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone[at] > 1
}

// resumeBehindGap records the gap and then continues at the oldest record that the stream
// still has. If nothing was ever read of the shard, nothing can be missing.
func (r *Leased) resumeBehindGap(ctx context.Context, at shardName, after events.Position, limit int) (store.Records, error) {
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
	return read, r.recordGap(ctx, at, after, "the stream had forgotten what came after it, at least up to "+to)
}

// recordGap records a gap of a shard. A gap behind one position is one dead letter, however often it is told. A process that resumes
// after a long pause may find that records have expired which others had applied: that is no gap, so it looks whether it
// still has the lease.
func (r *Leased) recordGap(ctx context.Context, at shardName, after events.Position, what string) error {
	fence := r.currentFence()
	if fence == 0 {
		return errElsewhere
	}
	if ok, err := beatLease(ctx, r.run.Store, r.leaseRow(), fence); err != nil || !ok {
		return errors.Join(err, errElsewhere)
	}
	p, err := ReadPlace(ctx, r.run, at.table, at.shard)
	if err != nil {
		return err
	}
	if p.At != after || p.Done { // later records were applied before this process got the lease
		return errElsewhere
	}
	return r.keepGap(ctx, deadletter.ShardGap(at.table, at.shard, after, what, r.run.Now()))
}

// old is the age from which the records that are read are close to expiry.
const old = 20 * time.Hour

// warnNearExpiry warns that the reader is so far behind that the records are close to expiry.
func (r *Leased) warnNearExpiry(at shardName, t time.Time) {
	if age := r.run.Now().Sub(t); !t.IsZero() && age > old && age < 2*24*time.Hour {
		r.opts.Log.Warn("the stream forgets records after 24 hours, and these are close to it", "table", at.table, "shard", at.shard, "age", age.Round(time.Minute))
		r.report(Old)
	}
}
