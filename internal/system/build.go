package system

import (
	"weir/internal/build"
	"weir/internal/projections/kinds"
)

// Builder returns the builder of all that can be built of the model.
func (p *Part) Builder() *build.Builder {
	names := p.Model.InBuildOrder(func(string) bool { return true })
	return &build.Builder{Runner: p.Runner, Contributions: kinds.Contributions, Names: names}
}
