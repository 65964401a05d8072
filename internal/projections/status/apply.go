package status

import (
	"context"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Begin returns the kind's part of a batch.
func (Kind) Begin(_ *model.Model, g *projections.Gathered) runner.Part {
	return &part{gathered: gathered{all: g, at: map[string]int{}}}
}

// Shows reports whether rows of the entity show facts. A recompute then shows all that
// is derived on them.
func (Kind) Shows(e *model.Entity) bool { return e.IsRecomputed() }

// Show recomputes the statuses of a row and shows all that is derived on it.
func (Kind) Show(ctx context.Context, r *runner.Runner, target store.Ref) error {
	refused, err := recomputeRows(ctx, r, []store.Ref{target}, nil)
	if err != nil {
		return err
	}
	return refused[0]
}

// part is the work of one batch for this kind.
type part struct {
	runner.BasePart
	gathered
}

// Fold takes in the work of the i-th change.
func (p *part) Fold(i int, c *projections.Change) { p.foldChange(i, c) }

// Record keeps the facts of the batch.
func (p *part) Record(ctx context.Context, w *runner.Work) error {
	return (&work{w, &p.gathered}).keepFacts(ctx)
}

// Apply recomputes the statuses of the batch's targets.
func (p *part) Apply(ctx context.Context, w *runner.Work) error {
	return (&work{w, &p.gathered}).recomputeTargets(ctx)
}

// work is the state of one batch that is being applied.
type work struct {
	*runner.Work
	*gathered
}
