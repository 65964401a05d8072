package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
)

// In some runs all that rows tell is built, while the application writes and consumers
// follow: at any moment, by builders that are killed, paused and work side by side. Builders
// run as fibers, so everything goes wrong in their calls that goes wrong in those of
// consumers. In the end all state must equal the count of the oracle from all rows, including
// those whose records no consumer had. History is left out: no row tells it.
//
// These runs have no large rows and no numbers that no sum can hold: what is parked is
// another matter. And the streams of DynamoDB, shared by processes (byReader), are left out.

// began is how a run with builds begins.
type began string

// The beginnings.
const (
	beganWithRows    began = "builds over existing rows"     // that were written before weir was there
	beganLive        began = "builds of what was live"       // that are told to build again
	beganWithGap     began = "builds after a gap"            // records are lost
	beganWithChanged began = "builds of changed derivations" // what rows show is of another definition
	again                  = time.Duration(25 * time.Hour)   // until the audit
	mostBuilders           = 2                               // at a time
	buildTurns             = 2500                            // in which faults strike
	handTurns              = 500                             // likewise, of each part of a hand-over
	buildTries             = 8                               // of a builder that nothing hinders
)

// RunBuilds does one run of a model with builds. The same model, seed and options give the
// same outcome.
func RunBuilds(m *model.Model, seed uint64, o Options) Outcome {
	o.Builds = true
	later, removal := removalOf(m, seed)
	w := newWorld(later, seed, o)
	w.program = m
	w.enableMigrations()
	b := &builds{world: w, d: newDice(seed, "builds", 0), names: buildsOf(m), removal: removal}
	acts := b.runBuilds(o)
	return w.finishRun(acts)
}

// builds is a run with builds.
type builds struct {
	*world
	d      *dice
	names  []string // of all builds of the model
	again  bool     // whether builders are told to build live derivations again
	act    int      // the number of the application's next act
	acts   int
	skip   map[int]bool
	lapsed int // acts before consumers could read anything

	removal  removal
	removing bool // builders are removers
}

// buildsOf returns the names of all builds of a model.
func buildsOf(m *model.Model) []string { return slices.Compact(slices.Sorted(maps.Values(m.Builds()))) }

func (b *builds) runBuilds(o Options) (acts int) {
	b.skip, b.acts = o.Skip, 50+b.d.n(60)
	b.lapsed = 10 + b.d.n(b.acts/2)
	if len(b.names) == 0 {
		return 0
	}
	if b.removal.unbuilt {
		b.prepareBuilds(beganLive)
		b.retireDerivations()
		return b.acts
	}
	began := pick(b.d, []began{beganWithRows, beganWithRows, beganLive, beganWithGap, beganWithChanged})
	b.counted[string(began)]++
	b.prepareBuilds(began)
	b.runRough(buildTurns)
	b.settleBuilds(owntable.BuildLive)
	if len(b.removal.gone) > 0 {
		if len(b.failures) == 0 {
			b.retireDerivations()
		}
		return b.acts
	}
	if b.judgeState("once it is live") {
		for range 8 {
			b.doNextAct()
		}
		b.settle()
		b.judgeState("after it was live")
	}
	if len(b.failures) > 0 {
		return b.acts
	}
	b.again = false
	b.clock = b.clock.Add(again)
	b.base.durable() // a power cut never takes changes of a day ago
	b.settleBuilds(owntable.BuildVerified)
	if b.judgeState("after the audit") && len(b.operatorLetters()) == 0 { // verify reports dead letters
		if found := b.runVerify(); len(found) > 0 {
			b.addFailure(Reordered, "verify: after the audit it finds %+v", found[0])
		}
		b.handOver()
	}
	return b.acts
}

// handOver lets verified derivations go over from marks to positions while everything goes wrong
// again: first while shards are cut, and then without marks.
func (b *builds) handOver() {
	if len(b.failures) > 0 {
		return
	}
	for range 2 {
		b.acts += 15
		b.faults.over, b.calm = false, false
		b.runRough(handTurns)
		b.clock = b.clock.Add(2 * build.InUse)
		b.base.durable()
		if !b.settleBuilds(owntable.BuildVerified) { // a power cut took records that were read
			return
		}
		b.judgeState("while it goes over to positions")
	}
	for _, is := range b.catalogRow().Builds.Counting() {
		if !is.HandOver.Passed.IsZero() {
			b.counted["builds that go over to positions"]++
		}
		if !is.HandOver.Over.IsZero() {
			b.counted["builds without marks"]++
		}
	}
}

// doNextAct lets the application do its next act.
func (b *builds) doNextAct() {
	if !b.skip[b.act] {
		b.app.doAct(b.act)
	}
	b.act++
}

// prepareBuilds brings the run to where builders may begin.
func (b *builds) prepareBuilds(how began) {
	b.faults.spells = newSpells(b.seed)
	b.faults.over, b.calm = true, true
	defer func() { b.faults.over, b.calm = false, false }()
	some := func() {
		for range b.lapsed {
			b.doNextAct()
		}
	}
	b.again = how == beganLive || how == beganWithGap
	if how == beganWithRows {
		some()
		b.skipAll()
		return
	}
	b.assume = true // there is nothing before the first act
	some()
	b.settle()
	b.allDie()
	b.assume = false
	switch how {
	case beganWithGap:
		some()
		b.skipAll()
	case beganWithChanged:
		b.changeDefinition()
	}
}

// skipAll makes consumers begin behind all records that there are.
func (b *builds) skipAll() {
	for _, mt := range b.model.Tables {
		for _, s := range b.base.tables[mt.Name].shards {
			if s.seen = len(s.records); s.seen == 0 {
				continue
			}
			at := s.records[s.seen-1].Position
			ref := owntable.Checkpoint(b.model.Name, mt.Name, s.ID)
			if _, err := b.base.Write(context.Background(), []store.Write{owntable.OvertakeCheckpoint(ref, at)}); err != nil {
				b.addFailure(Stuck, "%v", err)
			}
		}
	}
	b.base.durable()
	if b.mapping != nil {
		b.mapping.findRecords()
		for _, q := range b.mapping.queues {
			q.first, q.done = q.taken, q.taken // nor do earlier records come again
		}
	}
}

// changeDefinition gives the live state of some derivation another definition.
func (b *builds) changeDefinition() {
	all := b.program.Builds()
	changed := pick(b.d, slices.Sorted(maps.Keys(all)))
	err := b.runAlone("the older program", func(r *runner.Runner) error {
		_, err := r.Catalog.Change(context.Background(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
			next := was.Clone()
			d, is := next.Derivations[changed]
			if !is { // nothing was read yet
				return was, nil
			}
			d.Hash = "8-1-older"
			next.Derivations[changed] = d
			return next, nil
		})
		return err
	})
	if err != nil {
		b.addFailure(Stuck, "%v", err)
	}
	b.base.durable()
}

// runRough is the part of the run in which faults strike, and builders come and go.
func (b *builds) runRough(turns int) {
	crowd, first := 1, b.d.n(turns/6)
	for turn := 0; turn < turns && len(b.failures) == 0; turn++ {
		doBelow(b.sched.n(100), []choice{{6, func() {
			if b.act < b.acts {
				b.doNextAct()
			}
		}}, {12, b.showStreams}, {15, b.advanceClock}, {16, func() {
			b.app.sweepExpired(b.sched)
		}}, {17, b.disturbAndRedeliver}, {18, func() {
			if b.strike(TwoWorkers) {
				crowd = 1 + b.faults.dice.n(3)
			}
		}}, {21, func() {
			if running := b.builderNodes(); turn >= first && len(running) < mostBuilders {
				if b.startBuilder(); b.removing && len(running) > 0 {
					b.counted[removersTwo]++
				}
			} else if len(running) > 0 && b.sched.chance(0.2) {
				pick(b.sched, running).killProcess()
				b.counted[b.roleName("builders killed", removersKilled)]++
			} else if len(running) > 0 && b.sched.chance(0.5) { // the rows that it has read grow old meanwhile
				for _, f := range pick(b.sched, running).fibers {
					f.asleep = max(f.asleep, 50+b.sched.n(300))
				}
				b.counted[b.roleName("builders paused", removersPaused)]++
			}
		}}, {100, func() {
			b.deliverMore(crowd)
			b.resumeFiber()
		}}})
	}
	b.faults.fair = false
}

// builderNodes returns the processes that build.
func (w *world) builderNodes() (out []*node) {
	for _, n := range w.nodes {
		if n.builds {
			out = append(out, n)
		}
	}
	return out
}

// startBuilder starts a process that builds. What goes wrong ends it; another one goes on.
func (b *builds) startBuilder() {
	b.born++
	n := &node{world: b.world, name: fmt.Sprintf("b%d", b.born), builds: true}
	b.nodes = append(b.nodes, n)
	n.startFiber("build", func(f *fiber) error {
		var err error
		if b.removing {
			_, err = b.runRemover(n.newRunner(f))
		} else {
			_, err = b.runBuilders(n.newRunner(f))
		}
		b.traceStep(f.name, fmt.Sprint("ends: ", err), nil)
		if err == nil {
			b.counted[b.roleName("builds that end while faults strike", removalsEnd)]++
		}
		return nil
	})
}

// roleName is the name under which a run counts its builders, or its removers.
func (b *builds) roleName(builders, removers string) string {
	if b.removing {
		return removers
	}
	return builders
}

// newBuilder is a builder of all that the model's rows tell.
func (b *builds) newBuilder(r *runner.Runner) *build.Builder {
	return &build.Builder{Runner: r, Contributions: kinds.Contributions, Names: b.names, Again: b.again, Segments: 1 + b.d.n(3)}
}

// runBuilders does all that a builder can do now.
func (b *builds) runBuilders(r *runner.Runner) (states []build.Status, err error) {
	of := b.newBuilder(r)
	if states, err = of.Run(context.Background()); err == nil {
		_, err = of.RemoveMarks(context.Background())
	}
	return states, err
}

// settleBuilds lets a builder that nothing hinders take all builds to a state, and everything else
// catch up. It reports false if it is too late for the audit.
func (b *builds) settleBuilds(to owntable.BuildState) bool {
	b.faults.over, b.calm = true, true
	for _, n := range b.builderNodes() {
		n.killProcess()
	}
	for tries := 1; len(b.failures) == 0; tries++ {
		var states []build.Status
		err := b.runAlone("the last builder", func(r *runner.Runner) (err error) {
			states, err = b.runBuilders(r)
			return err
		})
		if err == nil && !slices.ContainsFunc(states, func(s build.Status) bool { return s.State != to }) {
			break
		}
		if to == owntable.BuildVerified && errors.Is(err, catalog.ErrUnbuilt) { // a stream that no record came from was never read
			b.counted["builds that are too old for a stream that was not read"]++
			return false
		}
		if tries == buildTries {
			b.addFailure(Stuck, "the builds do not become %s: %v %v", to, states, err)
		}
		b.settle()
	}
	b.settle()
	return true
}

// judgeState compares all state with the truth.
func (b *builds) judgeState(when string) bool {
	if len(b.failures) > 0 {
		return false
	}
	t := b.app.computeTruth()
	t.compareRows()
	t.compareSets()
	for i := range b.failures {
		b.failures[i].What = when + ": " + b.failures[i].What
	}
	return len(b.failures) == 0
}

// shownBuilds are the builds that rows show.
func (w *world) shownBuilds() (out []owntable.Build) {
	return slices.DeleteFunc(w.catalogRow().Builds.Counting(), func(b owntable.Build) bool { return !b.State.IsShown() })
}

// catalogRow is the catalog as it is. It is also asked for during a write, so it does not
// call the store.
func (w *world) catalogRow() (row owntable.CatalogRow) {
	if !w.built {
		return row
	}
	row, err := owntable.DecodeCatalog(w.base.tables[owntable.TableName].get(owntable.Catalog(w.model.Name).Key))
	if err != nil {
		w.addFailure(Stuck, "%v", err)
	}
	return row
}

// catalogOf is the catalog of a program, in runs that have one.
func (w *world) catalogOf(s store.Store, now func() time.Time) *catalog.Catalog {
	if !w.built {
		return nil
	}
	return catalog.New(w.program, s, now, catalog.Options{Assume: w.assume, Alone: true})
}
