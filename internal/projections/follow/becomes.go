package follow

import (
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
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
	for _, f := range m.Follows {
		if f.Rule.Name+"."+f.Attr == d.Name && len(is.Attrs) == 0 {
			is.Attrs = []string{f.Attr, owntable.Follows(f.Attr), owntable.FollowVersion(f.Attr)}
		}
	}
	return is
}
