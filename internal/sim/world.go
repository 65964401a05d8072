package sim

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/ingest"
	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// world is one run: a store, an index and a clock, an application that writes, and the
// processes of weir that follow it.
type world struct {
	seed    uint64
	model   *model.Model
	program *model.Model // that of programs, which may derive more
	base    *memoryStore
	index   *index
	clock   time.Time // the true time
	faults  *faults
	sched   *dice                 // which fiber runs next, and all other choices that are no fault
	calm    bool                  // nothing unusual happens any more
	days    bool                  // days pass in this run
	hours   time.Duration         // that have passed
	retired map[string]value.Item // the last rows of checkpoints of retired shards
	app     *app
	nodes   []*node
	born    int
	way     way
	mapping *mapping // the mapping of the function; nil if the run has no function
	trims   *trims   // the records that the streams expired; nil if they keep everything

	foreign  map[string]bool // rows whose version the application wrote last
	buried   map[string]int  // how many writes the run had done when a tombstone was last written
	tells    bool            // whether the model makes rows for each follower
	crossed  []crossing      // of lists of followers
	counted  map[string]int
	failures []Failure
	cuts     map[int]int           // calls in which a process dies, and after how many parts
	met      func(call, parts int) // if set, is called at each such point at which no process dies
	died     int                   // how often a process did
	built    bool                  // builds are part of the run: programs have a catalog, and some records never come
	bulk     bool                  // recordings are replayed in bulk: no row is too large for a replay's mark
	assume   bool                  // programs are told that nothing was written before
	calls    int                   // how many calls of services the run has made
	changes  int                   // how often something durable changed, or another process ran
	trace    hash.Hash64
	log      func(line string) // if set, is called with each line of the trace
}

func schemasOf(m *model.Model) []search.Schema {
	return seq.Map(m.Searches, func(s *model.Search) search.Schema { return search.Schema{Name: document.IndexName(m, s)} })
}

// way is how a run delivers records.
type way int

// The ways.
const (
	byFollower way = iota // processes that read the store's streams themselves
	byShard               // a function that receives each shard in order
	byReader              // processes of which one reads the streams of DynamoDB, and others stand by
	ways
)

// strike is that of the faults.
func (w *world) strike(k Kind) bool                        { return w.faults.strike(k) }
func (w *world) strikeWeighted(k Kind, times float64) bool { return w.faults.strikeWeighted(k, times) }

// countReached counts a state that runs are meant to reach while faults strike.
func (w *world) countReached(state string) {
	if !w.calm {
		w.counted[state]++
	}
}

// traceStep writes a line of the trace.
func (w *world) traceStep(who, what string, names []string) {
	w.trace.Write([]byte(who))
	w.trace.Write([]byte(what))
	for _, n := range names {
		w.trace.Write([]byte(n))
	}
	if w.log != nil {
		w.log(fmt.Sprintf("%s: %s %q", who, what, names))
	}
}

// newWorld makes a world without rows and processes, in which nothing has happened. The
// seed chooses how the run delivers records.
func newWorld(m *model.Model, seed uint64, o Options) *world {
	w := &world{
		seed: seed, model: m, program: m, index: newIndex(schemasOf(m)), clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		faults: newFaults(seed, o.Faults, o.Without), sched: newDice(seed, "schedule", 0),
		foreign: map[string]bool{}, buried: map[string]int{}, counted: map[string]int{}, retired: map[string]value.Item{}, trace: fnv.New64a(), log: o.Trace,
	}
	tables := []store.Table{owntable.Table()}
	for _, t := range m.Tables {
		st := t.Table
		st.Stream = true
		tables = append(tables, st)
	}
	w.base = newMemory(tables, func() time.Time { return w.clock }, newDice(seed, "store", 0))
	w.base.wrote = func(who string, t *table, key store.Key, old, now value.Item) {
		w.changes++
		w.checkOrder(who, t, key, old, now)
		w.checkWrites(who, t, key, old, now)
		w.trims.checkWrite(who, t, key, old, now)
		if w.log != nil {
			w.log(fmt.Sprintf("    %s: %s was %s", who, refName(store.Ref{Table: t.Name, Key: key}), plainText(old)))
			w.log(fmt.Sprintf("    %s: %s is  %s", who, refName(store.Ref{Table: t.Name, Key: key}), plainText(now)))
		}
	}
	w.tells = slices.ContainsFunc(m.Rows, func(r *model.RowRule) bool { return r.Subscribers != nil })
	w.app = newApp(w)
	// half of the schedules are a function's
	all := []way{byFollower, byShard, byShard, byReader}
	w.bulk = o.Bulk
	if w.built = o.Builds; w.built {
		all = all[:3] // not by a reader
		w.app.words.numbers = slices.DeleteFunc(w.app.words.numbers, func(n string) bool { return slices.Contains(wildNumbers, n) })
	}
	w.deliverBy(pick(newDice(w.seed, "way", 0), all))
	return w
}

// deliverBy sets how the run delivers records, and makes the mapping of a function.
func (w *world) deliverBy(by way) {
	w.way, w.mapping, w.trims = by, nil, nil
	w.base.keep = by == byFollower // only the embedded store loses changes that are not durable
	switch by {
	case byShard:
		w.mapping = newMapping(w)
	case byReader:
		w.trims = &trims{world: w, named: map[*shard][]gap{}, missed: map[string]int{}}
	}
}

// node is a process: its fibers share a clock and die together.
type node struct {
	*world
	name    string
	skew    time.Duration
	fibers  []*fiber
	running *fiber // the fiber that runs, or ran last
	// For an instance of a function:
	handler *lambda.Handler
	link    *link
	busy    bool
	builds  bool   // it is a builder
	of      *shard // the shard that it was begun for
	// For one of several processes that may read:
	reader *reader.Leased
	stop   context.CancelFunc
	lost   map[*shard]bool // shards that other processes have taken over from it
}

// startFollowing starts a process that follows all streams, or stands by.
func (w *world) startFollowing() *node {
	n := w.startProcess()
	if w.way == byReader {
		n.joinReaders()
	} else {
		n.startFollower(&reader.Follower{Runner: n.newRunner(nil)})
	}
	return n
}

// startProcess adds a process without fibers. Its clock may be wrong.
func (w *world) startProcess() *node {
	w.born++
	n := &node{world: w, name: fmt.Sprintf("p%d", w.born)}
	if w.strike(Skew) {
		n.skew = time.Duration(w.faults.dice.n(1200)-600) * time.Second
		if w.faults.dice.chance(0.3) {
			n.skew *= 2000 // two weeks
		}
	}
	w.nodes = append(w.nodes, n)
	return n
}

// clockTime is the time by the clock of the process, which is wrong and is sometimes set back.
func (n *node) clockTime() time.Time {
	if n.strikeWeighted(ClockBack, 0.2) {
		n.skew -= time.Duration(n.faults.dice.n(300)) * time.Second
	}
	return n.clock.Add(n.skew)
}

// monotonicTime is the monotonic time of the process, which is always right.
func (n *node) monotonicTime() time.Time { return n.clock }

// startFiber begins a fiber of the process. It first runs when the schedule resumes it.
func (n *node) startFiber(name string, do func(f *fiber) error) {
	f := newFiber(n.name+"/"+name, do)
	f.host = n
	n.fibers = append(n.fibers, f)
}

// newRunner is the real runner over the link of a fiber, or over that of whichever fiber is
// running if f is nil.
func (n *node) newRunner(f *fiber) *runner.Runner {
	return n.runnerOver(&link{world: n.world, f: f, n: n})
}

// runnerOver is the real runner, and its index, over a link.
func (n *node) runnerOver(l *link) *runner.Runner {
	now := store.Clock(n.clockTime, l)
	r := &runner.Runner{Kinds: kinds.All(), Model: n.program, Store: l, Now: now, Mono: n.monotonicTime, Alone: true, Mover: &ingest.Mover{Model: n.program, Store: l, Now: now, Alone: true}}
	r.Catalog = n.catalogOf(l, now)
	if len(n.model.Searches) > 0 {
		r.Index = indexLink{l}
	}
	return r
}

// startFollower begins a fiber that follows the streams.
func (n *node) startFollower(follower *reader.Follower) {
	gather := 0
	if d := newDice(n.seed, "gather", n.born); follower.Source == nil && d.chance(0.4) {
		gather = 1 + d.n(40)
		n.counted["gathers documents"]++
	}
	n.startFiber("follows", func(f *fiber) error {
		for {
			s := follower.NewStepper()
			s.GatherRecords(gather)
			f.err = n.stepUntilError(f, s)
			if errors.Is(f.err, catalog.ErrRefused) && n.way == byFollower {
				n.counted[removalRefuses]++
			}
			n.traceStep(f.name, fmt.Sprint("again: ", f.err), nil)
			f.idle = true
			f.pause()
		}
	})
}

// stepUntilError steps until a step fails.
func (n *node) stepUntilError(f *fiber, s *reader.Stepper) error {
	for {
		read, left, err := s.Step(context.Background())
		if err != nil {
			return err
		}
		if read > 0 || left {
			continue
		}
		if n.reader != nil {
			n.awaitRecords(f)
		} else {
			f.idle = true
			f.pause()
		}
	}
}

var _ search.Index = indexLink{}
