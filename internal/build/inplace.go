package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Rows that rules make, and the values that they follow, carry the position of the change of
// their source row that they were made from. So they have no generations: the builder
// compares every row with its source, and corrects it
// (runner.Fix): a row keeps the position that it has; where there is neither a row nor a
// tombstone, it gets one that is below all changes that are still to come. Later changes
// win, and readers see a row as it was or as it is right. Every write is in a
// transaction with the fence of the builder's segment.

// inPlace returns the passes that compare and correct: first the values that rows follow, then the rows, then the values that rows
// show of these. Derivations of rows that rules make come after these, with passes of their own over their tables.
func (b *Builder) inPlace(is owntable.Build, again string) (ps []*pass) {
	m, levels, own := b.Runner.Model, madeLevels(b.Runner.Model), owntable.Table()
	for n := range slices.Max(append(slices.Collect(maps.Values(levels)), 1)) {
		tables, nr := b.sourceTables(is.Entity), again
		if n > 0 {
			tables = slices.DeleteFunc(tables, func(t *store.Table) bool {
				return !slices.ContainsFunc(m.Table(t.Name).Entities, func(e *model.Entity) bool { return levels[e] >= n })
			})
			nr = fmt.Sprint(" ", n+1, again)
		}
		add := func(pass string, tables []*store.Table, stages ...runner.FixPhase) {
			p := b.comparePass(is, pass+nr, tables, stages...)
			p.level, p.levels, ps = n, levels, append(ps, p)
		}
		values := slices.ContainsFunc(m.Follows, func(f *model.Follow) bool { return levels[f.Source] == n })
		if values {
			add(passValues, tables, runner.PhaseValues)
		}
		add(passRows, tables, runner.PhaseRows, runner.PhaseLinks)
		if values || slices.ContainsFunc(m.Follows, func(f *model.Follow) bool { return levels[f.Into] == n+1 }) {
			add(passOwn, []*store.Table{&own}, runner.PhaseValues, runner.PhaseFollowers)
		}
	}
	return ps
}

// madeLevels returns how many levels of rows that rules make, or that follow, are between the rows of an entity and those that
// applications write whole: 0 for these, 1 for their copies and for rows of applications that follow them, 2 for copies of copies,
// or for rows that follow copies. Rows that make each other have no order.
func madeLevels(m *model.Model) map[*model.Entity]int {
	levels := map[*model.Entity]int{}
	var level func(e *model.Entity) int
	level = func(e *model.Entity) int {
		if n, met := levels[e]; met {
			return n
		}
		levels[e] = 0
		for _, f := range e.Follows {
			levels[e] = max(levels[e], 1+level(f.Source))
		}
		for _, rule := range e.MadeBy {
			if len(rule.Keep) == 0 {
				levels[e] = max(levels[e], 1+level(rule.Source))
			}
			for i := range rule.Fields {
				if f := rule.Fields[i].Expr.Follow; f != nil {
					levels[e] = max(levels[e], 1+level(f.Source))
				}
			}
		}
		return levels[e]
	}
	for _, e := range m.Entities {
		level(e)
	}
	return levels
}

// compareAtOnce is how many rows are compared at a time.
const compareAtOnce = 200

// comparePass is a pass that compares rows and corrects differences, in some stages.
func (b *Builder) comparePass(is owntable.Build, name string, tables []*store.Table, stages ...runner.FixPhase) *pass {
	p := &pass{Builder: b, build: is, name: name, tables: tables}
	p.take = func(_ context.Context, s *segment, _ *store.Table, c *projections.Change) error {
		if strings.TrimSuffix(name, again) == passRows && isOrphan(c) {
			s.addProgress(Progress{Orphans: 1})
		}
		s.changes = append(s.changes, *c)
		s.held += holdRows / compareAtOnce
		return nil
	}
	p.done = func(ctx context.Context, s *segment) error {
		for some := range slices.Chunk(s.changes, compareAtOnce) {
			if err := s.correctRows(ctx, some, stages); err != nil {
				return err
			}
		}
		return nil
	}
	return p
}

// isOrphan reports whether a row seems to be a copy that an older definition made: it carries a
// position as copies do and passes the tests of an entity that rules make, but has a key that
// the entity cannot have.
func isOrphan(c *projections.Change) bool {
	if c.Table == nil || c.Is != nil || c.New.Get(owntable.Version).Kind() != value.Binary {
		return false
	}
	return slices.ContainsFunc(c.Table.Entities, func(e *model.Entity) bool {
		tells := slices.ContainsFunc(e.Where, func(t model.Test) bool { return t.Field.Key == nil })
		return len(e.MadeBy) > 0 && tells && model.Holds(e.Where, c.New)
	})
}

// correctRows compares the values that rows lead to, and corrects differences, stage by stage. The fixes of one stage come before those
// of the next, because later ones read the writes of earlier ones. All rows that the fixes of a stage compare are read at once, and again
// after a correction. Comparing again the rows that a crashed builder has compared finds nothing to do.
func (s *segment) correctRows(ctx context.Context, changes []projections.Change, stages []runner.FixPhase) error {
	r, m := s.meteredRunner(true)
	known := map[string]value.Item{} // the rows as they were read, by owntable.RowText
	fixes := make([][]runner.Fix, runner.Stages)
	met := map[string]bool{}
	for i := range changes {
		c := &changes[i]
		if c.Table == nil {
			known[owntable.RowText(rowRef(c.New))] = c.New
		} else {
			known[owntable.RowText(c.Row)] = c.New
		}
		for _, k := range r.Kinds {
			for _, f := range k.Fixes(r.Model, c) {
				if s.madeBefore(f) {
					continue
				}
				if name := fmt.Sprintf("%T %s", f, f.Describe()); !met[name] {
					met[name] = true
					fixes[f.Phase()] = append(fixes[f.Phase()], f)
				}
			}
		}
	}
	if err := s.seedCopies(ctx, m, changes); err != nil {
		return err
	}
	for _, stage := range stages {
		if err := s.readFor(ctx, m, fixes[stage], known); err != nil {
			return err
		}
		var fixed []runner.Fix
		for _, f := range fixes[stage] {
			if f.IsRight(r, rowsOf(r.Model, f, known)) {
				continue
			}
			fixed = append(fixed, f)
			m.read = map[string]value.Item{}
			if err := s.applyFix(ctx, r, f); err != nil {
				return err
			}
		}
		for _, f := range fixed {
			for _, ref := range f.RowsRead(r.Model) {
				delete(known, owntable.RowText(ref))
			}
		}
	}
	return nil
}

// seedCopies tells the store of a dry run of the copies that the build will have made by now.
func (s *segment) seedCopies(ctx context.Context, m *metered, changes []projections.Change) error {
	if s.made == nil || s.level == 0 {
		return nil
	}
	var refs []store.Ref
	for i := range changes {
		refs = append(refs, changes[i].Row)
	}
	rows, err := s.made.plain.Store.Get(ctx, refs)
	for i := range rows {
		if rows[i] == nil {
			m.made[owntable.RowText(refs[i])] = changes[i].New
		}
	}
	return err
}

// madeBefore reports whether the passes of the levels before have compared the thing of a fix: a rule makes it, and no history.
func (p *pass) madeBefore(f runner.Fix) bool {
	rule := f.MadeBy()
	return rule != nil && len(rule.Keep) == 0 && p.levels[rule.Into] <= p.level
}

// readFor reads the rows that fixes compare and that are not known yet.
func (s *segment) readFor(ctx context.Context, m *metered, fixes []runner.Fix, known map[string]value.Item) error {
	var refs []store.Ref
	for _, f := range fixes {
		for _, ref := range f.RowsRead(s.Runner.Model) {
			if _, is := known[owntable.RowText(ref)]; !is {
				known[owntable.RowText(ref)] = nil
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	m.read = map[string]value.Item{}
	rows, err := m.Get(ctx, refs)
	for i, row := range rows {
		known[owntable.RowText(refs[i])] = row
	}
	return err
}

// rowsOf returns the rows that a fix compares.
func rowsOf(m *model.Model, f runner.Fix, known map[string]value.Item) (rows []value.Item) {
	return seq.Map(f.RowsRead(m), func(ref store.Ref) value.Item { return known[owntable.RowText(ref)] })
}

// fixTries is how often a thing is corrected that others write meanwhile.
const fixTries = 50

// applyFix corrects one thing. A row that cannot be corrected is left, and counted: verify says what it
// is.
func (s *segment) applyFix(ctx context.Context, r *runner.Runner, f runner.Fix) error {
	for range fixTries {
		done, differs, err := f.Correct(ctx, r, r.Store.Tip().Seen)
		var unfixable runner.Unfixable
		switch {
		case errors.As(err, &unfixable), errors.Is(err, store.ErrRefused):
			s.addProgress(Progress{Left: 1})
			return nil
		case err != nil:
			return err
		case done && differs:
			s.row.Puts++
			s.addProgress(Progress{Puts: 1})
			return nil
		case done:
			return nil
		}
	}
	return fmt.Errorf("%T %s changes all the time; run it again", f, f.Describe())
}
