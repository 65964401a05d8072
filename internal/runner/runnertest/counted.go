// Package runnertest reads what runners store, for tests of packages that use them.
package runnertest

import (
	"context"
	"errors"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// Counted returns the counts of all records that were passed, over all runs, but for those of shards whose checkpoints are
// forgotten.
func Counted(ctx context.Context, r *runner.Runner) (n runner.Counts, err error) {
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
