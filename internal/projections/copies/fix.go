package copies

import (
	"context"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/follow"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Fixes returns the copies that a row makes, with the lists that they are on, and the row itself if it is a copy: its source
// may be gone, or make another row now. History is left out.
func (Kind) Fixes(m *model.Model, c *projections.Change) (out []runner.Fix) {
	for _, p := range PutsOf(c) {
		if len(p.Rule.Keep) > 0 {
			continue
		}
		out = append(out, &RowFix{Row: p.Row, Source: c.Row, Rule: p.Rule})
		for _, f := range p.Follows {
			if p.Rule.Into.Attribute(f.Attr) != nil {
				out = append(out, &follow.LinkFix{Row: p.Row, Following: f})
			}
		}
	}
	if c.Is == nil {
		return out
	}
	for rule, source := range Makers(c.Is, c.New) {
		out = append(out, &RowFix{Row: c.Row, Source: source, Rule: rule})
	}
	return out
}

// RowFix makes a row as its rule makes it from its source row, or deletes it.
type RowFix struct {
	Row, Source store.Ref
	Rule        *model.RowRule
	// Always has a row that seems right written too: it gets the position, up to which changes were left out that may
	// come late, and the values that it follows, which an application may have overwritten.
	Always bool
	// Above has a row get the next position, so that of two who correct it at the same time one is refused, and reads it again.
	Above bool
}

// Describe returns the row and its source.
func (f *RowFix) Describe() string {
	return owntable.RowText(f.Row) + "\x00" + owntable.RowText(f.Source)
}

// Phase returns StageRows.
func (*RowFix) Phase() runner.FixPhase { return runner.PhaseRows }

// MadeBy returns the rule that makes the row.
func (f *RowFix) MadeBy() *model.RowRule { return f.Rule }

// RowsRead returns the row and its source.
func (f *RowFix) RowsRead(*model.Model) []store.Ref { return []store.Ref{f.Row, f.Source} }

// IsRight reports whether the row is as the rule makes it, apart from the values that it follows. TTL may have deleted a row that
// is not there.
func (f *RowFix) IsRight(r *runner.Runner, rows []value.Item) bool {
	switch p, made := makesAt(f.Rule, rows[1], f.Row); {
	case !made:
		return rows[0] == nil
	case rows[0] == nil:
		return r.Model.Table(f.Row.Table).Expired(p.Image, r.Now())
	default:
		return correctionWork(r).isMade(&p, rows[0])
	}
}

// Correct makes the row as the rule makes it from its source now, or deletes it if the rule
// makes no such row.
func (f *RowFix) Correct(ctx context.Context, r *runner.Runner, floor events.Position) (done, differs bool, err error) {
	noted, err := r.Get(ctx, []store.Ref{f.Row, owntable.Tombstone(f.Row)})
	if err != nil {
		return false, false, err
	}
	is, err := r.GetRow(ctx, f.Source)
	if err != nil {
		return false, false, err
	}
	version := noted[0].Get(owntable.Version)
	at := runner.FixedAt(events.PositionFrom(version), floor)
	p, made := makesAt(f.Rule, is, f.Row)
	if !made {
		return repairGone(ctx, r, f.Row, noted[0], at)
	}
	if f.Above {
		at = at.Next()
	}
	if buried := owntable.MemberFrom(noted[1]).Position; at.Compare(buried) <= 0 {
		at = buried.Next()
	}
	p.Position = at
	return repairMade(ctx, r, &p, noted[0], noted[1], f.Always)
}

// repairGone deletes a row that no rule makes, after writing its tombstone. The error is
// runner.ErrNotOurs if weir did not write the row.
func repairGone(ctx context.Context, r *runner.Runner, row store.Ref, noted value.Item, at events.Position) (done, differs bool, err error) {
	switch {
	case noted == nil:
		return true, false, nil
	case noted.Get(owntable.Version).Kind() != value.Binary:
		return false, true, runner.ErrNotOurs
	}
	if _, err := r.Write(ctx, []store.Write{owntable.Member{Position: at}.Keep(owntable.Tombstone(row), r.OwnRowExpiry())}); err != nil {
		return false, true, err
	}
	done, err = r.WriteIf(ctx, store.Write{Ref: row, Delete: true, If: store.Cond{{store.AsRead(owntable.Version, noted.Get(owntable.Version))}}})
	return done, true, err
}

// repairMade writes a row as its rule makes it, without the attributes of an older definition of the rule
// made, and then compares the values that it follows. A row that does not exist is written
// only if its tombstone is as noted too: nothing has deleted it since. With always, it is written even if it
// is as the rule makes it.
func repairMade(ctx context.Context, r *runner.Runner, p *projections.Put, noted, buried value.Item, always bool) (done, differs bool, err error) {
	w, puts := correctionWork(r), []*projections.Put{p}
	wr := w.rowWrite(p, nil, false)
	rest := removeLeftovers(p, &wr, noted)
	if noted != nil && len(rest) == 0 && asMade(p, &wr, noted) && !always {
		return true, false, nil
	}
	if err := w.EnterLists(ctx, puts); err != nil {
		return false, true, err
	}
	values, err := w.ReadValues(ctx, puts)
	if err != nil {
		return false, true, err
	}
	wr = w.rowWrite(p, values, false)
	wr.Ops = append(wr.Ops, rest...)
	if noted != nil {
		wr.If = store.Cond{r.ExistsCondition(p.Row.Table), {store.AsRead(owntable.Version, noted.Get(owntable.Version))}}
		done, err = r.WriteIf(ctx, wr)
	} else {
		wr.If = store.Cond{{{Attr: r.Model.Table(p.Row.Table).Key.Partition.Name, Is: store.Absent}}}
		tomb := owntable.MemberFrom(buried).Unchanged(owntable.Tombstone(p.Row))
		done, err = runner.TransactionOutcome(r.Store.Transact(ctx, []store.Write{tomb, wr}))
	}
	if err == nil && done {
		// A row that was just made shows these values.
		err = w.CompareAgain(ctx, puts, values, map[*projections.Put]bool{p: noted != nil}, events.Position{})
	}
	return done, true, err
}

// ruleAttributes returns the attributes of a row that a rule alone determines: no bookkeeping, and
// none that follow another row.
func ruleAttributes(rule *model.RowRule, row value.Item) value.Item {
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

// removeLeftovers returns the operations that remove attributes of a row that its rule does not make. The
// rows belong to weir, so an older definition of the rule made it.
func removeLeftovers(p *projections.Put, wr *store.Write, row value.Item) (ops []store.Op) {
	t := p.Rule.Into.Table
	for _, a := range ruleAttributes(p.Rule, row) {
		key := a.Name == t.Key.Partition.Name || a.Name == t.Key.Sort.Name
		if !key && !p.Image.Has(a.Name) && !slices.ContainsFunc(wr.Ops, func(op store.Op) bool { return op.Attr == a.Name }) {
			ops = append(ops, store.Op{Kind: store.Remove, Attr: a.Name})
		}
	}
	return ops
}

// asMade reports whether a row is as a write would make it, apart from the values that it
// follows.
func asMade(p *projections.Put, wr *store.Write, row value.Item) bool {
	follows, marks := map[string]bool{}, map[string]bool{}
	for i := range p.Rule.Fields {
		if f := p.Rule.Fields[i].Expr.Follow; f != nil {
			follows[f.Attr], marks[owntable.FollowsAttr(f.Attr)] = true, true
		}
	}
	for _, op := range wr.Ops {
		held := marks[op.Attr] || !owntable.IsOurs(op.Attr) && !follows[op.Attr]
		if held && !value.Equal(op.Value, row.Get(op.Attr)) {
			return false
		}
	}
	return row.Has(owntable.Version)
}
