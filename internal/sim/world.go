package sim

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"time"

	"weir/internal/book"
	"weir/internal/lambda"
	"weir/internal/live"
	"weir/internal/migrate"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// world is one run: a store, an index and a clock, an application that writes, and
// the processes of weir that follow it.
type world struct {
	seed    uint64
	model   *model.Model
	base    *memory
	index   *index
	clock   time.Time // the true time
	faults  *faults
	sched   *dice                 // who goes on, and all that is no fault
	calm    bool                  // nothing unusual happens any more
	days    bool                  // days go by
	hours   time.Duration         // that went by
	retired map[string]value.Item // checkpoints of shards that are over, as they were
	app     *app
	nodes   []*node
	born    int
	way     way
	mapping *mapping // of the function; nil where there is none
	hosts   []*host  // machines of processes that share streams
	trims   *trims   // what the streams forgot; nil where they do not

	foreign  map[string]bool // rows whose version the application wrote last
	buried   map[string]int  // how many writes there had been when a tombstone was written last
	tells    bool            // whether rows are made for each follower
	crossed  []crossing      // of lists of followers
	counted  map[string]int
	failures []Failure
	cuts     map[int]int           // calls at which a process dies, and how many parts of them have happened then
	met      func(call, parts int) // when set, is told of each such moment at which no process dies
	died     int                   // how often one did
	calls    int                   // how many calls of services there were
	changes  int                   // how often something changed that outlives a process, or others went on
	trace    hash.Hash64
	log      func(line string) // when set, is given the trace
}

func schemasOf(m *model.Model) (out []search.Schema) {
	for _, s := range m.Searches {
		out = append(out, search.Schema{Name: projections.IndexName(m, s)})
	}
	return out
}

// way is how a run delivers records.
type way int

// The ways.
const (
	byFollower way = iota // processes that read the store's streams themselves
	byShard               // a function that is given shards in their order
	byItem                // a function that relies on the order of each row's changes alone
	byReader              // processes that share the streams of DynamoDB
	ways
)

func (w *world) strike(k Kind) bool               { return w.faults.strike(k) }
func (w *world) might(k Kind, times float64) bool { return w.faults.might(k, times) }

// reach counts a state that runs are meant to get to while faults strike.
func (w *world) reach(state string) {
	if !w.calm {
		w.counted[state]++
	}
}

// note writes a line of the trace.
func (w *world) note(who, what string, names []string) {
	w.trace.Write([]byte(who))
	w.trace.Write([]byte(what))
	for _, n := range names {
		w.trace.Write([]byte(n))
	}
	if w.log != nil {
		w.log(fmt.Sprintf("%s: %s %q", who, what, names))
	}
}

func newWorld(m *model.Model, seed uint64, o Options) *world {
	w := &world{
		seed: seed, model: m, index: newIndex(schemasOf(m)), clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		faults: newFaults(seed, o.Faults, o.Without), sched: newDice(seed, "schedule", 0),
		foreign: map[string]bool{}, buried: map[string]int{}, counted: map[string]int{}, retired: map[string]value.Item{}, trace: fnv.New64a(), log: o.Trace,
	}
	tables := []store.Table{book.Table()}
	for _, t := range m.Tables {
		st := t.Table
		st.Stream = true
		tables = append(tables, st)
	}
	w.base = newMemory(tables, func() time.Time { return w.clock }, newDice(seed, "store", 0))
	w.base.wrote = func(who string, t *table, key store.Key, old, now value.Item) {
		w.changes++
		w.backwards(who, t, key, old, now)
		w.guards(who, t, key, old, now)
		w.trims.wrote(who, t, key, old, now)
		if w.log != nil {
			w.log(fmt.Sprintf("    %s: %s was %s", who, refName(store.Ref{Table: t.Name, Key: key}), plain(old)))
			w.log(fmt.Sprintf("    %s: %s is  %s", who, refName(store.Ref{Table: t.Name, Key: key}), plain(now)))
		}
	}
	w.tells = slices.ContainsFunc(m.Rows, func(r *model.RowRule) bool { return r.Each != nil })
	w.app = newApp(w)
	w.deliver(way(newDice(w.seed, "way", 0).n(int(ways))))
	return w
}

// deliver says how the run delivers records, and gives the function its mapping.
func (w *world) deliver(by way) {
	w.way, w.mapping, w.trims = by, nil, nil
	w.base.keep = by == byFollower // a store of this machine; others lose nothing
	switch by {
	case byShard:
		w.mapping = newMapping(w, lambda.ByShard)
	case byItem:
		w.mapping = newMapping(w, lambda.ByItem)
	case byReader:
		w.trims = newTrims(w)
	}
}

// node is a process: its fibers share a clock, and die together.
type node struct {
	*world
	name    string
	skew    time.Duration
	fibers  []*fiber
	running *fiber // the one that runs, or ran last
	// Of an instance of a function:
	handler *lambda.Handler
	link    *link
	busy    bool
	of      *shard // that it was begun for
	// Of a process that shares streams:
	host   *host
	reader *live.Reader
	stop   context.CancelFunc
	lost   map[*shard]bool // shards that others have taken over from it
}

// spawn starts a process that follows all streams, or its share of them.
func (w *world) spawn() *node {
	n := w.start()
	if w.way == byReader {
		n.share()
	} else {
		n.follow(&runner.Follower{Runner: n.runner(nil)})
	}
	return n
}

func (w *world) start() *node {
	w.born++
	n := &node{world: w, name: fmt.Sprintf("p%d", w.born)}
	if w.strike(Skew) {
		n.skew = time.Duration(w.faults.dice.n(1200)-600) * time.Second
	}
	w.nodes = append(w.nodes, n)
	return n
}

// now is the time by the process's clock, which is wrong and is set now and then.
func (n *node) now() time.Time {
	if n.might(ClockBack, 0.2) {
		n.skew -= time.Duration(n.faults.dice.n(300)) * time.Second
	}
	return n.clock.Add(n.skew)
}

func (n *node) mono() time.Time { return n.clock }

func (n *node) fiber(name string, do func(f *fiber) error) {
	f := newFiber(n.name+"/"+name, do)
	f.host = n
	n.fibers = append(n.fibers, f)
}

// runner is the real one, behind a fiber's link; behind that of whichever is running
// when there is none.
func (n *node) runner(f *fiber) *runner.Runner {
	return n.runnerOver(&link{world: n.world, f: f, n: n})
}

func (n *node) runnerOver(l *link) *runner.Runner {
	r := &runner.Runner{Model: n.model, Store: l, Now: n.now, Mono: n.mono, Alone: true, Mover: &migrate.Mover{Model: n.model, Store: l, Now: n.now}}
	if len(n.model.Searches) > 0 {
		r.Index = indexLink{l}
	}
	return r
}

// follow has the process follow streams.
func (n *node) follow(follower *runner.Follower) {
	gather := 0
	if d := newDice(n.seed, "gather", n.born); follower.Source == nil && d.chance(0.4) {
		gather = 1 + d.n(40)
		n.counted["gathers documents"]++
	}
	for _, g := range n.groups() {
		n.fiber(g, func(f *fiber) error {
			for {
				s := follower.Stepper(g)
				s.Gather(gather)
				f.err = n.until(f, s)
				n.note(f.name, fmt.Sprint("again: ", f.err), nil)
				f.idle = true
				f.pause()
			}
		})
	}
}

// until steps until something fails.
func (n *node) until(f *fiber, s *runner.Stepper) error {
	for {
		read, left, err := s.Step(context.Background())
		if err != nil {
			return err
		}
		switch {
		case read > 0 || left:
		case n.reader != nil:
			n.await(f)
		default:
			f.idle = true
			f.pause()
		}
	}
}

var _ search.Index = indexLink{}
