// Package live reads the streams of a model's tables for one of several processes
// that share the work. It is what a Follower reads from (runner.Shared):
//
//	stream ─▶ reader of a shard ─▶ spool ─▶ Follower: rows
//	                                    └─▶ Follower: search
//
// A shard has one reader over all processes and all groups of consumers: who holds
// its lease (lease.go). The reader never waits for a consumer: it writes what it
// reads into files first (spool.go), so that however slow a sink is, or however
// long a job takes, nothing is lost when the stream forgets it after a day.
//
// A lease keeps two processes from doing the same work; it is not what keeps a
// number right. A process that lost its shards and does not know it yet may still
// apply what it has read: books and rows take each change once, whoever brings it.
// What it can no longer do is move a checkpoint (runner.Shared, Tenure).
//
// In our table:
//
//	lease|MODEL   s TABLE|SHARD   o owner, n holds so far, b beats of this one
//
// What is kept of a shard goes when the shard is over (retire.go).
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

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// Options of a Reader; those without a zero value that is said must be given.
type Options struct {
	Dir    string        // for spools; one process at a time has it
	Lease  time.Duration // how long a silent holder keeps its shards; 0 is 30 s
	Retire time.Duration // how long the stream does not list a finished shard before what is kept of it goes; 0 is 2 h
	List   time.Duration // how often shards are listed, if nothing says that they changed; 0 is 10 s
	Poll   time.Duration // how often a shard that gave nothing is asked; 0 is 1 s
	Log    *slog.Logger  // nil is slog.Default()

	// Noted, when set, is called for each Note, and Applied for each batch.
	Noted   func(Note)
	Applied func(group string, n runner.Counts)
	// The rest is for who simulates the machine; without it, it is this one.
	Owner   string // who others are told has a shard
	Segment int64  // about how many bytes a file of a spool has
	Disk    Disk   // where spools are
	// Wait waits for a while, or until ctx ends, or until something comes from more,
	// and reports whether that was it.
	Wait func(ctx context.Context, more <-chan struct{}, while time.Duration) (came bool)
	// Go begins a part of the reader's work. What it returns waits until that has ended.
	Go func(part func()) (join func())
}

// Reader reads the streams of one model. Run must run while a Follower uses it.
type Reader struct {
	run  *runner.Runner
	opts Options

	mu      sync.Mutex
	held    map[place]*holding
	listed  map[string][]store.Shard // of each table, as last listed
	at      time.Time                // when that was
	gone    map[place]int            // unfinished and not listed: in how many listings
	watched map[place]*watch         // leases that are others'; only rounds use it
	streams map[string][]string      // the labels of each table's streams; only rounds use it
	done    map[place]bool           // applied by every group
	lanes   map[string]bool          // that something may still come from, as far as was seen
	over    map[string]bool          // that nothing comes from any more, as was found
	missing map[place]int            // finished and not listed: in how many listings
	changed chan struct{}
	stale   chan struct{} // poked when the list of shards is not the last word
}

type place struct{ table, shard string }

func (p place) compare(o place) int {
	return cmp.Or(strings.Compare(p.table, o.table), strings.Compare(p.shard, o.shard))
}

// New gives a reader of the streams of the runner's model, from its store.
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
		held: map[place]*holding{}, listed: map[string][]store.Shard{}, gone: map[place]int{}, watched: map[place]*watch{}, streams: map[string][]string{}, done: map[place]bool{}, over: map[string]bool{},
		changed: make(chan struct{}), stale: make(chan struct{}, 1),
	}
}

// machine has what is not simulated done by this machine.
func (o *Options) machine() {
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s, process %d, %s (%s)", host, os.Getpid(), o.Dir, rand.Text()[:8])
	}
	if o.Disk == nil {
		o.Disk = machine{}
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

// now is the time for ages.
func (r *Reader) now() time.Time { return r.run.Moment() }

// since is how long ago a moment was, by the clock that says more: one that nobody
// sets may stand still while a machine sleeps, the other one is set.
func (r *Reader) since(t time.Time) time.Duration {
	now := r.now()
	return max(now.Sub(t), now.Round(0).Sub(t))
}

// Run takes leases, keeps them, and reads what they are for, until ctx ends; then
// it gives them back. Errors of the services are logged and tried again: while they
// last, leases may run out.
func (r *Reader) Run(ctx context.Context) {
	join := r.opts.Go(func() { // whatever else takes its time
		r.often(ctx, nil, func() {
			if err := r.beats(ctx); err != nil && ctx.Err() == nil {
				r.opts.Log.Warn("keeping leases", "error", err)
				r.note(Leases)
			}
		})
	})
	r.often(ctx, r.stale, func() {
		if err := r.round(ctx); err != nil && ctx.Err() == nil {
			r.opts.Log.Warn("looking for shards", "error", err)
			r.note(Lists)
		}
	})
	join()
	r.letGo()
}

// often does something every fifth of a lease, and when more asks for it, for which
// the list of shards is not the last word.
func (r *Reader) often(ctx context.Context, more <-chan struct{}, do func()) {
	for ctx.Err() == nil {
		start := r.now()
		do()
		if r.opts.Wait(ctx, more, r.opts.Lease/5-r.since(start)) {
			r.mu.Lock()
			r.at = time.Time{}
			r.mu.Unlock()
		}
	}
}

// round looks for shards to take, and for those that are finished.
func (r *Reader) round(ctx context.Context) error {
	if err := r.list(ctx); err != nil {
		return err
	}
	r.forget(ctx)
	r.sweep()
	return r.takeAll(ctx)
}

func (r *Reader) holdings() (out []*holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.held {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *holding) int { return a.compare(b.place) })
	return out
}

func (r *Reader) beats(ctx context.Context) error {
	var errs []error
	for _, h := range r.holdings() {
		start := r.now()
		ok, err := beat(ctx, r.run.Store, r.lease(h.place), h.tenure)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !ok:
			r.opts.Log.Info("another process took a shard over", "table", h.table, "shard", h.shard)
			r.lose(h)
		default:
			h.beaten(start)
		}
	}
	return errors.Join(errs...)
}

func (r *Reader) lease(p place) store.Ref { return book.Lease(r.run.Model.Name, p.table, p.shard) }

// list lists the shards of all tables, finds those that are gone before they were
// finished, and has those forgotten that are over.
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
	for table := range v.listed { // before what is new is read
		if err := r.sameStream(ctx, table); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.listed, r.at, r.done, r.lanes = v.listed, v.at, map[place]bool{}, v.lanes()
	gone, missing := map[place]int{}, map[place]int{}
	for p, s := range v.begun {
		if s.done {
			r.done[p] = true
		}
		switch {
		case v.there[p]:
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

// forget ends the holdings of shards that every group has applied to their end, and
// removes what is spooled of them.
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
		err := errors.Join(r.opts.Disk.RemoveAll(r.spoolDir(h.place)), release(ctx, r.run.Store, r.lease(h.place), h.tenure))
		if err != nil {
			r.opts.Log.Warn("forgetting a finished shard", "table", h.table, "shard", h.shard, "error", err)
		}
	}
}

// wanted are the shards that have something to be read or applied, and are not ours.
func (r *Reader) wanted() (out []place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := func(p place) {
		if !r.done[p] && r.held[p] == nil {
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
		if listings > 1 { // a list may be wrong for a moment
			want(p)
		}
	}
	slices.SortFunc(out, place.compare)
	return slices.Compact(out)
}

func (r *Reader) takeAll(ctx context.Context) error {
	want := r.wanted()
	if len(want) == 0 {
		return nil
	}
	refs := make([]store.Ref, len(want))
	for i, p := range want {
		refs[i] = r.lease(p)
	}
	before := r.now()
	rows, err := r.run.Store.Get(ctx, refs)
	if err != nil {
		return err
	}
	after := r.now()
	for i, p := range want {
		w := r.watched[p]
		if w == nil {
			w = &watch{}
			r.watched[p] = w
		}
		now, err := book.DecodeLease(rows[i])
		if err != nil {
			return err
		}
		if w.see(now, before, after, r.opts.Lease) {
			if err := r.takeOne(ctx, p, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reader) takeOne(ctx context.Context, p place, seen book.LeaseRow) error {
	start := r.now()
	hold, ok, err := take(ctx, r.run.Store, r.lease(p), seen, r.opts.Owner)
	if err != nil || !ok {
		return err
	}
	h := &holding{Reader: r, place: p, tenure: hold, before: seen.Owner}
	h.beaten(start)
	if err := errors.Join(r.run.Begin(ctx, p.table, p.shard, hold), h.open(ctx)); err != nil {
		if h.spool != nil {
			h.spool.close()
		}
		return errors.Join(err, release(ctx, r.run.Store, r.lease(p), hold))
	}
	r.opts.Log.Info("reading a shard", "table", p.table, "shard", p.shard, "hold", hold, "before", seen.Owner)
	h.start(ctx)
	r.mu.Lock()
	r.held[p] = h
	r.mu.Unlock()
	r.wake()
	return nil
}

// lose ends a holding, unless it is over or about to be.
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
	delete(r.held, h.place) // not before: who takes it again opens the same spool
	r.mu.Unlock()
	r.wake()
	return true
}

// letGo ends all holdings and gives their leases back.
func (r *Reader) letGo() {
	ctx, cancel := context.WithTimeout(context.Background(), r.opts.Lease)
	defer cancel()
	for _, h := range r.holdings() {
		if !r.lose(h) {
			continue
		}
		if err := release(ctx, r.run.Store, r.lease(h.place), h.tenure); err != nil {
			r.opts.Log.Warn("giving a shard back; it is free when its lease has run out", "shard", h.shard, "error", err)
		}
	}
}

// wake tells who waits that there is something to read.
func (r *Reader) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// holding finds a shard that is ours by our own clock.
func (r *Reader) holding(table, shard string) *holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[place{table, shard}]
	if h == nil || h.leaving || h.lapsed() {
		return nil
	}
	return h
}

// Tenure is the number of our hold on a shard, 0 for none.
func (r *Reader) Tenure(table, shard string) int64 {
	if h := r.holding(table, shard); h != nil {
		return h.tenure
	}
	return 0
}

// Shards lists the shards of a table, ours and others', with those that the stream
// has forgotten and we have not: these come first.
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

// Read returns what the shard's reader has read.
func (r *Reader) Read(_ context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	h := r.holding(table, shard)
	if h == nil {
		return store.Records{}, runner.ErrElsewhere
	}
	return h.spool.read(table, after, limit)
}

// Trim gives up what every group has applied.
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

// Changed returns a channel that is closed when there is more to read.
func (r *Reader) Changed(string) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, nil
}

// Tip has the lag of the store and that of reading it.
func (r *Reader) Tip() store.Tip {
	return store.Tip{Lag: 3*r.opts.Poll + r.run.Store.Tip().Lag}
}

// spoolDir is where a shard's spool is. Names of tables are no paths.
func (r *Reader) spoolDir(p place) string {
	return filepath.Join(r.opts.Dir, strings.ReplaceAll(p.table, ".", dot), p.shard)
}

const dot = "%2E"
