// Package build derives state from existing rows, beside the live stream: for a first start
// on tables that have rows, for a definition that was added or changed, after a gap. It fills
// a new generation of ledgers, sets, facts and lists of subscribers (package owntable,
// build.go), which readers do not see until it is complete. Rows that rules make, and the rows
// they follow, are made right in place (inplace.go). History is in no row: it is complete
// from when its derivation began.
//
//	building   The build was announced. From the next batch on, consumers count each
//	           record in the new ledgers by contribution (package contribution). The
//	           builder scans the source rows and puts the contributions that have no mark yet.
//	showing    The scan is over: the ledgers are complete, and consumers show them. The
//	           builder scans the target rows and shows their ledgers.
//	live       All targets show the new ledgers.
//	verified   The audit, at least a day later, has put right the rows that a function counted and
//	           was invoked before the announcement, and has read every row and mark again.
//	           Where processes read the streams, the ledgers then go over from marks to
//	           positions, shard by shard, and the marks are removed (handover.go).
//
// Everything that is read is read strongly. A builder may stop at any moment, and any number
// may run: the next one takes the segments over, which fences the one before.
//
// build.go has the states of a build, rounds.go how builds share scans, pass.go how a table is read in segments that any builder
// can take over, inplace.go the derivations without ledgers, handover.go the steps after the audit,
// prune.go and removal.go the removal in the end. meter.go counts units and keeps to the
// budget; a dry run goes through the same passes and writes nothing.
package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/deploy"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// defaultSegments is how many parts of a table are scanned at the same time.
const defaultSegments = 8

// Builder builds the tallies of some entities of a model. Its creator sets the fields once.
// A Builder works for one goroutine at a time. Other builders, of other processes too, may work at the same builds.
type Builder struct {
	Runner *runner.Runner
	// Contributions returns the amounts that a row of an entity adds to tallies of another.
	Contributions func(of []*model.Tally, is *model.Entity, row value.Item) (cs []projections.Contribution, unfit []projections.Fault)
	// Names are the builds to do, as the model names them: entities, for all that is derived
	// on their rows; model.BuildSubscribers and a rule's name; model.BuildInPlace. They are built side by side,
	// each when those are live whose rows it reads (model.BuildsBefore).
	Names    []string
	Again    bool      // builds derivations too that are live by the model's definitions
	Asked    time.Time // with Again, also the builds that were announced before it and are not audited yet
	Segments int       // 0 is defaultSegments
	Budget   int       // write units in a second; 0 for no limit
	// Wait waits for a while, or until the context ends; nil is a timer.
	Wait func(context.Context, time.Duration) error
	// Report, if set, is called after each piece of work. It may be called from several
	// goroutines, one at a time.
	Report func(Progress)

	meter  meter
	unfits unfits
	mu     sync.Mutex
	held   map[store.Ref]owntable.SegmentRow // of the segments that it has taken and not released
}

// Progress counts the work of a builder since it began.
type Progress struct {
	Rows    int64 // rows and marks read
	Targets int64 // target rows shown
	Puts    int64 // contributions put, with those that were there before
	Units   int64 // write units, by the documented rules
	Unfit   int64 // rows that a derivation cannot use
	Left    int64 // things that differ and that a build cannot put right
	Orphans int64 // rows that weir made, it seems, at keys that the model does not have
	Reads   int64 // read units, by the documented rules; an estimate also counts the reads that it need not do itself
	Bytes   int64 // of an estimate: of the rows that a build writes, and then scans
}

// addUp adds other work.
func (p *Progress) addUp(o Progress) {
	p.Rows += o.Rows
	p.Targets += o.Targets
	p.Puts += o.Puts
	p.Units += o.Units
	p.Unfit += o.Unfit
	p.Left += o.Left
	p.Orphans += o.Orphans
	p.Reads += o.Reads
	p.Bytes += o.Bytes
}

// ReadUnits returns the read units, by the documented rules: one for each 4 KB of a page of a
// strong scan, and of each row that is read by its key, whether there is such a row or not.
func (p Progress) ReadUnits() int64 {
	return (p.Bytes+store.ReadUnitBytes-1)/store.ReadUnitBytes + p.Reads
}

// Price returns the price of the work, in dollars on demand in us-east-1.
func (p Progress) Price() float64 {
	return deploy.Price(float64(p.Units), float64(p.ReadUnits()))
}

// Estimate reads all that builds read until they are live, and returns the work that they
// would do, from their beginning. It writes nothing.
// It reads every source row, so it costs the read units of a build. Of derivations that read copies which are built too, it takes the
// copies as they will be (asBuilt).
func (b *Builder) Estimate(ctx context.Context) (Progress, error) {
	plain := b.Runner // the reads that find out the copies are no part of a build
	b.countReads()
	row, err := b.Runner.Catalog.Row(ctx)
	if err != nil {
		return b.Done(), err
	}
	begun, fresh := b.Runner.Catalog.Program().Plan(row, b.Names, b.Again, b.Asked, b.Runner.Now())
	for _, is := range begun {
		if is.State == owntable.BuildBuilding {
			fresh = append(fresh, is.Entity)
		}
	}
	jobs := make([]*job, len(fresh))
	for i, name := range fresh {
		is := owntable.Build{Entity: name, Base: 1}
		filling := b.fillPasses(is)
		jobs[i] = &job{is: is, dry: true, passes: slices.Concat(filling, b.showPasses(is))}
		for n, p := range jobs[i].passes {
			if p.dry = true; n < len(filling) && slices.Contains(fresh, model.BuildInPlace) && (name != model.BuildInPlace || p.level > 0) { // rows that weir copies show nothing that is built
				p.made = p.asBuilt(plain)
			}
		}
	}
	err = b.runRounds(ctx, jobs)
	return b.Done(), err
}

// Rebuilds returns the derivations, sorted, that are not live by the program's definition and that the builds are of, or all of these
// builds.
func (b *Builder) Rebuilds(ctx context.Context) (names []string, err error) {
	row, err := b.Runner.Catalog.Row(ctx)
	names = seq.Flat(b.Names, func(name string) []string { return b.Runner.Catalog.Program().NotLive(row, name, b.Again) })
	slices.Sort(names)
	return names, err
}

// Status is the outcome for one entity.
type Status struct {
	Entity  string
	State   owntable.BuildState
	AuditAt time.Time // when it can be audited; zero once it is verified
}

// The errors of a builder.
var (
	// ErrOld: records of the time since may be lost, so it must be built again. ErrNone: Abort found nothing to do.
	ErrOld  = errors.New("the build was announced too long ago")
	ErrNone = errors.New("there is no build to abort")
)

// The passes, as segments name them. The meaning of a name never changes: a builder may go on with the pass of an earlier program. A
// pass that reads or does something else gets another name.
const (
	passRows   = "rows"
	passShow   = "show"
	passNodes  = "nodes"  // shows the nodes of sets
	passAudit  = "audit"  // of the rows, and then of the marks
	passValues = "values" // of a build in place, as passOwn; passRows is between them
	passOwn    = "own"

	audited = " audited" // ends the names of the passes that show audited values
	again   = " again"   // ends the names of a build in place that are of its audit
)

// attempts is how often a segment is tried to be taken.
const attempts = 50

// Run announces a build of each entity that needs one, goes on with those that have begun,
// and audits those that can be audited. Call it again after an interruption, and for the
// audit. It returns nothing if there is nothing to do. The error wraps catalog.ErrRefused
// if the program could not derive these. A build that is too old, ErrOld, or that another builder has taken over,
// runner.ErrLost, ends alone, and the others are in the result.
func (b *Builder) Run(ctx context.Context) (out []Status, err error) {
	b.countReads()
	builds, err := b.Announce(ctx)
	if err != nil {
		return nil, err
	}
	jobs := make([]*job, len(builds))
	for i, is := range builds {
		jobs[i] = &job{is: is}
	}
	errs := []error{b.runRounds(ctx, jobs)}
	for _, j := range jobs {
		if j.err != nil {
			errs = append(errs, fmt.Errorf("building %s: %w", j.is.Entity, j.err))
		} else if j.ended {
			out = append(out, j.status)
		}
	}
	if errs[0] == nil {
		errs = append(errs, b.HandOver(ctx))
		_, err = b.RemoveMarks(ctx)
	}
	return out, errors.Join(append(errs, err)...)
}

// Retire notes that the model no longer has the derivations that the builder's program lacks, and returns their names. Rows
// keep the values. Dead letters that only said that a value cannot be shown are deleted (SettleRetired). What building says
// is as for catalog.Program.Retire.
func (b *Builder) Retire(ctx context.Context, building bool) (retired []string, err error) {
	retired, err = b.Runner.Catalog.Retire(ctx, building)
	if err == nil {
		err = b.SettleRetired(ctx)
	}
	return retired, err
}

// lately is for how long after its retirement the letters of a derivation are settled.
const lately = 24 * time.Hour

// SettleRetired deletes the dead letters which say that a value cannot be shown that was retired lately. Retire does so, too: call this
// where a program that retired may have ended before it had.
func (b *Builder) SettleRetired(ctx context.Context) error {
	row, err := b.Runner.Catalog.Row(ctx)
	if err != nil {
		return err
	}
	var into []*model.Entity // nil for one that the model no longer has
	for name, is := range row.Derivations {
		if is.State == owntable.Retired && b.Runner.Now().Sub(is.Since) <= lately {
			of, _, _ := strings.Cut(name, ".")
			into = append(into, b.Runner.Model.Entity(of))
		}
	}
	if len(into) == 0 {
		return nil
	}
	ids, err := b.Runner.UnshownLetters(ctx, func(at store.Ref) bool {
		return slices.ContainsFunc(into, func(e *model.Entity) bool { return e == nil || e.CanBe(at) })
	})
	if err != nil {
		return err
	}
	return b.Runner.RetryUnshown(ctx, ids, func() error { return nil })
}

// Announce enters the builds in the catalog. From the next batch on, consumers count in
// them; a program that does not know them is refused.
// It may be called again at any time: a build that was announced already is returned as it is.
func (b *Builder) Announce(ctx context.Context) (builds []owntable.Build, err error) {
	err = b.Runner.Start(ctx)
	if err != nil && !errors.Is(err, catalog.ErrUnbuilt) && !errors.Is(err, catalog.ErrDefinition) {
		return nil, err
	}
	of := b.Runner.Catalog
	tables, err := of.Tables(ctx)
	if err != nil {
		return nil, err
	}
	_, err = of.Change(ctx, func(was owntable.CatalogRow) (next owntable.CatalogRow, err error) {
		next, builds, err = of.Program().Announce(was, tables, b.Names, b.Again, b.Asked, b.Runner.Now())
		return next, err
	})
	return builds, err
}

// sendWaiting sends the notifications that wait as dead letters, since the lists of their subscribers were being built. One that
// cannot be sent even now stays a letter. It reads all dead letters, so it is for the time in which a batch may be applied that began
// before the lists were live.
func (b *Builder) sendWaiting(ctx context.Context, build string) error {
	rule, is := model.BuiltRule(build)
	if !is {
		return nil
	}
	return b.Runner.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		if d.Kind != deadletter.Notification || d.Row.Table != "" || !strings.HasPrefix(d.Target, rule+"<") {
			return nil
		}
		return b.Runner.RetryUnshown(ctx, []string{d.ID}, func() error { return nil })
	})
}

// Abort ends builds that targets do not show yet and removes their rows. After an
// interruption, call it again.
// Builds that rows show already are left; aborting those would take values away.
func (b *Builder) Abort(ctx context.Context) error {
	var dropped []owntable.Build
	of := b.Runner.Catalog
	_, err := of.Change(ctx, func(was owntable.CatalogRow) (next owntable.CatalogRow, err error) {
		next, dropped = catalog.Abort(was, b.Names, b.Runner.Now())
		return next, nil
	})
	if err != nil {
		return err
	}
	if len(dropped) == 0 {
		return ErrNone
	}
	_, err = b.removeGenerations(ctx, dropped, func(string) bool { return false })
	return err
}
