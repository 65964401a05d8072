package status

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// recomputeAll recomputes the next targets of a list, after a name. It returns the name of the
// last one, or "" if there are no more.
func recomputeAll(ctx context.Context, r *runner.Runner, list, after string) (last string, err error) {
	page, err := r.Store.Query(ctx, owntable.TargetsAfter(r.Model.Name, list, after, runner.PageOfList))
	if err != nil {
		return "", err
	}
	var refs []store.Ref
	for _, row := range page.Rows {
		if ref, ok := TargetOf(r.Model, owntable.FactFrom(row).Says); ok {
			refs = append(refs, ref)
		}
	}
	if _, err := recompute(ctx, r, refs, nil); err != nil {
		return "", err
	}
	if page.Next == nil || len(page.Rows) == 0 {
		return "", nil
	}
	return owntable.FactFrom(page.Rows[len(page.Rows)-1]).Name, nil
}

// startJob creates a job for the targets after a name. If the list has such a job already,
// that job begins again after the name: the targets up to it were recomputed after this
// change.
func startJob(ctx context.Context, r *runner.Runner, list, after string) error {
	_, err := r.Write(ctx, []store.Write{owntable.BeginRecompute(r.Model.Name, list, after, r.Now())})
	return err
}

// Job does one step of a job that recomputes a list of targets. If the job was restarted
// meanwhile, its new start stays.
func (Kind) Job(ctx context.Context, r *runner.Runner, row value.Item) (mine, more bool, err error) {
	job, mine := owntable.RecomputeJobFrom(row)
	if !mine {
		return false, false, nil
	}
	last, err := recomputeAll(ctx, r, job.List, job.Cursor)
	if err != nil {
		return true, true, err
	}
	done, err := r.Did(ctx, job.Move(r.Model.Name, last))
	return true, err != nil || last != "" || !done, err
}
