package live

import (
	"context"
	"sync/atomic"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// A process applies its shards as one merged log (package mergedlog). It takes one that no
// process has, by a lease like that of a shard, or begins a new one. So there are as many as
// processes ran at one time, and a process that starts after another goes on with its log.

// ownLog is the log of this process.
type ownLog struct {
	*Reader
	number, fence int64
	beatAt        atomic.Pointer[time.Time]
	taken         time.Time // when it was taken
}

// beaten and lapsed are those of a shard's lease.
func (l *ownLog) beaten(at time.Time) { l.beatAt.Store(&at) }

// lapsed reports whether no heartbeat could be written for as long as a lease lasts, by this
// process's clock: others may then have taken over.
func (l *ownLog) lapsed() bool { return l.since(*l.beatAt.Load()) >= l.opts.Lease }

// Log is the number of the merged log of this process, 0 while it has none.
func (r *Reader) Log() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log == nil || r.log.lapsed() {
		return 0
	}
	return r.log.number
}

// Spooled returns the records of a range of a shard that the disk of this process has, whichever
// process holds the shard. all says that it has records at least up to the end of the range.
func (r *Reader) Spooled(table, shard string, after, to events.Position) (out []events.Record, all bool, err error) {
	return spooled(r.opts.Disk, r.spoolDir(place{table, shard}), table, after, to)
}

// logLease is the row with the lease of a merged log.
func (r *Reader) logLease(number int64) store.Ref {
	return owntable.LogLease(r.run.Model.Name, number)
}

// takeLog notes which processes there are, which is which logs have an owner, and takes a log
// unless this process has one.
func (r *Reader) takeLog(ctx context.Context) error {
	r.mu.Lock()
	has := r.log != nil
	r.mu.Unlock()
	before := r.now()
	leases := map[int64]owntable.LeaseRow{}
	last := int64(0)
	q := store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.LogLeases(r.run.Model.Name))}
	for {
		page, err := r.run.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			number, err := owntable.LogOf(row)
			if err != nil {
				return err
			}
			last = max(last, number)
			if leases[number], err = owntable.DecodeLease(row); err != nil {
				return err
			}
		}
		if q.After = page.Next; q.After == nil {
			break
		}
	}
	after := r.now()
	r.owners = map[string]bool{r.opts.Owner: true}
	var free []int64
	for number := int64(1); number <= last+1; number++ {
		w := r.logs[number]
		if w == nil {
			w = &watch{}
			r.logs[number] = w
		}
		if w.see(leases[number], before, after, r.opts.Lease) {
			free = append(free, number)
		} else {
			r.owners[leases[number].Owner] = true
		}
	}
	if has {
		r.tellSharing()
		return nil
	}
	for _, number := range free {
		if taken, err := r.takeLogOf(ctx, number, leases[number]); taken || err != nil {
			r.tellSharing()
			return err
		}
	}
	return nil
}

// tellSharing tells how many processes there are, once the others have had two rounds to see
// this one.
func (r *Reader) tellSharing() {
	r.mu.Lock()
	l := r.log
	r.mu.Unlock()
	if r.opts.Sharing != nil && l != nil && (len(r.owners) == 1 || r.since(l.taken) >= 2*r.calm()) {
		r.opts.Sharing(len(r.owners))
	}
}

// takeLogOf takes the lease of a merged log, and false means that another process was faster.
// Time counts from before the request, so that this process gives the lease up before another
// may take it.
func (r *Reader) takeLogOf(ctx context.Context, number int64, seen owntable.LeaseRow) (bool, error) {
	start := r.now()
	fence, ok, err := take(ctx, r.run.Store, r.logLease(number), seen, r.opts.Owner, "")
	if err != nil || !ok {
		return false, err
	}
	l := &ownLog{number: number, fence: fence, Reader: r, taken: r.now()}
	l.beaten(start)
	r.mu.Lock()
	r.log = l
	r.mu.Unlock()
	r.wake()
	return true, nil
}

// beatLog renews the lease of the log, and gives the log up if another process has taken it.
// An error leaves the lease as it is: it lapses by itself if it lasts.
func (r *Reader) beatLog(ctx context.Context) error {
	r.mu.Lock()
	l := r.log
	r.mu.Unlock()
	if l == nil {
		return nil
	}
	start := r.now()
	switch ok, err := beat(ctx, r.run.Store, r.logLease(l.number), l.fence); {
	case err != nil:
		return err
	case ok:
		l.beaten(start)
	default:
		r.mu.Lock()
		r.log = nil
		r.mu.Unlock()
	}
	return nil
}

// releaseLog lets another process have the log.
func (r *Reader) releaseLog(ctx context.Context) error {
	r.mu.Lock()
	l := r.log
	r.log = nil
	r.mu.Unlock()
	if l == nil {
		return nil
	}
	return release(ctx, r.run.Store, r.logLease(l.number), l.fence)
}
