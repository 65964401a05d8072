// Package live reads the streams of a model's tables in one of several processes that share
// the work. A Follower reads from it (runner.Shared):
//
//	stream ─▶ reader of a shard ─▶ spool ─▶ Follower: rows
//	                                    └─▶ Follower: search
//
// A shard has one reader over all processes and all groups of consumers: the process that
// holds its lease (lease.go). The reader never waits for a consumer. It first writes what
// it reads into files (spool.go). So nothing is lost when records expire after a day,
// however slow a sink is and however long a job takes.
//
// A lease keeps two processes from doing the same work; correct numbers do not depend on
// it. A process that has lost its shards and does not know it yet may still apply what it
// has read: ledgers and rows take each change once, whichever process
// brings it. Such a process can no longer move a checkpoint (runner.Shared, Fence).
//
// In weir's own table:
//
//	lease|MODEL   s TABLE|SHARD   o owner, n holds so far, b beats of this one, g search generation
//	logs|MODEL    s NUMBER        the same of a merged log, of which each process has one (log.go)
//
// What is kept of a shard is removed when the shard is over (retire.go).
//
// The files, from the lease to the record:
//
//	reader.go    the rounds: which shards there are, which of them this process takes
//	share.go     how many shards a process should have, so that all have about the same
//	lease.go     taking, renewing and giving back
//	holding.go   a shard that this process holds, and the gaps that it finds
//	away.go      whether shards of which nothing was read may have lost records
//	spool.go     what was read, on disk until it is applied; frame.go is its form, disk.go its disk
//	stream.go    which streams of a table are read, also one that was switched off
//	log.go       the one log as which a process applies all its shards
//	follow.go    all of it as one thing to start and stop; status.go: how far it is; spooled.go: what is still there
//	retire.go    what is removed when a shard is over
package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/budget"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/runner"
	"weir/internal/store"
)

// Options are the options of a Reader. Dir is required; for the others the zero value
// stands for the default given here.
type Options struct {
	Dir    string        // directory for spools; only one process may use it at a time
	Lease  time.Duration // how long a silent holder keeps its shards; 0 is 30 s
	Retire time.Duration // how long a finished shard is unlisted before it is removed; 0 is 2 h
	List   time.Duration // how often shards are listed if nothing signals a change; 0 is 10 s
	Poll   time.Duration // how often a shard without new records is polled; 0 is 1 s
	Log    *slog.Logger  // nil is slog.Default()

	// Sharing, if set, is called in each round with the number of processes that share the
	// model's streams, this one included. It is not called before the others know of this one.
	Sharing func(processes int)

	// Window is runner.Follower.Window. It must be well below Lease.
	Window time.Duration
	// Indexed is runner.Follower.Indexed.
	Indexed <-chan struct{}
	// If set, Noted is called for each Note and Applied for each batch.
	Noted   func(Note)
	Applied func(runner.Applied)
	// Records is runner.Follower.Applied.
	Records func(t *model.Table, records []events.Record)
	// The rest replaces this machine in simulations; the zero values stand for this
	// machine.
	Owner   string // the name that other processes are shown as the holder of a shard
	Segment int64  // approximate size of a spool's file in bytes
	Disk    Disk   // file system for spools
	// Wait waits for a while, until ctx ends, or until more delivers, and reports whether
	// more delivered.
	Wait func(ctx context.Context, more <-chan struct{}, while time.Duration) (came bool)
	// AtOnce is how many leases are written at a time; 0 is 32.
	AtOnce int
	// Go starts a part of the reader's work. join waits until that part has returned.
	Go func(part func()) (join func())
}

var _ runner.Shared = (*Reader)(nil)

// Reader reads the streams of one model. Run must be running while a Follower uses it.
type Reader struct {
	run  *runner.Runner
	opts Options

	mu        sync.Mutex
	held      map[place]*holding
	log       *ownLog                  // nil while this process has none
	logs      map[int64]*watch         // leases of logs; only round uses it
	owners    map[string]bool          // the processes that have a log, this one included; only round uses it
	away      map[place]time.Time      // until when shards that could not be taken are left to other processes
	short     bool                     // this process holds less than its share; only round uses it
	listed    map[string][]store.Shard // of each table, as last listed
	at        time.Time                // time of the last listing; zero forces another
	unlisted  map[string]error         // tables whose stream could not be listed last; nothing new of them is begun
	still     map[fault]string         // why tables and shards stand still
	gone      map[place]int            // unfinished and not listed: in how many listings
	watched   map[place]*watch         // leases of other processes
	streams   map[string][]string      // the labels of each table's streams; only round uses it
	seen      map[string]time.Time     // when it was last noted that a table's shards are listed; only round uses it
	done      map[place]bool           // applied by every group
	shardKeys map[string]bool          // short keys of shards listed or begun, as last surveyed
	over      map[string]bool          // short keys that were found to be retired
	missing   map[place]int            // finished and not listed: in how many listings
	changed   chan struct{}
	stale     chan struct{} // receives when the last listing of shards is out of date
}

// place names a shard.
type place struct{ table, shard string }

// compare orders places by table, then by shard.
func (p place) compare(o place) int {
	return cmp.Or(strings.Compare(p.table, o.table), strings.Compare(p.shard, o.shard))
}

// New returns a Reader of the streams of the runner's model. It reads nothing before Run,
// and takes no lease. The Reader uses run as it is: its owner must not change it.
func New(run *runner.Runner, o Options) *Reader {
	if o.Lease <= 0 {
		o.Lease = 30 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.List <= 0 {
		o.List = 10 * time.Second
	}
	if o.Retire <= 0 {
		o.Retire = 2 * time.Hour
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.machine()
	return &Reader{
		run: run, opts: o,
		held: map[place]*holding{}, logs: map[int64]*watch{}, still: map[fault]string{}, listed: map[string][]store.Shard{}, gone: map[place]int{}, watched: map[place]*watch{}, away: map[place]time.Time{}, streams: map[string][]string{}, seen: map[string]time.Time{}, done: map[place]bool{}, over: map[string]bool{},
		changed: make(chan struct{}), stale: make(chan struct{}, 1),
	}
}

// machine fills the options that a simulation left empty with those of this machine.
func (o *Options) machine() {
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s, process %d, %s (%s)", host, os.Getpid(), o.Dir, rand.Text()[:8])
	}
	if o.Disk == nil {
		o.Disk = machine{}
	}
	if o.AtOnce == 0 {
		o.AtOnce = 32
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Go == nil {
		o.Go = func(part func()) func() {
			var wg sync.WaitGroup
			wg.Go(part)
			return wg.Wait
		}
	}
}

// wait waits for more, for the time, or for the end of the context, and reports whether more came.
func wait(ctx context.Context, more <-chan struct{}, while time.Duration) (came bool) {
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

// now is the monotonic time, from which ages are computed.
func (r *Reader) now() time.Time { return r.run.Moment() }

// since is the time since t, by the clock that shows more of it: the monotonic clock may
// stand still while a machine is suspended, the wall clock may be set.
func (r *Reader) since(t time.Time) time.Duration {
	now := r.now()
	return max(now.Sub(t), now.Round(0).Sub(t))
}

// Run takes leases, renews them and reads their shards until ctx ends; then it releases
// them. Errors of the services are logged and retried. Leases may expire while the errors
// last.
func (r *Reader) Run(ctx context.Context) {
	ctx = budget.For(ctx, budget.Lease)
	join := r.opts.Go(func() { // beats are sent however long a round takes
		r.often(ctx, nil, r.calm, func() {
			if err := r.beats(ctx); err != nil && ctx.Err() == nil {
				r.opts.Log.Warn("keeping leases", "error", err)
				r.note(Leases)
			}
		})
	})
	r.often(ctx, r.stale, r.pace, func() {
		if err := r.round(ctx); err != nil && ctx.Err() == nil {
			r.opts.Log.Warn("looking for shards", "error", err)
			r.note(Lists)
		}
	})
	join()
	r.letGo()
}

// calm is how long it is from one beat to the next, and from one round to the next.
func (r *Reader) calm() time.Duration { return r.opts.Lease / 5 }

// pace is the same of rounds, which come sooner while other processes release shards for this one.
func (r *Reader) pace() time.Duration {
	if r.short {
		return r.opts.Lease / 20
	}
	return r.calm()
}

// often calls do as often as every says, and whenever more delivers; in that case the last
// listing of shards counts as out of date.
func (r *Reader) often(ctx context.Context, more <-chan struct{}, every func() time.Duration, do func()) {
	for ctx.Err() == nil {
		start := r.now()
		do()
		if r.opts.Wait(ctx, more, every()-r.since(start)) {
			r.mu.Lock()
			r.at = time.Time{}
			r.mu.Unlock()
		}
	}
}

// round lists the shards, ends those that are finished, takes its share of those that are free,
// and releases those that it holds beyond its share.
func (r *Reader) round(ctx context.Context) error {
	if err := r.takeLog(ctx); err != nil {
		return err
	}
	if err := r.list(ctx); err != nil {
		return err
	}
	r.forget(ctx)
	r.sweep()
	return r.balance(ctx)
}

// holdings are the shards that this process holds, sorted.
func (r *Reader) holdings() (out []*holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.held {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *holding) int { return a.compare(b.place) })
	return out
}

// beats renews the leases of all holdings, and ends a holding whose lease another process
// has taken.
func (r *Reader) beats(ctx context.Context) error {
	err := r.beatLog(ctx)
	held := r.holdings()
	return errors.Join(err, parallel.Do(len(held), r.opts.AtOnce, func(i int) error {
		h, start := held[i], r.now()
		ok, err := beat(ctx, r.run.Store, r.lease(h.place), h.fence)
		switch {
		case err != nil:
			return err
		case !ok:
			r.opts.Log.Info("another process took a shard over", "table", h.table, "shard", h.shard)
			r.note(Lost)
			r.lose(h)
		default:
			h.beaten(start)
		}
		return nil
	}))
}

// lease is the row of a shard's lease in the own table.
func (r *Reader) lease(p place) store.Ref { return owntable.Lease(r.run.Model.Name, p.table, p.shard) }

// list lists the shards of all tables, finds those that disappeared before they were
// finished, and retires those that are over. It does nothing if the last listing is still
// fresh.
// Of a table that cannot be listed, what was known stays, and the others go on; the error is set only if all failed. It may be
// called beside reading: what it learns is put in place under the lock, at once.
func (r *Reader) list(ctx context.Context) error {
	r.mu.Lock()
	fresh := r.since(r.at) < r.opts.List
	r.mu.Unlock()
	if fresh {
		return nil
	}
	v, err := r.survey(ctx)
	if err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(v.listed)) { // before new shards are read
		if v.failed[table] != nil {
			continue
		}
		err := r.sameStream(ctx, table)
		if err == nil {
			err = r.noteSeen(ctx, table, &v)
		}
		if err != nil {
			v.fails(table, err, r.listing(table))
		}
	}
	for table := range v.listed {
		r.stands(stepList, place{table: table}, v.failed[table])
		if v.failed[table] == nil {
			r.streamOff(ctx, table, v.listed[table])
		}
	}
	if err := v.allFailed(); err != nil {
		return err
	}
	r.mu.Lock()
	r.unlisted = v.failed
	r.listed, r.at, r.done, r.shardKeys = v.listed, v.at, map[place]bool{}, v.shardKeys()
	gone, missing := map[place]int{}, map[place]int{}
	for p, s := range v.begun {
		if s.done {
			r.done[p] = true
		}
		switch {
		case v.there[p]:
		case v.failed[p.table] != nil: // what is known of the table stays
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
	maps.DeleteFunc(r.watched, func(p place, _ *watch) bool { return !v.there[p] && gone[p] == 0 })
	r.mu.Unlock()
	return r.retire(ctx, v)
}

// forget ends the holdings of shards that every group has applied to their end, and removes
// their spools.
func (r *Reader) forget(ctx context.Context) {
	for _, h := range r.holdings() {
		r.mu.Lock()
		finished := r.done[h.place]
		r.mu.Unlock()
		if !finished {
			continue
		}
		if !r.lose(h) {
			continue
		}
		r.note(Released)
		err := errors.Join(r.opts.Disk.RemoveAll(r.spoolDir(h.place)), release(ctx, r.run.Store, r.lease(h.place), h.fence))
		if err != nil {
			r.opts.Log.Warn("forgetting a finished shard", "table", h.table, "shard", h.shard, "error", err)
		}
	}
}

// wanted are the shards that this process does not hold and of which something is left to
// read or to apply.
func (r *Reader) wanted() (out []place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := func(p place) {
		if !r.done[p] && r.held[p] == nil && r.unlisted[p.table] == nil {
			out = append(out, p)
		}
	}
	if r.since(r.at) > listLife {
		return nil
	}
	for table, shards := range r.listed {
		for _, s := range shards {
			want(place{table, s.ID})
		}
	}
	for p, listings := range r.gone {
		if listings > 1 { // one listing may be wrong
			want(p)
		}
	}
	slices.SortFunc(out, place.compare)
	return slices.Compact(out)
}

// takeOne takes a lease, writes the shard's checkpoints, opens its spool and starts
// reading. If another process was first, it does nothing. If a later step fails, it
// releases the lease; after a crash the lease runs out. Until stays the shard is not released
// for another process.
func (r *Reader) takeOne(ctx context.Context, p place, seen owntable.LeaseRow, stays time.Time) error {
	start := r.now()
	fence, ok, err := take(ctx, r.run.Store, r.lease(p), seen, r.opts.Owner, r.run.Generation)
	if err != nil || !ok {
		return err
	}
	h := &holding{Reader: r, place: p, fence: fence, before: seen.Owner, stays: stays}
	h.beaten(start)
	if err := errors.Join(r.run.Begin(ctx, p.table, p.shard, fence), h.open(ctx)); err != nil {
		if h.spool != nil {
			h.spool.close()
		}
		return errors.Join(err, release(ctx, r.run.Store, r.lease(p), fence))
	}
	r.opts.Log.Info("reading a shard", "table", p.table, "shard", p.shard, "fence", fence, "before", seen.Owner)
	r.note(Taken)
	h.start(ctx)
	r.mu.Lock()
	r.held[p] = h
	r.mu.Unlock()
	r.wake()
	return nil
}

// lose ends a holding and reports whether it did. It does nothing if the holding is over or
// being ended.
func (r *Reader) lose(h *holding) bool {
	r.mu.Lock()
	ours := r.held[h.place] == h && !h.leaving
	h.leaving = true
	r.mu.Unlock()
	if !ours {
		return false
	}
	h.stop()
	r.mu.Lock()
	delete(r.held, h.place) // only now: the next holding of the shard opens the same spool
	r.mu.Unlock()
	r.wake()
	return true
}

// letGo ends all holdings and releases their leases.
// It has the time of one lease. What is not released in it is free when the lease has run out, so
// nothing depends on it.
func (r *Reader) letGo() {
	ctx, cancel := context.WithTimeout(context.Background(), r.opts.Lease)
	defer cancel()
	if err := r.releaseLog(ctx); err != nil {
		r.opts.Log.Warn("giving a log back; it is free when its lease has run out", "error", err)
	}
	held := r.holdings()
	_ = parallel.Do(len(held), r.opts.AtOnce, func(i int) error {
		h := held[i]
		if !r.lose(h) {
			return nil
		}
		r.note(Released)
		if err := release(ctx, r.run.Store, r.lease(h.place), h.fence); err != nil {
			r.opts.Log.Warn("giving a shard back; it is free when its lease has run out", "shard", h.shard, "error", err)
		}
		return nil
	})
}

// wake signals the consumers that wait for records.
func (r *Reader) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// holding returns a shard if this process still holds it by its own clock, else nil.
func (r *Reader) holding(table, shard string) *holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[place{table, shard}]
	if h == nil || h.leaving || h.lapsed() {
		return nil
	}
	return h
}

// Fence is the fence of this process's lease on a shard, 0 if it has none.
func (r *Reader) Fence(table, shard string) int64 {
	if h := r.holding(table, shard); h != nil {
		return h.fence
	}
	return 0
}

// Beside reports whether another process held a shard, when its lease was last read, and
// applies another search generation than this one.
func (r *Reader) Beside(table, shard string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := place{table, shard}
	w := r.watched[p]
	return r.held[p] == nil && w != nil && w.Owner != "" && w.Generation != r.run.Generation
}

// Shards lists all shards of a table as the last listing showed them, whichever process
// holds them. Before them it lists those that this process holds although the stream does
// not list them any more.
func (r *Reader) Shards(_ context.Context, table string) (out []store.Shard, err error) {
	ours := r.holdings()
	r.mu.Lock()
	defer r.mu.Unlock()
	there := map[string]bool{}
	for _, s := range r.listed[table] {
		there[s.ID] = true
	}
	for _, h := range ours {
		if h.table == table && !there[h.shard] {
			out = append(out, store.Shard{ID: h.shard, Closed: true})
		}
	}
	return append(out, r.listed[table]...), nil
}

// Read returns records from the spool of a shard. If this process does not hold the shard,
// the error is runner.ErrElsewhere.
func (r *Reader) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	h := r.holding(table, shard)
	if h == nil {
		return store.Records{}, runner.ErrElsewhere
	}
	page, err := h.spool.read(table, after, limit)
	if err != nil && !errors.Is(err, runner.ErrElsewhere) {
		err = fmt.Errorf("%w: %w", runner.ErrShard, err)
	}
	if err == nil && len(page.Records) > 0 {
		err = h.late(ctx, &page.Records[0])
	}
	return page, err
}

// Trim releases the records up to a position that every group has applied. It does nothing
// if this process does not hold the shard.
func (r *Reader) Trim(ctx context.Context, table, shard string, upTo events.Position) error {
	h := r.holding(table, shard)
	if h == nil {
		return nil
	}
	if err := h.spool.trim(upTo); err != nil {
		return err
	}
	return r.run.Store.Trim(ctx, table, shard, upTo)
}

// Changed returns a channel that is closed when any shard has more to read or changes
// hands.
func (r *Reader) Changed(string) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, nil
}

// Tip adds the lag of polling to the lag of the store.
func (r *Reader) Tip() store.Tip {
	return store.Tip{Lag: 3*r.opts.Poll + r.run.Store.Tip().Lag}
}

// spoolDir is the directory of a shard's spool. The dots of a table's name are escaped, so
// that the name cannot be a path.
func (r *Reader) spoolDir(p place) string {
	return filepath.Join(r.opts.Dir, strings.ReplaceAll(p.table, ".", dot), p.shard)
}

const dot = "%2E"
