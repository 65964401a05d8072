package feed

import (
	"context"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Name returns "feed".
func (Kind) Name() string { return "feed" }

// Begin returns the kind's part of a batch.
func (Kind) Begin(*model.Model, *projections.Gathered) runner.Part { return &part{} }

// part is what one batch asks of this kind.
type part struct{ runner.BasePart }

// Apply writes what the batch asks for.
func (*part) Apply(ctx context.Context, w *runner.Work) error {
	if err := w.Subscribe(ctx); err != nil {
		return err
	}
	return w.Notify(ctx)
}
