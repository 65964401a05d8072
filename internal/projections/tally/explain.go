package tally

import (
	"slices"

	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// Derives returns the attributes of the tallies on an entity, and for a group the entity's
// name, which stands for how many rows the group has.
func (Kind) Derives(e *model.Entity) (attrs []string) {
	for _, t := range e.Values {
		switch {
		case e.Group != nil && t == e.Group.Rows:
			attrs = append(attrs, e.Name)
		case !t.IsSet():
			attrs = append(attrs, t.Attr)
		}
	}
	return attrs
}

// Explain returns the kind's part in explaining a value.
func (Kind) Explain(of *runner.Asked) runner.Explanation {
	if g := of.Entity.Group; g != nil && of.Attr == of.Entity.Name {
		rows := *of
		rows.Attr, of = g.Rows.Attr, &rows
	}
	return &explanation{Ledger: Ledger{Asked: of}}
}

// explanation is the ledger that the records of a recording would make, for one row.
type explanation struct {
	runner.BaseExplanation
	Ledger
}

// Parts says what a change adds to the accumulators behind the value.
func (x *explanation) Parts(c *projections.Change) []string {
	return x.Adds(Fold(c, nil))
}

// Value returns the tally after a change.
// "" means that there is no value. A distinct over its max is said in words.
func (x *explanation) Value(c *projections.Change) string {
	x.Take(Fold(c, nil))
	if g := x.Entity.Group; g != nil && x.Attr == g.Rows.Attr {
		return runner.ValueText(g.RowsIn(x.Sums))
	}
	attrs, cannot := projections.Published(x.Entity.Values, owntable.Settled(x.Sums))
	for i := range cannot {
		if cannot[i].Tally.Attr == x.Attr {
			return cannot[i].String()
		}
	}
	for _, a := range attrs {
		if a.Name == x.Attr {
			return runner.ValueText(a.Value)
		}
	}
	return ""
}

// MadeOf names the rows that weir makes, or the derived attribute, which the tally counts, sums
// up, is told apart by or depends on.
func (x *explanation) MadeOf() string {
	for _, t := range x.Entity.Values {
		if t.Attr != x.Attr {
			continue
		}
		for _, src := range t.Sources {
			if src.Entity.Group != nil || len(src.Entity.MadeBy) > 0 {
				return src.Entity.Name
			}
			for _, f := range src.Reads() {
				if f != nil && isDerived(src.Entity, f.Attr) {
					return src.Entity.Name + "." + f.Attr
				}
			}
		}
	}
	return ""
}

// isDerived reports whether weir decides an attribute. The attribute of a status is the
// application's too, and counts.
func isDerived(e *model.Entity, attr string) bool {
	return projections.IsDerived(e, attr) || slices.ContainsFunc(e.Statuses, func(s *model.Status) bool { return s.Attr.Name == attr })
}

// Ledger is the ledger of the asked row, as far as the changes so far make it.
type Ledger struct {
	*runner.Asked
	Sums value.Item
}

// Adds says, for people, what amounts add to the accumulators behind the value.
// Amounts of other targets are left out.
func (l *Ledger) Adds(adds []projections.Add) []string {
	var sums value.Item
	for _, a := range adds {
		if l.counts(&a) {
			sums = append(sums, value.Attr{Name: a.Field, Value: a.Amount})
		}
	}
	return aggregate.Explain(l.Attr, sums)
}

// Take adds amounts to the ledger.
// Amounts of other targets change nothing.
func (l *Ledger) Take(adds []projections.Add) {
	for _, a := range adds {
		if !l.counts(&a) {
			continue
		}
		if sum, err := value.AddNumbers(l.Sums.Get(a.Field), a.Amount); err == nil { // not in 10^9 rows
			l.Sums = l.Sums.With(value.Attr{Name: a.Field, Value: sum})
		}
	}
}

// counts reports whether an amount is for this row.
func (l *Ledger) counts(a *projections.Add) bool {
	return a.Entity == l.Entity && projections.SameRow(a.Target, l.Row)
}
