package follow

import (
	"weir/internal/model"
	"weir/internal/projections"
)

// Becomes says what becomes of an attribute that follows.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != "follow" {
		return ""
	}
	return projections.InPlace(x)
}
