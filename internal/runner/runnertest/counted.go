// Package runnertest reads what runners store, for tests of packages that use them.
package runnertest

import (
	"context"
	"errors"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// Counted returns the counts of all records that were passed, over all runs: those
// of its checkpoints, and those of checkpoints that were forgotten.
func Counted(ctx context.Context, r *runner.Runner) (n runner.Counts, err error) {
	gone, err := r.GetRow(ctx, owntable.PastShards(r.Model.Name))
	if err != nil {
		return n, err
	}
	past, err := owntable.DecodePast(gone)
	n = runner.Counts(past)
	for row, failed := range store.EachRow(ctx, r.Store, owntable.RowsOf(owntable.Checkpoints(r.Model.Name))) {
		if failed != nil {
			return n, failed
		}
		is, bad := owntable.DecodeCheckpoint(row)
		err = errors.Join(err, bad)
		n.Add(runner.Counts(is.Counts))
	}
	return n, err
}
