// Package reader reads the streams of a model's tables. A Follower reads pages of each shard, has the runner apply
// them to rows, has their documents written behind the rows, and moves the checkpoints last. Where several processes have
// the streams, one of them reads, and the others stand by; then the Follower reads from a Leased:
//
//	stream ─▶ Leased ─▶ Follower ─▶ runner
//
// The process that reads has the model's lease (lease.go). The lease keeps two processes from doing the same
// work; correct numbers do not depend on it. A process that has lost the lease and does not know it yet
// may still apply records that it has read: ledgers and rows take each change once, whichever process brings it.
//
// A batch writes all its effects first and its position last. A crash anywhere before that brings the whole batch again.
//
// In weir's own table:
//
//	lease|MODEL   o owner, n how often it was taken, b beats of this owner
//
// The rows about a shard are removed when the shard is over (retire.go).
//
// The files, from the record to its position:
//
//	follower.go  the rounds: a page of each shard, applied as a batch, and the checkpoint behind it
//	pages.go     how much is read at a time; order.go: in which order, where the kinds need one
//	view.go      the batch is admitted by the model's catalog, and its checkpoint is fenced
//	flush.go     documents are written behind the rows, beside those of later batches
//	positions.go checkpoints: where each shard is read on, also by a process that takes over
//
// And from the lease to the record:
//
//	leased.go    the rounds: the lease, and which shards there are
//	lease.go     taking, renewing and giving back
//	read.go      a page of a shard, and the gaps that it shows
//	away.go      whether shards of which nothing was read may have lost records
//	stream.go    which streams of a table are read, also one that was switched off
//	follow.go    all of it as one thing to start and stop; status.go: how far it is; lag.go: how far behind
//	retire.go    the removal when a shard is over
//
// A Follower belongs to the one that runs it.
package reader

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/budget"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
)

// Options are the options of a Leased. For each, the zero value
// stands for the default given here.
type Options struct {
	Lease  time.Duration // how long a silent holder keeps the lease; 0 is 30 s
	Retire time.Duration // how long a finished shard is unlisted before it is removed; 0 is 2 h
	List   time.Duration // how often shards are listed if nothing signals a change; 0 is 10 s
	Poll   time.Duration // how often a shard without new records is polled, unless there are many (read.go); 0 is 1 s
	Log    *slog.Logger  // nil is slog.Default()

	// Window is Follower.Window. It must be well below Lease.
	Window time.Duration
	// If set, Noted is called for each Note and Applied for each batch.
	Noted   func(Note)
	Applied func(Applied)
	// If set, Taken is called when the process has taken the lease, before it reads. After an error it reads nothing and
	// gives the lease back. A program with Taken that is refused without a lease goes on standing by.
	Taken func(context.Context) error
	// Records is Follower.Applied.
	Records func(t *model.Table, records []events.Record)
	// The rest replaces this machine in simulations; the zero values stand for this
	// machine.
	Owner string // the name that other processes see as the holder of the lease
	// Wait waits for a while, until ctx ends, or until more delivers, and reports whether
	// more delivered.
	Wait func(ctx context.Context, more <-chan struct{}, while time.Duration) (came bool)
	// Go starts a part of the reader's work. join waits until that part has returned.
	Go func(part func()) (join func())
}

var _ shared = (*Leased)(nil)

// Leased is the part that one process takes in a model's streams: it reads them, by the model's lease, or stands by.
// Start, Apply and Close are called in this order, and all three by its maker; Status and Stopped at any time between.
// A Follower of its own may use it while Run is running.
type Leased struct {
	run     *runner.Runner
	opts    Options
	stop    context.CancelFunc
	reading sync.WaitGroup

	mu      sync.Mutex
	fence   int64                    // of the lease that this process has, 0 for none
	beatAt  time.Time                // when the last successful beat was sent
	other   watch                    // the lease, as another process has it
	listed  map[string][]store.Shard // of each table, as last listed
	at      time.Time                // time of the last listing; zero forces another
	open    int                      // shards of it that are not closed
	still   map[fault]string         // why tables and shards stand still
	gone    map[shardName]int        // unfinished and not listed: in how many listings
	streams map[string][]string      // the labels of each table's streams; only round uses it
	seen    map[string]time.Time     // when it was last noted that a table's shards are listed; only round uses it
	missing map[shardName]int        // finished and not listed: in how many listings
	pages   map[shardName]page       // the last page of each shard that was read
	changed chan struct{}
	stale   chan struct{} // receives when the last listing of shards is out of date
}

// shardName names a shard.
type shardName struct{ table, shard string }

// compare orders places by table, then by shard.
func (p shardName) compare(o shardName) int {
	return cmp.Or(strings.Compare(p.table, o.table), strings.Compare(p.shard, o.shard))
}

// NewLeased returns a Leased for the streams of the runner's model. It reads nothing before Run,
// and takes no lease. The Leased uses run as it is: its owner must not change it.
func NewLeased(run *runner.Runner, o Options) *Leased {
	o.Lease, o.Poll = cmp.Or(o.Lease, 30*time.Second), cmp.Or(o.Poll, time.Second)
	o.List, o.Retire = cmp.Or(o.List, 10*time.Second), cmp.Or(o.Retire, 2*time.Hour)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.fillDefaults()
	return &Leased{
		run: run, opts: o, stop: func() {},
		still: map[fault]string{}, listed: map[string][]store.Shard{}, gone: map[shardName]int{}, streams: map[string][]string{}, seen: map[string]time.Time{}, pages: map[shardName]page{},
		changed: make(chan struct{}), stale: make(chan struct{}, 1),
	}
}

// fillDefaults fills the options that a simulation left empty with those of this machine.
func (o *Options) fillDefaults() {
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s, process %d (%s)", host, os.Getpid(), rand.Text()[:8])
	}
	if o.Wait == nil {
		o.Wait = waitForMore
	}
	if o.Go == nil {
		o.Go = func(part func()) func() {
			var wg sync.WaitGroup
			wg.Go(part)
			return wg.Wait
		}
	}
}

// waitForMore waits for more, for the time, or for the end of the context, and reports whether more came.
func waitForMore(ctx context.Context, more <-chan struct{}, while time.Duration) (came bool) {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-more:
		return true
	}
	return false
}

// monotonicNow is the monotonic time, from which ages are computed.
func (r *Leased) monotonicNow() time.Time { return r.run.MonotonicNow() }

// elapsed is the time since t, by the clock that shows more of it: the monotonic clock may
// stand still while a machine is suspended, the wall clock may be set.
func (r *Leased) elapsed(t time.Time) time.Duration {
	now := r.monotonicNow()
	return max(now.Sub(t), now.Round(0).Sub(t))
}

// Run takes the lease when it is free, renews it, and lists the shards, until ctx ends; then it releases
// the lease. Errors of the services are logged and retried. The lease may expire while the errors
// last.
func (r *Leased) Run(ctx context.Context) {
	ctx = budget.For(ctx, budget.Lease)
	join := r.opts.Go(func() { // beats are sent however long a round takes
		r.repeatUntilEnd(ctx, nil, func() {
			if err := r.renewLease(ctx); err != nil && ctx.Err() == nil {
				r.opts.Log.Warn("keeping the lease", "error", err)
				r.report(Leases)
			}
		})
	})
	r.repeatUntilEnd(ctx, r.stale, func() {
		if err := r.listShards(ctx); err != nil && ctx.Err() == nil {
			r.opts.Log.Warn("looking for shards", "error", err)
			r.report(Lists)
		}
	})
	join()
	r.letGo()
}

// repeatUntilEnd calls do five times in the time of a lease, and whenever more delivers; in that case the last
// listing of shards counts as out of date.
func (r *Leased) repeatUntilEnd(ctx context.Context, more <-chan struct{}, do func()) {
	for ctx.Err() == nil {
		start := r.monotonicNow()
		do()
		if r.opts.Wait(ctx, more, r.opts.Lease/5-r.elapsed(start)) {
			r.mu.Lock()
			r.at = time.Time{}
			r.mu.Unlock()
		}
	}
}

// leaseRow is the row of the model's lease in the own table.
func (r *Leased) leaseRow() store.Ref { return owntable.Lease(r.run.Model.Name) }

// renewLease beats the lease if this process has it, and takes it if it is free.
// Time counts from before the request, so that this process gives the lease up before another may take it.
func (r *Leased) renewLease(ctx context.Context) error {
	r.mu.Lock()
	fence := r.fence
	r.mu.Unlock()
	start := r.monotonicNow()
	if fence != 0 {
		switch ok, err := beatLease(ctx, r.run.Store, r.leaseRow(), fence); {
		case err != nil:
			return err
		case ok:
			r.mu.Lock()
			r.beatAt = start
			r.mu.Unlock()
			return nil
		}
		r.opts.Log.Info("another process took over", "model", r.run.Model.Name)
		r.report(Lost)
		r.setFence(0, start)
	}
	row, err := r.run.GetRow(ctx, r.leaseRow())
	if err != nil {
		return err
	}
	is, err := owntable.DecodeLease(row)
	if err != nil {
		return err
	}
	after := r.monotonicNow()
	r.mu.Lock()
	free := r.other.observeLease(is, start, after, r.opts.Lease)
	r.mu.Unlock()
	if !free {
		return nil
	}
	start = r.monotonicNow()
	fence, ok, err := takeLease(ctx, r.run.Store, r.leaseRow(), is, r.opts.Owner)
	if err != nil || !ok {
		return err
	}
	if r.opts.Taken != nil {
		if err := r.opts.Taken(ctx); err != nil {
			return errors.Join(err, releaseLease(ctx, r.run.Store, r.leaseRow(), fence))
		}
	}
	r.opts.Log.Info("reading the streams", "model", r.run.Model.Name, "fence", fence, "before", is.Owner)
	r.report(Taken)
	r.setFence(fence, start)
	return nil
}

// setFence notes a lease that this process has from now on, 0 for none.
func (r *Leased) setFence(fence int64, since time.Time) {
	r.mu.Lock()
	r.fence, r.beatAt, r.other = fence, since, watch{}
	clear(r.pages)
	r.mu.Unlock()
	r.requestListing()
	r.wakeConsumers()
}

// currentFence returns the fence of the lease of this process, 0 if another may have it by now.
func (r *Leased) currentFence() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fence == 0 || r.elapsed(r.beatAt) >= r.opts.Lease {
		return 0
	}
	return r.fence
}

// letGo releases the lease.
// It has the time of one lease. If it fails, the lease is free when it has run out, so nothing depends on it.
func (r *Leased) letGo() {
	r.mu.Lock()
	fence := r.fence
	r.mu.Unlock()
	if fence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.opts.Lease)
	defer cancel()
	r.setFence(0, r.monotonicNow())
	r.report(Released)
	if err := releaseLease(ctx, r.run.Store, r.leaseRow(), fence); err != nil {
		r.opts.Log.Warn("giving the lease back; it is free when it has run out", "error", err)
	}
}

// listShards lists the shards of all tables, finds those that disappeared before they were
// finished, and retires those that are over. It does nothing if the last listing is still
// fresh. A process without the lease only lists.
// Of a table that cannot be listed, the last list stays, and the others go on; the error is set only if all failed. It may be
// called beside reading: its findings are put in place under the lock, at once.
func (r *Leased) listShards(ctx context.Context) error {
	r.mu.Lock()
	fresh := r.elapsed(r.at) < r.opts.List
	r.mu.Unlock()
	if fresh {
		return nil
	}
	v, err := r.surveyShards(ctx)
	if err != nil {
		return err
	}
	reads := r.currentFence() != 0
	for _, table := range slices.Sorted(maps.Keys(v.listed)) { // before new shards are read
		if v.failed[table] != nil || !reads {
			continue
		}
		err := r.sameStream(ctx, table)
		if err == nil {
			err = r.noteSeen(ctx, table, &v)
		}
		if err != nil {
			v.addFailure(table, err, r.listedShards(table))
		}
	}
	for table := range v.listed {
		r.noteStanding(stepList, shardName{table: table}, v.failed[table])
		if v.failed[table] == nil {
			r.streamOff(ctx, table, v.listed[table])
		}
	}
	if err := v.allFailed(); err != nil {
		return err
	}
	r.adoptSurvey(&v)
	r.wakeConsumers()
	if !reads {
		return nil
	}
	return r.retireShards(ctx, v)
}

// adoptSurvey puts the findings of a survey in place.
func (r *Leased) adoptSurvey(v *survey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed, r.at, r.open = v.listed, v.at, 0
	for _, shards := range v.listed {
		r.open += len(seq.Where(shards, func(s store.Shard) bool { return !s.Closed }))
	}
	gone, missing := map[shardName]int{}, map[shardName]int{}
	for p, s := range v.begun {
		switch {
		case v.there[p]:
		case v.failed[p.table] != nil: // the last list of the table stays
			if n := r.missing[p]; n > 0 {
				missing[p] = n
			}
			if n := r.gone[p]; n > 0 {
				gone[p] = n
			}
		case s.done:
			missing[p] = r.missing[p] + 1
		default:
			gone[p] = r.gone[p] + 1
		}
	}
	r.gone, r.missing = gone, missing
	maps.DeleteFunc(r.pages, func(p shardName, _ page) bool { return !v.there[p] })
}

// requestListing makes the reader list the shards again.
func (r *Leased) requestListing() {
	select {
	case r.stale <- struct{}{}:
	default:
	}
}

// wakeConsumers signals the consumers that wait for records.
func (r *Leased) wakeConsumers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Fence is the fence of this process's lease, 0 if it has none.
func (r *Leased) Fence() int64 { return r.currentFence() }

// Shards lists all shards of a table as the last listing showed them. Before them it lists those that
// the stream lists no more although they are not applied to their end.
func (r *Leased) Shards(_ context.Context, table string) (out []store.Shard, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.elapsed(r.at) > listLife {
		return nil, nil
	}
	for p, listings := range r.gone {
		if p.table == table && listings > 1 { // one listing may be wrong
			out = append(out, store.Shard{ID: p.shard, Closed: true})
		}
	}
	slices.SortFunc(out, func(a, b store.Shard) int { return strings.Compare(a.ID, b.ID) })
	return append(out, r.listed[table]...), nil
}

// Trim does nothing if this process does not have the lease.
func (r *Leased) Trim(ctx context.Context, table, shard string, upTo events.Position) error {
	if r.currentFence() == 0 {
		return nil
	}
	return r.run.Store.Trim(ctx, table, shard, upTo)
}

// Changed returns a channel that is closed when shards are listed or the lease changes hands.
func (r *Leased) Changed(string) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, nil
}

// Tip adds the lag of polling to the lag of the store.
func (r *Leased) Tip() store.Tip {
	return store.Tip{Lag: 3*r.quietPoll() + r.run.Store.Tip().Lag}
}
