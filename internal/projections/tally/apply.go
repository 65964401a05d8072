package tally

import (
	"context"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Begin returns the kind's part of a batch.
func (Kind) Begin(_ *model.Model, g *projections.Gathered) runner.Part { return &part{all: g} }

// Limits notes contributions of a row that it never can make.
func (Kind) Limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	Limits(x, c, from, false)
}

// part is the work of one batch for this kind.
type part struct {
	runner.BasePart
	all *projections.Gathered
}

// Fold adds the contributions of a change to the batch's targets.
func (p *part) Fold(i int, c *projections.Change) {
	var f projections.Faults
	for _, a := range Fold(c, &f) {
		p.all.TargetOf(a.Target, a.Entity).AddStep(i, c, a)
		p.all.NoteTouched(i, a.Of)
	}
	p.all.AddFaults(i, f.NewFaults())
}

// Apply writes the work of the batch.
func (*part) Apply(ctx context.Context, w *runner.Work) error {
	if err := w.CountBuilds(ctx, OffersOf); err != nil {
		return err
	}
	return w.CountTallies(ctx)
}
