package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// A job works through a long list step by step. Our own table keeps it until it is done,
// with how far it has come. The kind of projection that started a job takes it on
// (Kind.Job). A crash repeats at most one step, which must be safe.

// PageOfList is how many rows of a list one step handles. A longer list becomes a job, so
// that other targets need not wait for it.
const PageOfList = 200

// ErrNoJob says that no kind of projection takes on a job, because a newer version left it.
// All other jobs had their step.
var ErrNoJob = errors.New("no kind of projection of this version knows this job")

// Jobs does one step of each job and reports whether any jobs are left.
func (r *Runner) Jobs(ctx context.Context) (left bool, err error) {
	left, unknown := r.jobs(ctx)
	if unknown != nil && !errors.Is(unknown, ErrNoJob) || r.Catalog == nil {
		return left, unknown
	}
	for _, b := range r.Catalog.Seen().Builds.Counting() { // these have notes of large letters only
		more, err := r.In(b).jobs(ctx)
		if left = left || more; err != nil {
			return left, err
		}
	}
	return left, unknown
}

// jobs does one step of every waiting job, and reports whether any is left. A job's row says
// how far it is, so a step that a crash cut off is done again from there. The catalog is asked
// first: a program of an older model does no job.
func (r *Runner) jobs(ctx context.Context) (left bool, err error) {
	page, err := r.Store.Query(ctx, store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Jobs(r.Model.Name)), Limit: 100})
	if err != nil {
		return false, err
	}
	if len(page.Rows) > 0 {
		if _, err := r.Admit(ctx, nil, GroupRows); err != nil {
			return true, err
		}
	}
	for _, job := range page.Rows {
		var more bool
		e := r.Traced(ctx, Span{Name: SpanJob, Group: GroupRows, Items: 1}, func(ctx context.Context) (err error) {
			more, err = r.step(ctx, job)
			return err
		})
		switch {
		case errors.Is(e, ErrNoJob):
			err = errors.Join(err, e)
		case e != nil:
			return true, e
		}
		left = left || more
	}
	if n := len(page.Rows); n > 0 {
		if _, is := owntable.LetterNoteFrom(page.Rows[n-1]); is {
			return left, err // notes come last
		}
	}
	return left || page.Next != nil, err
}

// step does one step of a job. It deletes the job after the last step, unless the job was
// restarted meanwhile. more is true if the job is left.
func (r *Runner) step(ctx context.Context, job value.Item) (more bool, err error) {
	if note, is := owntable.LetterNoteFrom(job); is {
		return false, r.keepOn(ctx, note)
	}
	for _, k := range r.Kinds {
		if mine, more, err := k.Job(ctx, r, job); mine || err != nil {
			return more, err
		}
	}
	return false, fmt.Errorf("job %s: %w", job.Get(owntable.Sort).Text(), ErrNoJob)
}
