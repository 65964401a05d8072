package copies

import (
	"context"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/follow"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// compares compares copies with their source rows, in both directions. It keeps nothing.
type compares struct {
	*runner.Comparison
}

// Compares returns the kind's part in a comparison.
func (Kind) Compares(v *runner.Comparison) runner.Compares { return &compares{Comparison: v} }

// Compare compares the copies of the rows, and the rows that are copies.
func (v *compares) Compare(ctx context.Context, rows []projections.Change) error {
	if err := v.made(ctx, rows); err != nil {
		return err
	}
	return v.makers(ctx, rows)
}

// made checks that each source row has its copy.
// A copy that TTL may have deleted is not missed. Each pass of rows is read in one call.
func (v *compares) made(ctx context.Context, rows []projections.Change) error {
	var puts []*projections.Put
	var refs, sources []store.Ref
	var sizes []int // of the sources
	for i := range rows {
		made := Puts(&rows[i])
		for j := range made {
			if p := &made[j]; len(p.Rule.Keep) == 0 {
				puts, refs, sources = append(puts, p), append(refs, p.Row), append(sources, rows[i].Row)
				sizes = append(sizes, rows[i].New.Size())
			}
		}
	}
	got, err := v.Get(ctx, refs...)
	if err != nil {
		return err
	}
	var links []follow.Link
	for i, p := range puts {
		fix := &RowFix{
			Row: p.Row, Rule: p.Rule, Source: sources[i], Bytes: max(p.Image.Size(), got[i].Size()), From: sizes[i],
			Entries: v.Model.Table(p.Row.Table).EntryUnits(got[i], p.Image),
		}
		if got[i] == nil && v.Model.Table(p.Row.Table).Expired(p.Image, v.Now()) {
			continue
		}
		if got[i] == nil {
			fix.Enters = len(p.Follows)
			v.Fix(fix)
			continue
		}
		more, same := follow.Links(v.Model, p, got[i])
		if !same || !value.EqualItems(plain(p.Rule, got[i]), plain(p.Rule, p.Image)) {
			v.Fix(fix)
		} else {
			links = append(links, more...)
		}
	}
	return follow.Places(ctx, v.Comparison, links)
}

// plain returns the attributes of a row that a rule alone determines: no bookkeeping, and
// none that follow another row.
func plain(rule *model.RowRule, row value.Item) value.Item {
	return row.Filter(func(name string) bool {
		if owntable.IsOurs(name) || projections.IsDerived(rule.Into, name) {
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
// It finds copies whose source is gone, is of another entity, or makes another row now; history is
// left out.
func (v *compares) makers(ctx context.Context, rows []projections.Change) error {
	type copy struct {
		*projections.Change
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
			if ref, ok := SourceOf(rule, rows[i].New); ok {
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
			p, ok = Make(c.rule, got[i])
		}
		if !ok || !projections.SameRow(p.Row, c.Row) {
			v.Fix(&RowFix{
				Row: c.Row, Rule: c.rule, Source: refs[i], From: got[i].Size(), Gone: c.New.Size(), Entries: v.Model.Table(c.Row.Table).EntryUnits(c.New, nil),
			})
		}
	}
	return nil
}

// OwnRows compares nothing.
func (*compares) OwnRows(context.Context, []value.Item) error { return nil }
