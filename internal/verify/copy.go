package verify

import (
	"context"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// copies compares copies with their source rows, in both directions. It keeps nothing.
type copies struct {
	runner.BaseRecount
	*runner.Verification
}

func newCopies(v *runner.Verification) runner.Recount { return &copies{Verification: v} }

// Compare compares the copies of the rows, and the rows that are copies.
func (v *copies) Compare(ctx context.Context, rows []runner.Found) error {
	if err := v.made(ctx, rows); err != nil {
		return err
	}
	return v.makers(ctx, rows)
}

// made checks that each source row has its copy.
func (v *copies) made(ctx context.Context, rows []runner.Found) error {
	var puts []*projections.Put
	var refs, sources []store.Ref
	for i := range rows {
		for j := range rows[i].Puts {
			if p := &rows[i].Puts[j]; len(p.Rule.Keep) == 0 {
				puts, refs, sources = append(puts, p), append(refs, p.Row), append(sources, rows[i].Row)
			}
		}
	}
	got, err := v.Get(ctx, refs...)
	if err != nil {
		return err
	}
	var fs []follower
	for i, p := range puts {
		fix := &Copy{Row: p.Row, Rule: p.Rule, Source: sources[i]}
		have := value.Value{}
		if got[i] != nil {
			have = value.OfMap(plain(p.Rule, got[i]))
			fs = append(fs, links(v.Verification, p, got[i], fix)...)
		}
		v.Check(p.Rule.Name, p.Row, value.OfMap(plain(p.Rule, p.Image)), have, fix)
	}
	return places(ctx, v.Verification, fs)
}

// plain returns the attributes of a row that a rule alone determines: no bookkeeping, and
// none that follow another row.
func plain(rule *model.RowRule, row value.Item) value.Item {
	return row.Filter(func(name string) bool {
		if book.IsOurs(name) || projections.IsDerived(rule.Into, name) {
			return false
		}
		for i := range rule.Fields {
			if rule.Fields[i].Name == name && rule.Fields[i].Expr.Follow != nil {
				return false
			}
		}
		return true
	})
}

// makers checks that each copy has its source row.
func (v *copies) makers(ctx context.Context, rows []runner.Found) error {
	type copy struct {
		*runner.Found
		rule *model.RowRule
	}
	var copies []copy
	var refs []store.Ref
	for i := range rows {
		if rows[i].Is == nil {
			continue
		}
		for _, rule := range rows[i].Is.MadeBy {
			if len(rule.Keep) > 0 {
				continue
			}
			if ref, ok := projections.SourceOf(rule, rows[i].New); ok {
				copies, refs = append(copies, copy{&rows[i], rule}), append(refs, ref)
			}
		}
	}
	got, err := v.Get(ctx, refs...)
	if err != nil {
		return err
	}
	for i, c := range copies {
		p, ok := projections.Put{}, false
		if got[i] != nil && v.Model.Table(refs[i].Table).Classify(got[i]) == c.rule.Source {
			p, ok = projections.Make(c.rule, got[i])
		}
		if !ok || !projections.SameRow(p.Row, c.Row) {
			v.Check(c.rule.Name, c.Row, value.Value{}, value.OfMap(plain(c.rule, c.New)), &Copy{Row: c.Row, Rule: c.rule, Source: refs[i]})
		}
	}
	return nil
}

// Copy makes a row what a rule makes of its source row, or deletes it.
type Copy struct {
	runner.BaseFix
	Row, Source store.Ref
	Rule        *model.RowRule
}

// Thing returns the row and its source.
func (f *Copy) Thing() string { return book.RowText(f.Row) + "\x00" + book.RowText(f.Source) }

// Stage returns StageRows.
func (*Copy) Stage() runner.Stage { return runner.StageRows }

// Correct writes or deletes the row.
func (f *Copy) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	return r.RepairCopy(ctx, f.Rule, f.Row, f.Source, now.Floor)
}
