package tally

import (
	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/projections"
)

// Becomes says what becomes of a tally's value.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if !x.Tally || x.Kind == aggregate.Set.Keyword {
		return ""
	}
	return projections.UntilLive(x)
}
