package status

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Lists returns lists of facts, of which those of groups have targets.
func (Kind) Lists() string { return owntable.KindFact }

// Serve recomputes some targets of a group.
func (Kind) Serve(ctx context.Context, r *runner.Runner, _ *owntable.Job, rows []value.Item, _ bool) error {
	var refs []store.Ref
	for _, row := range rows {
		if ref, ok := TargetOf(r.Model, owntable.MemberFrom(row).Says); ok {
			refs = append(refs, ref)
		}
	}
	_, err := recomputeRows(ctx, r, refs, nil)
	return err
}
