package tally

import (
	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/value"
)

// Becomes says what becomes of a tally's value.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if !x.Tally || x.Kind == aggregate.Set.Keyword {
		return ""
	}
	return projections.UntilLive(x)
}

// Remains returns a tally's attribute, and all of the row for a group.
func (Kind) Remains(m *model.Model, d *model.Derivation) (is projections.Remains) {
	e := m.Entity(d.Into)
	for _, t := range projections.Tallies(e) {
		switch {
		case t.Name != d.Name || t.IsSet():
		case e.Group != nil && t == e.Group.Rows:
			is.Makes = func(value.Item) bool { return true }
		case t.Shows():
			is.Attrs = append(is.Attrs, t.Attr)
		}
	}
	return is
}
