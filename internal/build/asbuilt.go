package build

import (
	"context"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// A dry run builds nothing, so a pass that comes behind that of copies would read the copies as they are
// now. This file gives it the copies as they will be: each source row tells those that are made from it.

// asBuilt stands for the rows of some rules in a pass of a dry run.
type asBuilt struct {
	rules  []*model.RowRule // whose copies it reads, or copies of these
	plain  *runner.Runner   // reads rows that a build does not, uncounted
	makers []*store.Table   // with source rows of the rules, where the pass reads none of the table
}

// asBuilt returns the rows that a pass takes in place of copies, nil if it reads none. A build in place that has come to a level reads the
// copies of the levels before.
func (p *pass) asBuilt(plain *runner.Runner) *asBuilt {
	a, levels, reads := &asBuilt{plain: plain}, madeLevels(plain.Model), false
	for _, rule := range plain.Model.Rows {
		if len(rule.Keep) > 0 || p.build.Entity == model.BuildInPlace && levels[rule.Into] > p.level {
			continue
		}
		a.rules = append(a.rules, rule)
		reads = reads || p.readsTable(&rule.Into.Table.Table)
		if t := &rule.Source.Table.Table; !p.readsTable(t) && !slices.Contains(a.makers, t) {
			a.makers = append(a.makers, t)
		}
	}
	if !reads {
		return nil
	}
	p.tables = append(slices.Clip(p.tables), a.makers...)
	return a
}

// readsTable reports whether the pass reads a table, and not only the rows that are made of its rows.
func (p *pass) readsTable(t *store.Table) bool {
	is := func(of *store.Table) bool { return of.Name == t.Name }
	return slices.ContainsFunc(p.tables, is) && (p.made == nil || !slices.ContainsFunc(p.made.makers, is))
}

// takeChanges takes in rows of a table.
func (s *segment) takeChanges(ctx context.Context, t *store.Table, changes []projections.Change) (err error) {
	if s.made != nil && t.Name != owntable.TableName {
		if changes, err = s.asMade(ctx, t, changes); err != nil {
			return err
		}
	}
	for i := range changes {
		if err := s.take(ctx, s, t, &changes[i]); err != nil {
			return err
		}
	}
	return nil
}

// asMade returns the rows of a page that are not copies, and the copies that these will have in tables that the pass reads, with
// the copies of those.
func (s *segment) asMade(ctx context.Context, t *store.Table, changes []projections.Change) (out []projections.Change, err error) {
	var made []projections.Change
	for i := range changes {
		if replaced, err := kinds.Replaces(ctx, s.made.plain, s.made.rules, &changes[i]); err != nil {
			return nil, err
		} else if !replaced {
			made = append(made, changes[i])
		}
	}
	if s.readsTable(t) {
		out = slices.Clone(made)
	}
	for range s.made.rules { // at most so many levels: rows may make each other
		var next []projections.Change
		for i := range made {
			puts, err := kinds.WillMake(ctx, s.made.plain, s.made.rules, &made[i])
			if err != nil {
				return nil, err
			}
			for _, p := range puts {
				c, err := s.asInsertion(&p.Rule.Into.Table.Table, p.Image)
				if err != nil {
					return nil, err
				}
				if next = append(next, c); s.readsTable(&p.Rule.Into.Table.Table) {
					out = append(out, c)
				}
			}
		}
		if made = next; len(made) == 0 {
			break
		}
	}
	return out, nil
}

// growth is by how much a dry run makes tables larger, by their names. A scan of a later round reads that too. The rows of a scan of the
// same round reads depends on where the rows come.
type growth map[string]Progress

// noteGrowth notes a write of a dry run. Of a row of our own table that a build in place compares, the scan reads another row.
func (b *Builder) noteGrowth(table string, was, is value.Item) {
	d := Progress{Bytes: int64(is.Size() - was.Size())}
	if is != nil {
		d.Rows++
	}
	if was != nil {
		d.Rows--
	}
	if table == owntable.TableName && was == nil && is != nil {
		for _, k := range b.Runner.Kinds {
			d.Reads += int64(len(k.Fixes(b.Runner.Model, &projections.Change{New: is})))
		}
	}
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	if b.meter.grown == nil {
		b.meter.grown = growth{}
	}
	sum := b.meter.grown[table]
	sum.addUp(d)
	b.meter.grown[table] = sum
}

// addGrown counts how much the scans of a round of a dry run read of the rows that rounds before it make.
func (b *Builder) addGrown(before growth, ps []*pass) {
	met := map[string]bool{}
	for _, p := range ps {
		if !p.dry {
			continue
		}
		for _, t := range p.tables {
			more := before[t.Name]
			if p.build.Entity == model.BuildInPlace { // each such pass reads the rows that it compares
				b.addProgress(Progress{Reads: more.Reads})
			}
			if more.Reads = 0; p.readsTable(t) && !met[t.Name] {
				b.addProgress(more)
			}
			met[t.Name] = true
		}
	}
}
