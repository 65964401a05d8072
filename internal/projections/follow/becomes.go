package follow

import (
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/value"
)

// Becomes says what becomes of an attribute that follows.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != "follow" {
		return ""
	}
	return projections.InPlace(x)
}

// Remains returns an attribute that follows, with the notes of what it follows.
func (Kind) Remains(m *model.Model, d *model.Derivation) (is projections.Remains) {
	is.Told = true
	for _, f := range m.Follows {
		if f.Rule.Name+"."+f.Attr == d.Name {
			is.Attrs = []string{f.Attr, owntable.Follows(f.Attr), owntable.FollowVersion(f.Attr)}
			before, rule := is.Within, f.Rule
			is.Told = is.Told && rule.Keyed()
			is.Within = func(row value.Item) bool { return before != nil && before(row) || rule.CanMake(row) }
		}
	}
	return is
}
