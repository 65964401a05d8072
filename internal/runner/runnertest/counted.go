// Package runnertest reads what runners store, for tests of packages that use them.
package runnertest

import (
	"context"
	"errors"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Counted returns the counts of all records that were passed, over all runs: those
// of its checkpoints, and those of checkpoints that were forgotten.
func Counted(ctx context.Context, r *runner.Runner) (n runner.Counts, err error) {
	gone, err := r.GetRow(ctx, owntable.Past(r.Model.Name))
	if err != nil {
		return n, err
	}
	past, err := owntable.DecodePast(gone)
	n = runner.Counts(past)
	var rows []value.Item
	q := owntable.RowsOf(owntable.Checkpoints(r.Model.Name))
	for more := true; more && err == nil; more = q.After != nil {
		var page store.Page
		page, err = r.Store.Query(ctx, q)
		rows, q.After = append(rows, page.Rows...), page.Next
	}
	for _, row := range rows {
		is, bad := owntable.DecodeCheckpoint(row)
		err = errors.Join(err, bad)
		n.Add(runner.Counts(is.Counts))
	}
	return n, err
}
