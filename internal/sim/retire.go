package sim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// In some runs with builds a derivation is removed from the model once it is live: programs with the model without it are refused
// until it is retired, and those with it from then on. What it has shown is removed, by processes that are killed,
// paused and work side by side, while the application writes and consumers with the new model follow. The model of the world is
// the new one from the beginning on: the application never writes what is derived by the old one, and the oracle knows
// nothing of it, so whatever is left of it in the end is too much.
//
// Left out are histories and feeds, which no row tells, search indexes, which go with their files, and what a
// derivation that goes has added to a ledger that goes on.

// What runs with a removal come to.
const (
	removes        = "removals of retired derivations"
	removesBuilt   = "removals of what a build made"
	removesAll     = "removals of all that rows of an entity show"
	removesBeside  = "removals beside what goes on"
	removesCopies  = "removals of copies"
	removersKilled = "removers killed"
	removersPaused = "removers paused"
	removersTwo    = "removers at work beside another"
	removalsEnd    = "removals that end while faults strike"
	removalRefuses = "programs refused by a retirement"
	removalTurns   = 1200 // in which faults strike
	retiredAtOnce  = 3    // derivations
)

// removals are states that some runs with a removal must reach.
var removals = []string{removes, removesBuilt, removesAll, removesBeside, removersKilled, removersPaused, removersTwo, removalsEnd, removalRefuses}

// removal names the derivations that a run removes.
type removal struct {
	earlier *model.Model
	gone    []string // derivations that the later model does not have, sorted; nil in a run without a removal
	unbuilt bool     // they are live from the stream, and nothing is built
}

// removalOf returns the model that a run of a model ends with, and the removal.
func removalOf(m *model.Model, seed uint64) (*model.Model, removal) {
	d := newDice(seed, "retire "+m.Name, 0)
	if !d.chance(0.3) {
		return m, removal{}
	}
	unbuilt := d.chance(0.5)
	if later, gone, ok := laterOf(d, m); ok {
		return later, removal{m, gone, unbuilt}
	}
	return m, removal{}
}

// laterOf returns the model without some of its derivations, and these; ok is false if nothing can be left out.
func laterOf(d *dice, m *model.Model) (later *model.Model, gone []string, ok bool) {
	later = m
	all := m.Derivations()
	for range 4 * retiredAtOnce {
		x := pick(d, all)
		if isSearch(x.Name) || x.History || len(gone) >= retiredAtOnce {
			continue
		}
		if next, ok := withoutDerivation(later, &x); ok {
			later = next
		}
		gone = derivationsLacking(m, later)
		if d.chance(0.3) && len(gone) > 0 {
			break
		}
	}
	return later, gone, len(gone) > 0
}

// withoutDerivation returns a model without a derivation, and without what only this derivation needs. ok is false if the rest is no
// model, or derives something otherwise.
func withoutDerivation(m *model.Model, d *model.Derivation) (*model.Model, bool) {
	_, attr, _ := strings.Cut(d.Name, ".")
	at := []string{"derive", d.Name}
	for _, also := range [][][]string{{{"entities", d.Into}}, {{"entities", d.Into, "attributes", attr}}, nil} {
		into := m.Entity(d.Into)
		if into == nil || len(also) > 0 && len(also[0]) == 2 && !into.Derived {
			continue
		}
		next, err := m.Without(append([][]string{at, {"queries"}}, also...)...)
		if err != nil || len(next.Derivations()) == 0 {
			continue
		}
		if is := next.Entity(d.Into); is != nil && is.Derived != into.Derived { // its rows would be the application's
			continue
		}
		changed := slices.ContainsFunc(next.Derivations(), func(n model.Derivation) bool {
			return !slices.ContainsFunc(m.Derivations(), func(o model.Derivation) bool { return o.Name == n.Name && o.Hash == n.Hash })
		})
		if history := slices.ContainsFunc(derivationsLacking(m, next), func(name string) bool {
			return slices.ContainsFunc(m.Derivations(), func(o model.Derivation) bool { return o.Name == name && (o.History || isSearch(name)) })
		}); !changed && !history {
			return next, true
		}
	}
	return nil, false
}

func isSearch(name string) bool {
	_, is := model.SearchOf(name)
	return is
}

// derivationsLacking returns the derivations of a model that a later one does not have.
func derivationsLacking(m, later *model.Model) (names []string) {
	for _, d := range m.Derivations() {
		if !slices.ContainsFunc(later.Derivations(), func(l model.Derivation) bool { return l.Name == d.Name }) {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}

// retireDerivations lets a newer program take over that lacks some derivations, and removes their values.
func (b *builds) retireDerivations() {
	start := func(what string, with *model.Model) {
		b.program = with
		if err := b.runAlone(what, func(r *runner.Runner) error { return r.Start(context.Background()) }); !errors.Is(err, catalog.ErrRefused) {
			b.addFailure(Reordered, "retire: %s is not refused: %v", what, err)
		}
	}
	if b.isUnwritten() { // then retired values may be derived again
		return
	}
	b.faults.over, b.calm = true, true // these commands are done by hand, until they succeed
	err := b.runAlone("a program with what goes", func(r *runner.Runner) error { return r.Start(context.Background()) })
	if errors.Is(err, catalog.ErrRefused) { // the catalog is lost, or was never written
		return
	}
	if err != nil {
		b.addFailure(Stuck, "retire: before it, a program does not start: %v", err)
		return
	}
	b.countRemoved()
	start("a program that lacks what is live", b.model)
	err = b.runAlone("retire", func(r *runner.Runner) error {
		_, err := r.Catalog.Retire(context.Background(), false)
		return err
	})
	if err != nil {
		b.addFailure(Stuck, "retire: %v", err)
		return
	}
	b.base.durable() // the command has ended
	start("a program with what is retired", b.removal.earlier)
	b.program, b.names, b.again = b.model, buildsOf(b.model), false
	for range 3 {
		b.doNextAct() // programs with the earlier model meet these, and are refused
	}
	b.faults.over, b.calm = false, false
	b.runRough(removalTurns / 6)
	b.allDie()
	if b.settleRemovals("within the hour", func(each []*build.Removed) bool {
		return !slices.ContainsFunc(each, func(r *build.Removed) bool { return r.Why == "" })
	}); len(b.failures) > 0 {
		return
	}
	b.clock = b.clock.Add(2 * build.InUse)
	b.base.durable()
	b.acts += 15
	b.removing = true
	b.runRough(removalTurns)
	b.faults.over, b.calm = true, true
	for _, n := range b.builderNodes() {
		n.killProcess()
	}
	b.settle()
	b.app.copies = nil // the application puts nothing of before any more
	b.settleRemovals("in the end", func(each []*build.Removed) bool {
		return !slices.ContainsFunc(each, func(r *build.Removed) bool { return r.Why != "" })
	})
	b.settle()
	if b.judgeState("after the removal") {
		b.nothingLeft()
	}
	for _, d := range b.runVerify() {
		if d.Derivation != "dead letter" && len(b.failures) == 0 && len(b.operatorLetters()) == 0 { // these stay until they are discarded
			b.addFailure(Reordered, "verify: after the removal it finds %+v", d)
		}
	}
}

// isUnwritten reports whether nothing was written to the sources of the retired derivations.
func (b *builds) isUnwritten() bool {
	return !slices.ContainsFunc(b.removal.earlier.Derivations(), func(d model.Derivation) bool {
		return slices.Contains(b.removal.gone, d.Name) && slices.ContainsFunc(d.Reads, func(t string) bool {
			return slices.ContainsFunc(b.base.tables[t].shards, func(s *shard) bool { return len(s.records) > 0 })
		})
	})
}

// countRemoved counts the kinds of removals of the run.
func (b *builds) countRemoved() {
	b.counted[removes]++
	if len(b.shownBuilds()) > 0 {
		b.counted[removesBuilt]++
	}
	was := b.removal.earlier
	for _, e := range was.Entities {
		for _, v := range e.Values {
			if !slices.Contains(b.removal.gone, v.Name) {
				continue
			}
			if now := b.model.Entity(e.Name); now == nil || len(now.Values) == 0 && !now.IsRecomputed() {
				b.counted[removesAll]++
			} else {
				b.counted[removesBeside]++
			}
		}
	}
	for _, r := range was.Rows {
		if slices.Contains(b.removal.gone, r.Name) {
			b.counted[removesCopies]++
		}
	}
}

// settleRemovals lets a remover that nothing hinders do all that it can, and fails unless its decisions are as they must be.
func (b *builds) settleRemovals(when string, is func(each []*build.Removed) bool) {
	b.faults.over, b.calm = true, true
	var each []*build.Removed
	var err error
	for range buildTries {
		if err = b.runAlone("the last remover", func(r *runner.Runner) (err error) {
			each, err = b.runRemover(r)
			return err
		}); err == nil {
			break
		}
	}
	if err != nil || len(each) == 0 || !is(each) {
		as := seq.Map(each, func(r *build.Removed) build.Removed { return *r })
		b.addFailure(Stuck, "retire: the removal %s is %+v: %v", when, as, err)
	}
}

// runRemover does all that a remover can do now.
func (b *builds) runRemover(r *runner.Runner) (each []*build.Removed, err error) {
	x := &build.Removal{Builder: b.newBuilder(r), Only: b.removal.gone}
	if each, err = x.Begin(context.Background()); err != nil {
		return nil, err
	}
	if err = x.Run(context.Background()); err == nil {
		_, _, err = x.Prune(context.Background())
	}
	return each, err
}

// nothingLeft compares weir's own table with the derivations of the later model.
func (b *builds) nothingLeft() {
	b.base.tables[owntable.TableName].eachRow(func(key store.Key, row value.Item) {
		if what := b.ofRetired(key.Partition.Text(), key.Sort.Text()); what != "" {
			b.addFailure(Doubled, "retire: %s is left of %s: %s", what, strings.Join(b.removal.gone, ", "), refName(store.Ref{Table: owntable.TableName, Key: key}))
		}
	})
	for _, is := range b.catalogRow().Builds {
		if !b.model.CanBuild(is.Entity) {
			b.addFailure(Doubled, "retire: a build is left of %s", is.Entity)
		}
	}
}

// ofRetired names the kind of a row of the own table that belongs to retired derivations alone; "" for none.
func (b *builds) ofRetired(partition, sort string) string {
	kind, rest, _ := strings.Cut(partition, "|")
	name, rest, _ := strings.Cut(rest, "|")
	if name, _, _ = strings.Cut(name, "#"); name != b.model.Name {
		return ""
	}
	switch kind {
	case owntable.KindFact:
		list, _, _ := strings.Cut(rest, "|")
		if slices.Contains(b.removal.gone, list) {
			return "a fact"
		}
	case owntable.KindFollow:
		if !slices.ContainsFunc(b.model.Follows, func(f *model.Follow) bool { return strings.HasPrefix(rest, f.Source.Name+"."+f.Field.Name+"|") }) {
			return "a followed value"
		}
	case owntable.KindLedger, owntable.KindSet, owntable.KindValue, owntable.KindMark:
		row, told := owntable.RowOf(rest)
		if !told || b.model.Table(row.Table) == nil {
			return ""
		}
		counts := func(m *model.Model) bool {
			return slices.ContainsFunc(m.Entities, func(e *model.Entity) bool {
				return (len(e.Values) > 0 || e.IsRecomputed()) && e.CanBe(row) && (kind != owntable.KindValue || countsValue(e, sort))
			})
		}
		if counts(b.removal.earlier) && !counts(b.model) && (kind != owntable.KindMark || !b.hasTTL(partition, sort)) {
			return "a " + kind
		}
	}
	return ""
}

// hasTTL reports whether a row of the own table has a TTL.
func (b *builds) hasTTL(partition, sort string) bool {
	return b.base.tables[owntable.TableName].get(store.Key{Partition: value.OfString(partition), Sort: value.OfString(sort)}).Has(owntable.Expiry)
}

// countsValue reports whether a row with a sort key counts a value of a tally on rows of an entity.
func countsValue(e *model.Entity, sort string) bool {
	return slices.ContainsFunc(e.Values, func(t *model.Tally) bool { return strings.HasPrefix(sort, t.Attr+"|") })
}
