package set

import (
	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/value"
)

// Becomes says what becomes of a set.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != aggregate.Set.Keyword {
		return ""
	}
	return projections.UntilLive(x)
}

// Remains returns the rows of a set.
func (Kind) Remains(m *model.Model, d *model.Derivation) (is projections.Remains) {
	e := m.Entity(d.Into)
	if e != nil && e.SetOf() != nil && e.SetOf().Name == d.Name {
		is.Makes = func(value.Item) bool { return true }
	}
	return is
}
