package set

import (
	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/projections"
)

// Becomes says what becomes of a set.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != aggregate.Set.Keyword {
		return ""
	}
	return projections.UntilLive(x)
}
