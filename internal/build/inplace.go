package build

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Rows that rules make, and the values that they follow, carry the position of the change of
// their source row that they were made from. So they have no generations: the builder
// compares every row with its source, and corrects it
// (runner.Fix): a row keeps the position that it has; where there is neither a row nor a
// tombstone, it gets one that is below all changes that are still to come. Later changes
// win, and what readers see is a row as it was or as it is right. Every write is in a
// transaction with the fence of the builder's segment.

// inPlace returns the passes that compare and correct. First the values that rows follow,
// then the rows, then the followers of rows that are gone.
func (b *Builder) inPlace(is owntable.Build, again string) (ps []*pass) {
	m := b.Runner.Model
	tables := b.sources(is.Entity)
	if len(m.Follows) > 0 {
		ps = append(ps, b.comparing(is, passValues+again, tables, true, runner.StageValues))
	}
	ps = append(ps, b.comparing(is, passRows+again, tables, false, runner.Stages))
	if len(m.Follows) > 0 {
		own := owntable.Table()
		ps = append(ps, b.comparing(is, passOwn+again, []*store.Table{&own}, true, runner.Stages))
	}
	return ps
}

// compareAtOnce is how many rows are compared at a time.
const compareAtOnce = 200

// comparing is a pass that compares rows and corrects what differs, up to a stage; values
// says that only what rows follow is compared.
func (b *Builder) comparing(is owntable.Build, name string, tables []*store.Table, values bool, upTo runner.Stage) *pass {
	p := &pass{Builder: b, build: is, name: name, tables: tables}
	p.take = func(_ context.Context, s *segment, t *store.Table, row value.Item) error {
		c := projections.Change{New: row}
		if t.Name != owntable.TableName {
			var err error
			if c, err = b.inserted(t, row); err != nil {
				return err
			}
			if !values && orphan(&c) {
				s.add(Progress{Orphans: 1})
			}
		}
		s.changes = append(s.changes, c)
		s.held += holdRows / compareAtOnce
		return nil
	}
	p.done = func(ctx context.Context, s *segment) error { return s.correct(ctx, values, upTo) }
	return p
}

// orphan reports whether a row seems to be a copy that an older definition made: it carries a
// position as copies do and passes the tests of an entity that rules make, but has a key that
// the entity cannot have.
func orphan(c *projections.Change) bool {
	if c.Is != nil || c.New.Get(owntable.Version).Kind() != value.Binary {
		return false
	}
	return slices.ContainsFunc(c.Table.Entities, func(e *model.Entity) bool {
		tells := slices.ContainsFunc(e.Where, func(t model.Test) bool { return t.Field.Key == nil })
		return len(e.MadeBy) > 0 && tells && model.Holds(e.Where, c.New)
	})
}

// correct compares the rows of a segment, and corrects what differs, stage by stage.
// Fixes of one stage come before those of the next, because later ones read what earlier ones wrote.
func (s *segment) correct(ctx context.Context, values bool, upTo runner.Stage) error {
	fixes := make([][]runner.Fix, runner.Stages)
	v := &runner.Comparison{Model: s.Runner.Model, Store: s.Runner.Store, Now: s.Runner.Now, Fix: func(f runner.Fix) {
		if at := f.Stage(); at <= upTo && (values || !s.dry || at > runner.StageValues) { // a dry run leaves values as they are, and counts them once
			fixes[at] = append(fixes[at], f)
		}
	}}
	for _, r := range kinds.InPlace(v, values) {
		if err := s.compare(ctx, r); err != nil {
			return err
		}
	}
	r, fence := *s.Runner, &fenced{Store: s.Runner.Store, s: s}
	r.Store = fence
	for _, some := range fixes {
		done := map[string]bool{}
		for _, f := range some {
			if name := fmt.Sprintf("%T %s", f, f.Thing()); !done[name] {
				done[name] = true
				fence.read = map[string]value.Item{}
				if err := s.fix(ctx, &r, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compare hands a page to a recount: the changes of a table of the model, or the rows of our
// own table. A page never has both. Comparing again what a crashed builder has compared finds
// nothing to do.
func (s *segment) compare(ctx context.Context, r runner.Compares) error {
	if len(s.changes) > 0 && s.changes[0].Table != nil {
		return r.Compare(ctx, s.changes)
	}
	rows := make([]value.Item, len(s.changes))
	for i := range s.changes {
		rows[i] = s.changes[i].New
	}
	return r.OwnRows(ctx, rows)
}

// fixTries is how often a thing is corrected that others write meanwhile.
const fixTries = 50

// fix corrects one thing. What cannot be corrected is left, and counted: verify says what it
// is.
func (s *segment) fix(ctx context.Context, r *runner.Runner, f runner.Fix) error {
	if s.dry {
		s.add(Progress{Puts: 1, Reads: int64(f.Reads()), Units: int64(f.Units())})
		return nil
	}
	for range fixTries {
		done, differs, err := f.Correct(ctx, r, r.Store.Tip().Seen)
		var unfixable runner.Unfixable
		switch {
		case errors.As(err, &unfixable), errors.Is(err, store.ErrRefused):
			s.add(Progress{Left: 1})
			return nil
		case err != nil:
			return err
		case done && differs:
			s.row.Puts++
			s.add(Progress{Puts: 1})
			return nil
		case done:
			return nil
		}
	}
	return fmt.Errorf("%T %s changes all the time; run it again", f, f.Thing())
}

// fenced is a store whose writes are in transactions with the fence of a segment.
type fenced struct {
	store.Store
	s    *segment
	read map[string]value.Item // the rows that the fix has read, by owntable.RowText: what it writes costs as much as these
}

// Get remembers what it returns.
func (f *fenced) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := f.Store.Get(ctx, refs)
	for i := range rows {
		f.read[owntable.RowText(refs[i])] = rows[i]
	}
	return rows, err
}

// Write does writes one by one: the condition of each fails by itself.
// There is an outcome for each write. A write that met a conflict too often is an error of the whole call.
func (f *fenced) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(ws))
	for i, w := range ws {
		w.Return = false
		err := f.Transact(ctx, []store.Write{w})
		for tries := 0; errors.Is(err, store.ErrConflict) && tries < fixTries; tries++ { // nothing was written, whatever the row is
			err = f.Transact(ctx, []store.Write{w})
		}
		if err != nil && !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrRefused) {
			return nil, err
		}
		out[i].Err = err
	}
	return out, nil
}

// Transact adds the fence. The error wraps runner.ErrLost if another builder has taken over.
// It spends two units for each KB begun of each row, and two for the fence, before it sends
// anything. A condition that fails for another reason than the fence is returned as it is.
func (f *fenced) Transact(ctx context.Context, ws []store.Write) error {
	fence := f.s.row.Held(f.s.at)
	units := 0
	for i := range ws {
		units += f.writeUnits(&ws[i])
	}
	if err := f.s.spend(ctx, units+2); err != nil {
		return err
	}
	err := f.Store.Transact(ctx, append(slices.Clip(ws), fence))
	if errors.Is(err, store.ErrCondition) {
		if lost := f.s.Runner.CheckGuard(ctx, []store.Write{fence}); lost != nil {
			return lost
		}
	}
	return err
}

// writeUnits returns about the write units of a write in a transaction: two for each KB of the row as it was read, or as
// it becomes, and the row's entries in indexes. A row that was not read is taken for one that there is not yet.
func (f *fenced) writeUnits(w *store.Write) int {
	t := owntable.Table()
	if of := f.s.Runner.Model.Table(w.Table); of != nil {
		t = of.Table
	}
	was := f.read[owntable.RowText(w.Ref)]
	row, err := t.Apply(w, was)
	if err != nil { // the store refuses it, and charges one for that
		return 2
	}
	return 2*store.WriteUnits(max(was.Size(), row.Size())) + t.EntryUnits(was, row)
}
