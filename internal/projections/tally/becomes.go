package tally

import (
	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/runner"
)

// Becomes says what becomes of a tally's value.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if !x.Tally || x.Kind == aggregate.Set.Keyword {
		return ""
	}
	return runner.UntilLive(x)
}
