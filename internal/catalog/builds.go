package catalog

import (
	"maps"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
)

// The builds of the catalog (package build) change here, in one write with its
// entries of the derivations. So a program is admitted by exactly the definitions that are
// counted, and no program applies a batch to a build that it does not know.
//
// A derivation that is new, unbuilt or of another definition is Building while the first
// build that has it runs: it is counted in the build's ledgers only, and rows go on showing
// their values. The others of the entity stay live, and are counted twice over: in the
// ledgers that rows show, and in those of the build.

// BuildLife is how long after its announcement a build may still be worked at: its marks
// and its versions are made for that.
const BuildLife = 25 * 24 * time.Hour

// AuditAfter is how long after its announcement a build is audited: a stream keeps its
// records for 24 hours, and an invocation lives for 15 minutes.
const AuditAfter = 24*time.Hour + 15*time.Minute

// versions is by how many versions a generation is above the one before. A ledger begins at
// the time in microseconds at which it is made, and rises by one with each batch; a build
// and the batches that do not know of it live for less than that.
const versions = BuildLife + 5*24*time.Hour

// Plan returns the steps that build the tallies of entities: the builds that were
// begun before and are to be worked at, and the entities of which a build is to be
// announced. These have a tally that is not live by the program's definition, or all is to
// be built again. Again is also a build that is live and was announced before asked, unless
// its audit is due, which puts right all that is wrong since. A build that was announced after
// asked is the request, whichever builder announced it.
func (p *Program) Plan(row owntable.CatalogRow, entities []string, again bool, asked, now time.Time) (begun []owntable.Build, fresh []string) {
	for _, e := range entities {
		shown, building := row.Builds.Of(e)
		age := now.Sub(shown.Announced)
		repeats := again && (age > BuildLife || age < AuditAfter && shown.Announced.Before(asked))
		lacks := p.lacksTally(row, e)
		switch {
		case building.State != "":
			begun = append(begun, building)
		case !lacks && shown.State.IsShown() && shown.State != owntable.BuildVerified && !repeats:
			begun = append(begun, shown)
		case lacks || again:
			fresh = append(fresh, e)
		}
	}
	return begun, fresh
}

// Announce decides the next catalog when the tallies of entities are to be built
// (Plan). It announces one build, so that each has a number of its own; call it again until
// next is was. Then it returns all builds that are to be worked at. The error wraps
// ErrRefused if the program could not derive when all are announced, or if a derivation to announce comes from a
// table whose stream is off.
func (p *Program) Announce(was owntable.CatalogRow, tables map[string]store.Identity, entities []string, again bool, asked, now time.Time) (next owntable.CatalogRow, builds []owntable.Build, err error) {
	entered := was.Clone()
	p.enterDerivations(&entered, Found{Now: now}) // derivations that need no build, and were not entered when the program was refused
	begins := p.BegunHistories(entered)
	p.beginHistory(&entered, now)
	builds, fresh := p.Plan(entered, entities, again, asked, now)
	begins = append(begins, seq.Flat(fresh, func(e string) []string { return p.NotLive(entered, e, true) })...)
	if err := p.refuseUnreadable(begins, tables); err != nil {
		return was, nil, err
	}
	next, all := entered, entered.Clone()
	for i, e := range fresh {
		p.enterBuild(&all, e, now)
		if i == 0 {
			next = all.Clone()
		}
		all.Count++
	}
	if len(builds)+len(fresh) == 0 && next.Same(was) {
		return was, nil, nil
	}
	return next, builds, p.refuseDifferent(all, now)
}

// BegunHistories returns the history that a build begins, because it is not derived by the program's
// definition yet, sorted. Among it are feeds that go on with the lists of subscribers that they have.
func (p *Program) BegunHistories(row owntable.CatalogRow) (names []string) {
	for i := range p.Derivations {
		d := &p.Derivations[i]
		is := row.Derivations[d.Name]
		live := is.Hash == d.Hash && (is.State == owntable.Live || is.State == owntable.Verified)
		if d.History && !live && (p.built[d.Name] == "" || goesOn(d, is)) {
			names = append(names, d.Name)
		}
	}
	return names
}

// goesOn reports whether a feed is live by another definition whose lists of subscribers are the same, so that it needs
// no build.
func goesOn(d *model.Derivation, is owntable.Derived) bool {
	return (is.State == owntable.Live || is.State == owntable.Verified) && is.Hash != d.Hash && d.SameLists(is.Hash)
}

// beginHistory enters the history that is not derived by the program's definition yet. No row tells it: it is complete
// from now on, and the catalog keeps since when that is.
func (p *Program) beginHistory(row *owntable.CatalogRow, now time.Time) {
	names := p.BegunHistories(*row)
	for i := range p.Derivations {
		d := &p.Derivations[i]
		if !slices.Contains(names, d.Name) {
			continue
		}
		next := owntable.Derived{Hash: d.Hash, Generation: 1, State: owntable.Live, Since: now}
		if is := row.Derivations[d.Name]; goesOn(d, is) {
			next.Generation, next.State = is.Generation, is.State
		}
		row.Derivations[d.Name] = next
	}
}

// LackingBuilds returns the entities that have tallies which are not live by the program's
// definitions and can be built, sorted. Those that are being built are among them.
func (p *Program) LackingBuilds(row owntable.CatalogRow) (entities []string) {
	return seq.Where(slices.Compact(slices.Sorted(maps.Values(p.built))), func(e string) bool { return p.lacksTally(row, e) })
}

// lacksTally reports whether an entity has a tally that is not live by the program's definition.
func (p *Program) lacksTally(row owntable.CatalogRow, entity string) bool {
	return len(p.NotLive(row, entity, false)) > 0
}

// NotLive returns the derivations of a build that are not live by the program's definition,
// or all of them, sorted.
func (p *Program) NotLive(row owntable.CatalogRow, build string, all bool) (names []string) {
	for _, i := range p.tallyIndexes(build) {
		d := &p.Derivations[i]
		is := row.Derivations[d.Name]
		if all || is.State != owntable.Live && is.State != owntable.Verified || is.Hash != d.Hash && !goesOn(d, is) {
			names = append(names, d.Name)
		}
	}
	return names
}

// tallyIndexes returns the indexes of an entity's tallies.
func (p *Program) tallyIndexes(entity string) (out []int) {
	for i := range p.Derivations {
		if p.built[p.Derivations[i].Name] == entity {
			out = append(out, i)
		}
	}
	return out
}

// enterBuild enters a new build of an entity, and the derivations that it builds.
func (p *Program) enterBuild(row *owntable.CatalogRow, entity string, now time.Time) {
	b := owntable.Build{
		Generation: row.Count + 2, Entity: entity, State: owntable.BuildBuilding, Since: now, Announced: now, Base: now.UnixMicro(),
	}
	for _, other := range row.Builds {
		if other.Entity == entity {
			b.Base = max(b.Base, other.Base)
		}
	}
	b.Base += versions.Microseconds()
	row.Builds = append(row.Builds, b)
	for _, i := range p.tallyIndexes(entity) {
		d := &p.Derivations[i]
		is := row.Derivations[d.Name]
		if is.Hash != d.Hash || is.State != owntable.Live && is.State != owntable.Verified {
			row.Derivations[d.Name] = owntable.Derived{Hash: d.Hash, Generation: b.Generation, State: owntable.Building, Since: now}
		}
	}
}

// Moment is when a build goes on: the time by the store's clock and, where the store numbers
// all changes in one order, a position that is not below any change until then.
type Moment struct {
	Time  time.Time
	Given events.Position
}

// Advance decides the next catalog when a build has reached a state. ok is false if
// it is no longer in the state that it was in.
func (p *Program) Advance(was owntable.CatalogRow, is owntable.Build, to owntable.BuildState, at Moment) (next owntable.CatalogRow, became owntable.Build, ok bool) {
	now := at.Time
	n := slices.IndexFunc(was.Builds, func(o owntable.Build) bool { return o.Generation == is.Generation })
	if n < 0 || was.Builds[n].State != is.State {
		is.State = owntable.BuildDropped
		if n >= 0 {
			is = was.Builds[n]
		}
		return was, is, false
	}
	next = was.Clone()
	b := &next.Builds[n]
	b.State, b.Since = to, now
	p.handOver(b, at)
	state := owntable.Live
	if to == owntable.BuildVerified {
		state = owntable.Verified
	}
	for _, i := range p.tallyIndexes(b.Entity) {
		d := &p.Derivations[i]
		if is := next.Derivations[d.Name]; is.Hash == d.Hash && is.State != owntable.Retired {
			next.Derivations[d.Name] = owntable.Derived{Hash: d.Hash, Generation: b.Generation, State: state, Since: now}
		}
	}
	for i := range next.Builds {
		if o := &next.Builds[i]; i != n && o.Entity == b.Entity && o.State.IsShown() {
			o.State, o.Since = owntable.BuildDropped, now
		}
	}
	return next, *b, true
}

// handOverAfter is how long after its announcement a hand-over is. The times of records are
// approximate: this is larger than their error, and than the life of a batch or invocation.
const handOverAfter = time.Hour

// handOver announces that a verified build's ledgers go over to positions.
func (p *Program) handOver(b *owntable.Build, at Moment) {
	if b.State != owntable.BuildVerified || b.HandOver.Announced() || !p.HasMarks(b.Entity) {
		return
	}
	b.HandOver.At, b.HandOver.After = at.Time.Add(handOverAfter), at.Given
}

// HasMarks reports whether a build has ledgers or sets, and therefore marks until it has
// handed over.
func (p *Program) HasMarks(build string) bool {
	return slices.ContainsFunc(p.tallyIndexes(build), func(i int) bool { return p.Derivations[i].Tally })
}

// HandOver decides the next catalog when builds could go over to positions: it
// announces that where it was not announced. waits tells of builds how many shards have
// records to be counted by mark; those with 0 have passed.
func (p *Program) HandOver(was owntable.CatalogRow, waits map[int64]int, at Moment) owntable.CatalogRow {
	next := was.Clone()
	for i := range next.Builds {
		b := &next.Builds[i]
		p.handOver(b, at)
		if left, known := waits[b.Generation]; known && left == 0 && b.HandOver.Announced() && b.HandOver.Passed.IsZero() {
			b.HandOver.Passed = at.Time
		}
	}
	return next
}

// WithoutMarks decides the next catalog when the marks of a build are gone.
func WithoutMarks(was owntable.CatalogRow, generation int64, now time.Time) owntable.CatalogRow {
	next := was.Clone()
	for i := range next.Builds {
		if b := &next.Builds[i]; b.Generation == generation && !b.HandOver.Passed.IsZero() && b.HandOver.Over.IsZero() {
			b.HandOver.Over = now
		}
	}
	return next
}

// Abort decides the next catalog when builds of entities are ended that rows do not
// show yet, and returns the builds that are dropped. Derivations that were building are unbuilt again.
func Abort(was owntable.CatalogRow, entities []string, now time.Time) (next owntable.CatalogRow, dropped []owntable.Build) {
	next = was.Clone()
	for i := range next.Builds {
		b := &next.Builds[i]
		if !slices.Contains(entities, b.Entity) || b.State.IsShown() {
			continue
		}
		if b.State == owntable.BuildBuilding {
			b.State, b.Since = owntable.BuildDropped, now
		}
		dropped = append(dropped, *b)
	}
	for name, is := range next.Derivations {
		of := func(b owntable.Build) bool { return b.Generation == is.Generation }
		if is.State == owntable.Building && slices.ContainsFunc(dropped, of) {
			is.State, is.Since = owntable.Unbuilt, now
			next.Derivations[name] = is
		}
	}
	return next, dropped
}

// ForgetBuilds leaves out builds whose rows are removed.
func ForgetBuilds(was owntable.CatalogRow, gone []owntable.Build) owntable.CatalogRow {
	next := was.Clone()
	next.Builds = slices.DeleteFunc(next.Builds, func(b owntable.Build) bool {
		return b.State == owntable.BuildDropped && slices.ContainsFunc(gone, func(o owntable.Build) bool { return o.Generation == b.Generation })
	})
	return next
}

// hasBuild reports whether ledgers of the derivation's entity are built or were built.
func (p *Program) hasBuild(row owntable.CatalogRow, name string) bool {
	return slices.ContainsFunc(row.Builds, func(b owntable.Build) bool {
		return b.State != owntable.BuildDropped && b.Entity == p.built[name]
	})
}

// ofBuild refuses a derivation whose values are in ledgers that this program does not
// know, or which lack changes.
func (p *Program) ofBuild(row owntable.CatalogRow, name string, reads []string, now time.Time) error {
	is := row.Derivations[name]
	shown, b := row.Builds.Of(p.built[name])
	if is.State != owntable.Building {
		b = shown
	}
	if p.built[name] == "" || b.Generation != is.Generation {
		return newRefusal(ErrDefinition, "model %s: %s is of generation %d since %s, which this program does not know: use the weir that built it", p.Model, name, is.Generation, formatTime(is.Since))
	}
	from := b.Announced
	if b.State == owntable.BuildVerified {
		from = from.Add(AuditAfter)
	}
	for _, t := range reads {
		if pin := row.Tables[t]; pin.Reader == "" && pin.Complete != owntable.CompleteWhole && now.Sub(from) > retention {
			return newRefusal(ErrUnbuilt, "model %s: %s was built of the rows of %s on %s, and the stream of %s was not read since, which keeps its records for 24 hours: changes would be missing. "+
				"Build it again: %s, after --abort if it is not live yet (%s)", p.Model, name, t, formatTime(from), t, p.Command("build", "--again"), guide)
		}
	}
	return nil
}
