package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// pass reads tables once, in segments at the same time. Each segment is a row of our table:
// its fence, and how far it is. A pass that was begun before goes on with its segments.
// It is safe to repeat from any point: each write has the condition that it was not done yet.
type pass struct {
	*Builder
	build  owntable.Build
	name   string
	dry    bool // counts the writes that it would do, and does none
	tables []*store.Table
	level  int                   // of a build in place, how many levels of copies come before it
	levels map[*model.Entity]int // of a build in place (madeLevels)
	made   *asBuilt              // of a dry run, the copies as a build before this one makes them; nil takes those that there are
	// take takes in a row, as the change that inserting it would be. done does the work that was taken in, with the fence for transactions.
	// A segment's calls come one after another; of has the rows that the segment has taken in.
	take func(ctx context.Context, s *segment, table *store.Table, c *projections.Change) error
	done func(ctx context.Context, s *segment) error

	segments []*segment            // that it has taken
	lost     atomic.Pointer[error] // why it ended alone, nil if it did not
}

// endEarly ends a pass, whose segments go on until they look.
func (p *pass) endEarly(err error) { p.lost.CompareAndSwap(nil, &err) }

// segment is one segment of a pass.
type segment struct {
	*pass
	number, of int
	at         store.Ref
	row        owntable.SegmentRow
	targets    map[string]*runner.ReadTarget
	facts      []runner.DerivedRow  // rows that the segment will put
	changes    []projections.Change // rows that will be compared in place
	gone       []value.Item         // rows that will be removed
	held       int                  // contributions in targets, and so on
	saved      int64                // rows that had been read when the row was saved last
}

// holdRows is how many contributions a segment collects before it puts them, target by
// target: the more there are, the fewer transactions write the same ledger. They take some
// megabytes.
const holdRows = 5000

// saveRows is after how many rows a segment saves how far it is, whatever it has collected: a
// builder that is killed has read at most so many rows of each segment in vain, and a page.
const saveRows = 20000

// newSegment returns a segment that is not taken yet.
func (p *pass) newSegment(n, of int) *segment {
	at := owntable.Segment(p.Runner.Model.Name, p.build.Generation, p.name, n)
	return &segment{pass: p, number: n, of: of, at: at, targets: map[string]*runner.ReadTarget{}}
}

// planSegments takes all segments. The first builder's number of them stands in segment 0 before
// any other segment is taken, since builders may be told different numbers: with parts of
// different sizes under the same names, some rows would be in none. A dry run takes none.
func (p *pass) planSegments(ctx context.Context) error {
	count, err := p.segmentCount(ctx)
	if err != nil {
		return err
	}
	if p.segments = []*segment{p.newSegment(0, count)}; !p.dry {
		if err := p.segments[0].takeSegment(ctx); err != nil {
			return err
		}
		if count, err = segmentsIn(&p.segments[0].row); err != nil {
			return fmt.Errorf("pass %q: %w", p.name, err)
		}
	}
	p.segments[0].of = count
	for n := 1; n < count; n++ {
		p.segments = append(p.segments, p.newSegment(n, count))
	}
	return parallel.Do(count, p.Runner.AtOnce(count), func(n int) error {
		if p.dry {
			p.addProgress(Progress{Units: 1, Reads: 1})
			return nil
		}
		if n == 0 {
			return nil
		}
		return p.segments[n].takeSegment(ctx)
	})
}

// segmentCount returns the number of segments: that with which the pass was begun, or the builder's own.
// It is in the row of segment 0 from then on, so all builders of a pass divide the table in the
// same way, whatever their own setting is.
func (p *pass) segmentCount(ctx context.Context) (int, error) {
	row, err := p.Runner.GetRow(ctx, p.newSegment(0, 0).at)
	if err != nil || row == nil {
		return cmp.Or(max(p.Segments, 0), defaultSegments), err
	}
	is, err := owntable.DecodeSegment(row)
	if err != nil {
		return 0, err
	}
	return segmentsIn(&is)
}

// planOf is the text in a segment's row about its pass: into how many segments it divides which tables.
func (p *pass) planOf(segments int) string {
	return fmt.Sprint(segments, " ", strings.Join(seq.Map(p.tables, func(t *store.Table) string { return t.Name }), " "))
}

// segmentsIn returns the number of segments of a pass by the row of its segment 0.
func segmentsIn(is *owntable.SegmentRow) (int, error) {
	first, _, _ := strings.Cut(is.Plan, " ")
	n, err := strconv.Atoi(first)
	if err != nil || n < 1 || n > store.MaxSegments {
		return 0, fmt.Errorf("segment 0 has the plan %q", is.Plan)
	}
	return n, nil
}

// noteSegment notes that the builder has taken a segment.
func (b *Builder) noteSegment(at store.Ref, row owntable.SegmentRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = map[store.Ref]owntable.SegmentRow{}
	}
	b.held[at] = row
}

// letGo notes that the segments of a build that the builder has taken are of no further use.
func (b *Builder) letGo(is owntable.Build) {
	_, prefix := owntable.Segments(b.Runner.Model.Name, is.Generation)
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.held, func(at store.Ref, _ owntable.SegmentRow) bool { return strings.HasPrefix(at.Key.Sort.Text(), prefix) })
}

// Release says of all segments that the builder has taken, and that no other has taken since,
// that it works at them no more. Call it when nothing of the builder runs.
func (b *Builder) Release(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	units, reads := b.takeUntold()
	for at, row := range b.held {
		told, err := b.Runner.WriteIf(ctx, row.Release(at, units, reads))
		if err != nil {
			return err
		}
		if told {
			units, reads = 0, 0
		}
		delete(b.held, at)
	}
	return nil
}

// takeSegment takes a segment. Its row says afterwards how far the pass is.
// Taking it makes the fence of the builder that had it fail, in every transaction that it still
// sends. No write of it is lost: the cursor in the row is never ahead of the writes.
func (s *segment) takeSegment(ctx context.Context) error {
	for range attempts {
		rows, err := s.Runner.Get(ctx, []store.Ref{s.at})
		if err != nil {
			return err
		}
		is, err := owntable.DecodeSegment(rows[0])
		if err != nil {
			return err
		}
		if n, err := segmentsIn(&is); is.Plan == "" || err == nil && is.Plan != s.planOf(n) { // another program had other tables
			is.Plan, is.Table, is.Cursor, is.Over = s.planOf(cmp.Or(n, s.of)), 0, nil, false
		}
		next, w := is.Take(s.at, s.Runner.Now())
		if err := s.spendUnits(ctx, 1); err != nil {
			return err
		}
		done, err := s.Runner.WriteIf(ctx, w)
		if err != nil {
			return err
		}
		if done && rows[0] == nil {
			if err := s.removeIfAborted(ctx, next); err != nil {
				return err
			}
		}
		if done {
			s.row, s.saved = next, next.Rows
			s.noteSegment(s.at, next)
			return nil
		}
	}
	return fmt.Errorf("segment %d is taken by others all the time", s.number)
}

// removeIfAborted removes the row of a segment that was just made, if the build was aborted before: an abort decides on rows to remove
// after the catalog says so, and a row that is made later would stay, and be a fence for writes. The error wraps ErrLost then.
func (s *segment) removeIfAborted(ctx context.Context, made owntable.SegmentRow) error {
	row, err := s.Runner.Catalog.Row(ctx)
	counts := func(b owntable.Build) bool {
		return b.Generation == s.build.Generation && b.State != owntable.BuildDropped
	}
	if err != nil || slices.ContainsFunc(row.Builds, counts) {
		return err
	}
	w := made.HeldCheck(s.at)
	w.Check, w.Delete = false, true
	_, err = s.Runner.WriteIf(ctx, w)
	return errors.Join(fmt.Errorf("the build was aborted: %w", runner.ErrLost), err)
}

// sizeOf returns the bytes of rows as DynamoDB counts them, by which a scan is charged.
func sizeOf(rows []value.Item) (n int) {
	for _, row := range rows {
		n += row.Size()
	}
	return n
}

// flushAndSave does the work that was taken in and then saves how far the segment is. A crash in between
// repeats it, which changes nothing.
func (s *segment) flushAndSave(ctx context.Context) error {
	s.saved = s.row.Rows
	if s.dry {
		return s.estimateFlush(ctx)
	}
	is := runner.Span{Name: runner.SpanBatch, Table: s.build.Entity, Items: s.held}
	if err := s.Runner.RunTraced(ctx, is, func(ctx context.Context) error { return s.done(ctx, s) }); err != nil {
		return err
	}
	s.forgetGathered()
	if err := s.spendUnits(ctx, 1); err != nil {
		return err
	}
	units, reads := s.takeUntold()
	s.row.Units, s.row.Reads = s.row.Units+units, s.row.Reads+reads
	saved, err := s.Runner.WriteIf(ctx, s.row.Save(s.at, s.Runner.Now()))
	if err == nil && !saved {
		err = fmt.Errorf("segment %d: %w", s.number, runner.ErrLost)
	}
	return err
}

// forgetGathered forgets all that was gathered: it was written, or the pass has ended and reads it again.
func (s *segment) forgetGathered() {
	s.targets, s.facts, s.changes, s.gone, s.held = map[string]*runner.ReadTarget{}, nil, nil, nil, 0
}

// estimateFlush counts the work of flush, by doing it in a metered store that writes nothing. The values that a pass would show, it does
// not know yet, and counts. It reads no marks, so it counts as if nothing had been put before.
func (s *segment) estimateFlush(ctx context.Context) error {
	e := s.Runner.Model.Entity(s.build.Entity)
	p := Progress{Units: 1}
	if e != nil && e.IsRecomputed() { // it reads them all to show them
		for i := range s.facts {
			p.Bytes += int64(s.facts[i].Row.Size())
		}
	}
	if e != nil && e.Group != nil {
		writes, looks := kinds.ShowUnits(e, nil)
		p.addUp(Progress{Units: int64(len(s.targets) * writes), Reads: int64(len(s.targets) * looks)})
	}
	s.addProgress(p)
	if err := s.done(ctx, s); err != nil {
		return err
	}
	s.forgetGathered()
	return ctx.Err()
}

// keepContribution collects the amounts that a row adds to a target.
// s.held counts the rows that are kept.
func (s *segment) keepContribution(target store.Ref, row runner.ReadRow) {
	name := owntable.RowText(target)
	at := s.targets[name]
	if at == nil {
		at = &runner.ReadTarget{Target: target}
		s.targets[name] = at
	}
	at.Rows = append(at.Rows, row)
	s.held++
}

// putContributions puts the collected amounts, target by target.
// A piece is put in one transaction with the fence. Facts come first.
func (s *segment) putContributions(ctx context.Context) error {
	r, m := s.meteredRunner(false)
	in := r.ForGeneration(s.build)
	if err := in.PutHeld(ctx, s.facts, s.row.HeldCheck(s.at)); err != nil {
		return err
	}
	s.row.Puts += int64(len(s.facts))
	s.addProgress(Progress{Puts: int64(len(s.facts))})
	e := s.Runner.Model.Entity(s.build.Entity)
	unread := s.name == passRows
	for _, piece := range s.plannedTransactions() {
		m.read = map[string]value.Item{}
		did, err := kinds.PutPiece(ctx, in, e, piece, unread, s.row.HeldCheck(s.at))
		if err != nil {
			return err
		}
		unread = unread && did.Tries == 0 // others have marked some: the next ones are read before
		n := countContributions(piece)
		s.row.Puts += n
		s.addProgress(Progress{Puts: n})
	}
	if s.dry && e != nil && e.SetOf() != nil { // the scan of our own table meets them, and makes their rows
		nodes := int64(0)
		for _, row := range m.made {
			if strings.HasPrefix(row.Get(owntable.Partition).Text(), owntable.Nodes(in.Model.Name)) {
				nodes++
			}
		}
		units, looks := kinds.ShowUnits(e, nil)
		s.addProgress(Progress{Targets: nodes, Units: nodes * int64(units), Reads: nodes * int64(looks)})
	}
	return nil
}

// plannedTransactions returns the puts of the segment, as they will be written.
// Targets are in the order of their names, so the same rows give the same pieces.
func (s *segment) plannedTransactions() [][]runner.ReadTarget {
	if len(s.targets) == 0 {
		return nil
	}
	targets := make([]runner.ReadTarget, 0, len(s.targets))
	for _, name := range slices.Sorted(maps.Keys(s.targets)) {
		targets = append(targets, *s.targets[name])
	}
	return kinds.GroupByTransaction(s.Runner.Model.Entity(s.build.Entity), targets)
}

// countContributions is how many source rows a piece has.
func countContributions(piece []runner.ReadTarget) (n int64) {
	for _, t := range piece {
		n += int64(len(t.Rows))
	}
	return n
}

// fillPasses returns the passes of the state building.
func (b *Builder) fillPasses(is owntable.Build) []*pass {
	if is.Entity == model.BuildInPlace {
		return b.inPlace(is, "")
	}
	return []*pass{b.fillPass(is, passRows)}
}

// showPasses returns the passes of the state showing.
func (b *Builder) showPasses(is owntable.Build) []*pass { return b.shownPasses(is, "") }

// shownPasses returns the passes that make target rows show the ledgers of a build: over the nodes of
// a set, and otherwise over the ledgers. There are none for an entity that the model no longer
// has.
func (b *Builder) shownPasses(is owntable.Build, ends string) []*pass {
	e := b.Runner.Model.Entity(is.Entity)
	switch {
	case e == nil:
		return nil
	case e.SetOf() != nil:
		return []*pass{b.showNodes(e, is, passNodes+ends)}
	}
	return []*pass{b.showPass(e, is, passShow+ends)}
}

// auditPasses returns the passes of the audit.
func (b *Builder) auditPasses(is owntable.Build) []*pass {
	if is.Entity == model.BuildInPlace {
		return b.inPlace(is, again)
	}
	return append([]*pass{b.auditPass(is)}, b.shownPasses(is, audited)...)
}

// fillPass is the pass that puts the amounts of source rows that were not put.
func (b *Builder) fillPass(is owntable.Build, name string) *pass {
	p := &pass{Builder: b, build: is, name: name, tables: b.sourceTables(is.Entity)}
	e, in := b.Runner.Model.Entity(is.Entity), b.Runner.ForGeneration(is)
	p.take = func(_ context.Context, s *segment, t *store.Table, c *projections.Change) error {
		var unfit []projections.Fault
		if e != nil {
			var cs []projections.Contribution
			cs, unfit = b.Contributions(e.Values, c.Is, c.New)
			for _, one := range cs {
				s.keepContribution(one.Target, runner.ReadRow{Source: c.Row, Key: t.Item(c.Row.Key), Amounts: one.Amounts})
			}
		}
		hs, no := in.DerivedRows(is.Entity, c)
		s.facts, s.held = append(s.facts, hs...), s.held+len(hs)
		if unfit = append(unfit, no...); len(unfit) > 0 {
			s.row.Unfit++
			b.addProgress(Progress{Unfit: 1})
			b.unfits.add(Unfit{is.Entity, unfit[0].Derivation, runner.RowText(b.Runner.Model, c.Row), b.Runner.Model.ShownText(unfit[0].Reason)})
		}
		return nil
	}
	p.done = func(ctx context.Context, s *segment) error { return s.putContributions(ctx) }
	return p
}

// asInsertion returns a row as the change that inserting it would be. Of a row of our own table, it has nothing but the image.
func (b *Builder) asInsertion(t *store.Table, row value.Item) (projections.Change, error) {
	if t.Name == owntable.TableName {
		return projections.Change{New: row}, nil
	}
	key, ok := t.KeyOf(row)
	if !ok {
		return projections.Change{}, fmt.Errorf("table %s has a row without its key attributes", t.Name)
	}
	mt := b.Runner.Model.Table(t.Name)
	return projections.Change{Table: mt, Row: store.Ref{Table: t.Name, Key: key}, New: row, Is: mt.Classify(row)}, nil
}

// sourceTables are the tables of the rows from which the derivations of a name come.
// A table is in it once, in the order of the model, also if several entities in it are read.
func (b *Builder) sourceTables(name string) (out []*store.Table) {
	if name == model.BuildInPlace {
		return seq.Map(b.Runner.Model.Tables, func(t *model.Table) *store.Table { return &t.Table })
	}
	for _, t := range b.Runner.Model.AllTables() {
		if slices.ContainsFunc(b.Runner.Model.Entities, func(e *model.Entity) bool { return e.Table == t && readsEntity(name, e) }) {
			out = append(out, &t.Table)
		}
	}
	return out
}

// readsEntity reports whether the derivations of a name come from the rows of an entity.
func readsEntity(name string, e *model.Entity) bool {
	return slices.ContainsFunc(e.Sources, func(s *model.Source) bool { return s.Tally.Target.Name == name }) ||
		slices.ContainsFunc(e.Stages, func(st *model.Stage) bool { return st.Status.Target.Name == name }) ||
		slices.ContainsFunc(e.LatestOf, func(l *model.Latest) bool { return l.Target.Name == name }) ||
		slices.ContainsFunc(e.Others, func(o *model.Others) bool { return o.On.Name == name }) ||
		slices.ContainsFunc(e.Subscribes, func(r *model.RowRule) bool { return model.BuildSubscribers+r.Name == name }) ||
		e.Name == name && e.IsRecomputed()
}

// showNodes is the pass that shows the nodes of sets, and deletes rows of sets that show
// none.
func (b *Builder) showNodes(e *model.Entity, is owntable.Build, name string) *pass {
	own := owntable.Table()
	p := &pass{Builder: b, build: is, name: name, tables: []*store.Table{&e.Table.Table, &own}}
	nodes := owntable.Nodes(is.Ledgers(b.Runner.Model.Name))
	p.take = func(ctx context.Context, s *segment, t *store.Table, c *projections.Change) error {
		row := c.New
		units, reads := kinds.ShowUnits(e, row)
		switch {
		case t.Name != owntable.TableName && c.Is != e:
			return nil
		case t.Name == owntable.TableName && !strings.HasPrefix(row.Get(owntable.Partition).Text(), nodes):
			return nil
		case p.dry:
			s.addProgress(Progress{Targets: 1, Units: int64(units), Reads: int64(reads)})
			return nil
		}
		key, _ := t.KeyOf(row)
		s.held += holdRows / compareAtOnce // so that it is saved how far the pass is
		s.addProgress(Progress{Targets: 1})
		r, _ := s.meteredRunner(false)
		return kinds.ShowNode(ctx, r.ForGeneration(is), e, store.Ref{Table: t.Name, Key: key}, row)
	}
	p.done = func(context.Context, *segment) error { return nil }
	return p
}

// showPass is the pass that shows the ledgers of the targets that there are. The ledgers tell which
// targets a group should have, and values that none of their targets could show: those may not exist.
func (b *Builder) showPass(e *model.Entity, is owntable.Build, name string) *pass {
	p := &pass{Builder: b, build: is, name: name, tables: []*store.Table{&e.Table.Table}}
	own := owntable.Table()
	if e != nil && e.SetOf() == nil && (e.Group != nil || projections.MayLack(e)) {
		p.tables = append(p.tables, &own)
	}
	in := b.Runner.ForGeneration(is)
	p.take = func(ctx context.Context, s *segment, t *store.Table, c *projections.Change) error {
		row := c.New
		if t.Name == owntable.TableName {
			target, ok, err := b.targetOf(e, is, row)
			ledger := owntable.Kind(row.Get(owntable.Partition).Text()) == owntable.KindLedger
			if ok && err == nil && (e.Group != nil || !ledger || projections.CannotShow(in.ShownTallies(e), row) != "") {
				s.keepContribution(target, runner.ReadRow{})
			}
			return err
		}
		if c.Is == e {
			switch units, reads := kinds.ShowUnits(e, row); {
			case e.Group == nil && s.dry:
				s.addProgress(Progress{Targets: 1, Units: int64(units), Reads: int64(reads)})
			case e.Group == nil:
				s.keepContribution(c.Row, runner.ReadRow{})
			case !s.dry: // which counts the groups that rows lead to
				s.keepContribution(c.Row, runner.ReadRow{Source: c.Row})
			}
		}
		return nil
	}
	p.done = func(ctx context.Context, s *segment) error {
		if err := s.leaveLedgers(ctx, in.Model.Name); err != nil {
			return err
		}
		r, m := s.meteredRunner(false)
		for _, name := range slices.Sorted(maps.Keys(s.targets)) {
			m.read = map[string]value.Item{}
			if err := r.ShowBuilt(ctx, is, s.targets[name].Target, e); err != nil {
				return err
			}
			s.addProgress(Progress{Targets: 1})
		}
		return nil
	}
	return p
}

// leaveLedgers leaves out the rows of groups that have ledgers: the pass comes to these ledgers too, and
// shows their groups then. A ledger that is made later is shown by the code that makes it, but an empty one may be of
// this pass, which died before it deleted the row.
func (s *segment) leaveLedgers(ctx context.Context, of string) error {
	var names []string
	var refs []store.Ref
	for _, name := range slices.Sorted(maps.Keys(s.targets)) {
		at := s.targets[name]
		met := !slices.ContainsFunc(at.Rows, func(r runner.ReadRow) bool { return r.Source.Table == "" })
		if _, told := owntable.RowOf(name); met && told {
			names, refs = append(names, name), append(refs, owntable.Ledger(of, at.Target))
		}
	}
	if len(refs) == 0 {
		return nil
	}
	ledgers, err := s.Runner.Get(ctx, refs)
	for i, row := range ledgers {
		if row != nil && !owntable.LedgerRow(row).Empty() {
			delete(s.targets, names[i])
		}
	}
	return err
}

// targetOf returns the target whose ledger in a build a row of our own table is, or, where the
// ledger's name does not tell, to which the row, a mark, says that its source adds.
func (b *Builder) targetOf(e *model.Entity, is owntable.Build, row value.Item) (target store.Ref, ok bool, err error) {
	name, partition := is.Ledgers(b.Runner.Model.Name), row.Get(owntable.Partition).Text()
	if text, ledger := strings.CutPrefix(partition, owntable.Ledgers(name)); ledger {
		target, ok = owntable.RowOf(text)
		return target, ok && target.Table == e.Table.Name, nil
	}
	if !strings.HasPrefix(partition, owntable.Marks(name)) {
		return target, false, nil
	}
	mark, err := owntable.DecodeContribution(row)
	if err != nil {
		return target, false, err
	}
	target.Table = mark.Target.Table
	if target.Key, ok = e.Table.KeyOf(mark.TargetKey); !ok || target.Table != e.Table.Name {
		return target, false, nil
	}
	_, told := owntable.RowOf(owntable.RowText(target))
	return target, !told, nil
}

// auditPass is the pass that puts the amounts of source rows that were not put, and then compares each mark, and each row that a source
// row holds, with its source row, which is read after it.
func (b *Builder) auditPass(is owntable.Build) *pass {
	own := owntable.Table()
	p := b.fillPass(is, passAudit)
	p.tables = append(p.tables, &own)
	in := b.Runner.ForGeneration(is)
	e := b.Runner.Model.Entity(is.Entity)
	ours, fill := owntable.Partitions(in.Model.Name), p.take
	p.take = func(ctx context.Context, s *segment, t *store.Table, c *projections.Change) error {
		if t.Name != owntable.TableName {
			return fill(ctx, s, t, c)
		}
		row := c.New
		partition := row.Get(owntable.Partition).Text()
		if !ours(partition) {
			return nil
		}
		if e != nil && strings.HasPrefix(partition, owntable.Marks(in.Model.Name)) {
			mark, err := owntable.DecodeContribution(row)
			if err != nil {
				return err
			}
			return s.auditMark(ctx, e, mark)
		}
		s.held += holdRows / compareAtOnce
		r, m := s.meteredRunner(false)
		m.read[owntable.RowText(rowRef(row))] = row
		differs, err := r.ForGeneration(is).AuditHeld(ctx, is.Entity, row, s.row.HeldCheck(s.at))
		if differs && err == nil {
			s.addProgress(Progress{Puts: 1})
		}
		return err
	}
	return p
}

// auditMark reads the row of a mark, and collects the new state of the mark.
// The row is read after its mark, so it shows at least as much as the mark has counted. A row that is
// gone contributes nothing.
func (s *segment) auditMark(ctx context.Context, e *model.Entity, mark owntable.Contribution) error {
	from, to := s.Runner.Model.Table(mark.Source.Table), s.Runner.Model.Table(mark.Target.Table)
	if from == nil || to == nil {
		return errors.New("a mark is of a table that the model does not have")
	}
	var ok, also bool
	mark.Source.Key, ok = from.KeyOf(mark.SourceKey)
	mark.Target.Key, also = to.KeyOf(mark.TargetKey)
	if !ok || !also {
		return errors.New("a mark is of a key that its table cannot have")
	}
	rows, err := s.Runner.Get(ctx, []store.Ref{mark.Source})
	if err != nil {
		return err
	}
	read := runner.ReadRow{Source: mark.Source, Key: mark.SourceKey, Audit: mark.Version}
	cs, _ := s.Contributions(e.Values, from.Classify(rows[0]), rows[0])
	for _, c := range cs {
		if projections.SameRow(c.Target, mark.Target) {
			read.Amounts = c.Amounts
		}
	}
	if read.Differs(mark.Mark) {
		s.keepContribution(mark.Target, read)
	}
	return nil
}
