package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A builder works at all of its builds side by side, in rounds: a round has the next pass of each build whose turn it is.
// Passes of a round that read the same table share one scan of it: each page is handed to all of them. A build that reads
// rows of another one waits until that one is live, so it takes one more scan.
//
// Each pass keeps segments of its own, with a fence and a cursor of its own. So builders with other names may go on with
// some of the builds, and a build that is lost or too old ends alone.

// job is a build that a builder works at.
type job struct {
	is     owntable.Build
	to     owntable.BuildState // which the passes lead to
	passes []*pass             // those that are left
	dry    bool                // the passes write nothing, and no state comes behind them
	status Status
	ended  bool
	err    error // why it ended early
}

// endJob ends a job, early if the error is not nil.
func (j *job) endJob(err error) { j.ended, j.err = true, err }

// errorOfOne reports whether an error ends one build and leaves the others alone.
func errorOfOne(err error) bool { return errors.Is(err, runner.ErrLost) || errors.Is(err, ErrOld) }

// runRounds takes builds as far as they can go now. An error that ends one of them is in its job. A build is left as it is if
// one that must be complete before it has ended early.
func (b *Builder) runRounds(ctx context.Context, jobs []*job) error {
	before := b.Runner.Model.BuildsBefore()
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b *job) int { // those that others wait for come first
		return len(before[a.is.Entity]) - len(before[b.is.Entity])
	})
	for {
		var ps []*pass
		for _, j := range jobs {
			if mustWait(j, jobs, before[j.is.Entity]) {
				continue
			}
			for !j.ended && len(j.passes) == 0 {
				if err := b.goOn(ctx, j); errorOfOne(err) {
					j.endJob(err)
				} else if err != nil {
					return fmt.Errorf("building %s: %w", j.is.Entity, err)
				}
			}
			if !j.ended {
				ps = append(ps, j.passes[0])
			}
		}
		if len(ps) == 0 {
			return nil
		}
		grown := maps.Clone(b.meter.grown)
		if err := b.runPasses(ctx, ps...); err != nil {
			return err
		}
		b.addGrown(grown, ps)
		for _, j := range jobs {
			if j.ended || len(j.passes) == 0 || !slices.Contains(ps, j.passes[0]) {
				continue
			}
			if lost := j.passes[0].lost.Load(); lost != nil {
				j.endJob(*lost)
			}
			j.passes = j.passes[1:]
		}
	}
}

// mustWait reports whether a job has to wait for others, whose names are given. It ends a job that would wait for ever.
func mustWait(j *job, jobs []*job, before []string) bool {
	for _, other := range jobs {
		switch {
		case j.ended || !slices.Contains(before, other.is.Entity):
		case !other.ended:
			return true
		case other.err != nil && !other.is.State.IsShown():
			j.endJob(fmt.Errorf("%s comes first: %w", other.is.Entity, other.err))
		}
	}
	return false
}

// goOn moves a build whose passes are done to the state that they lead to, and finds the passes of the next one. The job ends
// if there is none that can be reached now.
func (b *Builder) goOn(ctx context.Context, j *job) (err error) {
	if j.dry {
		j.endJob(nil)
		return nil
	}
	if j.to != "" {
		if j.is, err = b.reachState(ctx, j.is, j.to); err != nil {
			return err
		}
	}
	since := b.Runner.Now().Sub(j.is.Announced)
	if j.is.State != owntable.BuildVerified && since > catalog.BuildLife {
		return fmt.Errorf("%w, on %s: build it again, with --again, after --abort if it is not live yet", ErrOld, j.is.Announced.Format(time.DateTime))
	}
	if j.to, j.passes = b.nextState(j.is); j.is.State == owntable.BuildVerified || j.is.State == owntable.BuildLive && since < catalog.AuditAfter {
		j.status = Status{Entity: j.is.Entity, State: j.is.State}
		if j.is.State == owntable.BuildLive {
			j.status.AuditAt = j.is.Announced.Add(catalog.AuditAfter)
		}
		j.endJob(nil)
	}
	return nil
}

// nextState returns the passes of a build's state, and the state that they lead to.
func (b *Builder) nextState(is owntable.Build) (to owntable.BuildState, ps []*pass) {
	switch is.State {
	case owntable.BuildBuilding:
		return owntable.BuildShowing, b.fillPasses(is)
	case owntable.BuildShowing:
		return owntable.BuildLive, b.showPasses(is)
	case owntable.BuildLive:
		return owntable.BuildVerified, b.auditPasses(is)
	case owntable.BuildVerified:
		return is.State, []*pass{b.unmarkPass(is, nil)}
	}
	return is.State, nil
}

// reachState moves a build to a state whose passes are done. A crash before it repeats the passes, which then find everything done.
func (b *Builder) reachState(ctx context.Context, is owntable.Build, to owntable.BuildState) (became owntable.Build, err error) {
	if err := b.fenceOlder(ctx, is); err != nil {
		return is, err
	}
	of, became := b.Runner.Catalog, is
	_, err = of.Change(ctx, func(was owntable.CatalogRow) (next owntable.CatalogRow, err error) {
		next, became, _ = of.Program().Advance(was, is, to, b.presentMoment())
		return next, nil
	})
	if err == nil {
		b.letGo(is)
	}
	if err == nil && became.State == owntable.BuildDropped {
		err = fmt.Errorf("the build was aborted: %w", runner.ErrLost)
	}
	return became, err
}

// fenceOlder takes the segments of passes that this program does not know, so that a builder of an earlier program that has them
// puts nothing from now on.
func (b *Builder) fenceOlder(ctx context.Context, is owntable.Build) error {
	known := slices.Concat(b.fillPasses(is), b.showPasses(is), b.auditPasses(is))
	return b.writeEach(ctx, b.segmentQuery(is), func(row value.Item) ([]store.Write, error) {
		if name := owntable.PassOf(row); !hasPass(known, name) {
			s := &segment{pass: &pass{Builder: b, build: is, name: name}, at: rowRef(row)}
			return nil, s.takeSegment(ctx)
		}
		return nil, nil
	})
}

// hasPass reports whether a pass of some has a name.
func hasPass(some []*pass, name string) bool {
	return slices.ContainsFunc(some, func(p *pass) bool { return p.name == name })
}

// runPasses runs passes, of builds of their own, side by side. A pass that another builder takes over ends alone: its field lost says
// so. Any other error ends all of them, and the first one is returned.
func (b *Builder) runPasses(ctx context.Context, ps ...*pass) error {
	if err := b.takeSegments(ctx, ps); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	groups := map[int][]*pass{} // by the number of segments
	for _, p := range seq.Where(ps, func(p *pass) bool { return p.lost.Load() == nil }) {
		groups[len(p.segments)] = append(groups[len(p.segments)], p)
	}
	for _, count := range slices.Sorted(maps.Keys(groups)) {
		some := groups[count]
		err := parallel.Do(count, b.Runner.AtOnce(count), func(n int) error {
			all := make([]*segment, len(some))
			for i, p := range some {
				all[i] = p.segments[n]
			}
			err := b.runSegments(ctx, all)
			if err != nil {
				cancel(err)
			}
			return err
		})
		if first := context.Cause(ctx); first != nil {
			return first
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeSegments takes all segments of passes.
func (b *Builder) takeSegments(ctx context.Context, ps []*pass) error {
	for _, p := range ps {
		if err := p.planSegments(ctx); errorOfOne(err) { // the build was aborted
			p.endEarly(err)
		} else if err != nil {
			return fmt.Errorf("building %s: %w", p.build.Entity, err)
		}
	}
	return nil
}

// forEach does something with each segment whose pass was not lost. An error of one build ends its pass alone.
func forEach(all []*segment, do func(*segment) error) error {
	for _, s := range all {
		if s.lost.Load() != nil {
			continue
		}
		if err := do(s); errorOfOne(err) {
			s.endEarly(err)
		} else if err != nil {
			return fmt.Errorf("building %s: %w", s.build.Entity, err)
		}
	}
	return nil
}

// runSegments scans the rest of segments of one number, each of another pass, and notes that they are over. A segment goes
// on at the table and the cursor that its row has, so a builder that takes over after a crash repeats at most the rows that were
// scanned since the row was last written; putting a source row twice changes nothing.
func (b *Builder) runSegments(ctx context.Context, all []*segment) error {
	all = seq.Where(all, func(s *segment) bool { return !s.row.Over })
	for {
		t, some := b.nextTable(all)
		if t == nil {
			break
		}
		if err := b.scanSegment(ctx, t, some); err != nil {
			return err
		}
	}
	return forEach(all, func(s *segment) error {
		s.row.Over = true
		return s.flushAndSave(ctx)
	})
}

// nextTable returns the first table, in the order of the model and with our own table last, that is the next one of some
// segments, and these segments.
func (b *Builder) nextTable(all []*segment) (t *store.Table, some []*segment) {
	tables := b.Runner.Model.AllTables()
	order := func(t *store.Table) int {
		for i, of := range tables {
			if of.Name == t.Name {
				return i
			}
		}
		return len(tables)
	}
	for _, s := range all {
		if s.lost.Load() != nil || s.row.Table >= len(s.tables) {
			continue
		}
		next := s.tables[s.row.Table]
		switch {
		case t == nil, order(next) < order(t):
			t, some = next, []*segment{s}
		case next.Name == t.Name:
			some = append(some, s)
		}
	}
	return t, some
}

// scanSegment reads the rest of a segment of one table for passes of a round. It begins at the cursor of the one that is least far.
// One that is at another cursor joins it at the row there; if there is no such row any more, it is scanned by itself afterwards.
// Reads are strong, page by page. A cursor moves only with flush, after the rows that were read before it
// has been put, so a crash reads some rows again and puts nothing twice.
func (b *Builder) scanSegment(ctx context.Context, t *store.Table, all []*segment) error {
	first := slices.MinFunc(all, func(a, b *segment) int { return int(a.scanProgress() - b.scanProgress()) })
	q := store.Query{Table: t.Name, Segment: first.number, Segments: first.of}
	if at := first.row.Cursor; at != nil {
		key, ok := t.KeyOf(at)
		if !ok {
			return fmt.Errorf("the cursor of segment %d is no key of table %s", first.number, t.Name)
		}
		q.After = &store.Cursor{Key: key}
	}
	begins := map[*segment]int{} // those that read, and the first row of the page that they take
	for _, s := range all {
		if value.EqualItems(s.row.Cursor, first.row.Cursor) {
			begins[s] = 0
		}
	}
	from := b.Runner.Store
	counts := slices.ContainsFunc(all, func(s *segment) bool { return s.readsTable(t) })
	if !counts { // it is a dry run, and the build reads none of it
		from = first.made.plain.Store
	}
	for {
		page, err := from.Query(ctx, q)
		if err != nil {
			return err
		}
		changes := make([]projections.Change, len(page.Rows))
		for i, row := range page.Rows {
			if changes[i], err = b.asInsertion(t, row); err != nil {
				return err
			}
			for _, s := range all {
				if _, reads := begins[s]; !reads && s.row.Cursor != nil && s.isAt(t, row) {
					begins[s] = i + 1
				}
			}
		}
		if counts {
			b.addProgress(Progress{Rows: int64(len(page.Rows))})
		}
		left := 0
		err = forEach(all, func(s *segment) error {
			at, reads := begins[s]
			if !reads {
				return nil
			}
			begins[s] = 0
			left++
			return s.takePage(ctx, t, changes[at:], page.Next, len(begins))
		})
		if err != nil || page.Next == nil || left == 0 {
			return err
		}
		q.After = page.Next
	}
}

// scanProgress is about how far a segment is in the table that it reads: 0 at its beginning.
func (s *segment) scanProgress() int64 {
	if s.row.Cursor == nil {
		return 0
	}
	return 1 + s.row.Rows
}

// isAt reports whether a row is the one that the segment has read last.
func (s *segment) isAt(t *store.Table, row value.Item) bool {
	key, ok := t.KeyOf(row)
	return ok && value.EqualItems(t.Item(key), s.row.Cursor)
}

// heldAtOnce is how many passes that share a scan may hold as many contributions as one alone. More passes hold fewer each.
const heldAtOnce = 4

// takePage takes in a page of a table, or its rest. next is where the scan goes on, nil at the end of the table; sharing is how many
// passes share the scan. It flushes large amounts, and, before marks are compared, the amounts of source rows: a piece has each
// source row once.
func (s *segment) takePage(ctx context.Context, t *store.Table, changes []projections.Change, next *store.Cursor, sharing int) error {
	if err := s.takeChanges(ctx, t, changes); err != nil {
		return err
	}
	s.row.Rows += int64(len(changes))
	if next == nil {
		s.row.Cursor = nil
		if s.row.Table++; s.name == passAudit && s.held > 0 && s.row.Table < len(s.tables) {
			return s.flushAndSave(ctx)
		}
		return nil
	}
	s.row.Cursor = t.Item(next.Key)
	if s.held >= holdRows*heldAtOnce/max(sharing, heldAtOnce) || s.row.Rows-s.saved >= saveRows {
		return s.flushAndSave(ctx)
	}
	return nil
}
