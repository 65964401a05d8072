package runner

import (
	"context"

	"weir/internal/projections"
)

// ApplySums applies the amounts of many changes to ledgers, and to the values of targets: the sums of
// targets, whose steps name no change, and of rows that show something, or have claims on
// unique values, one change from their old to their new ones. Its store must be one that
// nothing else writes. The changes of the batch must not be empty.
func (r *Runner) ApplySums(ctx context.Context, b Batch, sums []*projections.Target) error {
	b, err := r.withView(ctx, b)
	if err != nil {
		return err
	}
	g := projections.NewGathered(len(b.Changes))
	for _, s := range sums {
		t := g.TargetOf(s.Row, s.Entity)
		for _, step := range s.Steps {
			step.Position = b.Changes[0].Position
			t.Steps = append(t.Steps, step)
		}
	}
	for i := range b.Changes {
		g.CheckRow(i, &b.Changes[i])
	}
	w := NewWork(r, b, g)
	if err := w.CountTallies(ctx); err != nil {
		return err
	}
	if err := w.expireRemoved(ctx); err != nil {
		return err
	}
	return w.freeClaims(ctx)
}
