package set

import (
	"context"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/tally"
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Begin returns the kind's part of a batch.
func (Kind) Begin(_ *model.Model, g *projections.Gathered) runner.Part {
	return &part{gathered: &gathered{all: g, at: map[string]*projections.Target{}}}
}

// Limits notes contributions of a row that it never can make.
func (Kind) Limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	tally.Limits(x, c, from, true)
}

// Letters returns the kind of a row that refused to show its part of a set.
func (Kind) Letters() []deadletter.Kind { return []deadletter.Kind{deadletter.Set} }

// part is the work of one batch for this kind.
// It lives as long as the batch, and belongs to one goroutine.
type part struct {
	runner.BasePart
	*gathered
}

// Fold takes in the work of the i-th change.
func (p *part) Fold(i int, c *projections.Change) { p.foldChange(i, c) }

// Apply counts the batch's steps in their leaves, and shows the leaves.
func (p *part) Apply(ctx context.Context, w *runner.Work) error {
	k := &work{Work: w, gathered: p.gathered}
	if err := k.countBuilds(ctx); err != nil {
		return err
	}
	return k.countSteps(ctx)
}

// work is the state of one batch that is being applied.
type work struct {
	*runner.Work
	*gathered
	hidden bool // the nodes are of a generation that no rows show yet
}
