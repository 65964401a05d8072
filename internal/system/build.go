package system

import (
	"maps"
	"slices"

	"weir/internal/build"
	"weir/internal/projections/kinds"
)

// Builder returns the builder of all that can be built of the model.
func (p *Part) Builder() *build.Builder {
	names := slices.Sorted(maps.Values(p.Model.Builds()))
	return &build.Builder{Runner: p.Runner, Contributions: kinds.Contributions, Names: slices.Compact(names)}
}
