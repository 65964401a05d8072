package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// A job serves a long list page by page. Our own table keeps it until it is done, with how
// far it has come. The kind of projection whose list it is serves each page (Kind.Serve). A
// crash repeats at most one page, which must be safe.

// PageOfList is how many rows of a list one step serves. A longer list becomes a job, so
// that other targets need not wait for it.
const PageOfList = 200

// FanOut serves a list for each of some jobs of this list: its first page now, and the rest step by step. A job that no
// row has room for is done at once. FanOut may be repeated.
func (r *Runner) FanOut(ctx context.Context, jobs []owntable.Job, serve func(i int, rows []value.Item, last bool) error) error {
	rows, next, err := r.readPage(ctx, &jobs[0])
	for i := 0; i < len(jobs) && err == nil; i++ {
		err = serve(i, rows, next == "")
	}
	if err != nil || next == "" {
		return err
	}
	ws := make([]store.Write, len(jobs))
	for i := range jobs {
		jobs[i].Cursor = next
		ws[i] = jobs[i].Begin(r.Model.Name, r.Now())
	}
	out, err := r.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		for more := errors.Is(out[i].Err, store.ErrRefused); more; more = jobs[i].Cursor != "" {
			if rows, jobs[i].Cursor, err = r.readPage(ctx, &jobs[i]); err == nil {
				err = serve(i, rows, jobs[i].Cursor == "")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// readPage reads the rows of a job's list that come next. next is the sort key of the last one, "" if no more follow.
func (r *Runner) readPage(ctx context.Context, job *owntable.Job) (rows []value.Item, next string, err error) {
	page, err := r.Store.Query(ctx, job.Page(PageOfList))
	if n := len(page.Rows); page.Next != nil && n > 0 {
		next = page.Rows[n-1].Get(owntable.Sort).Text()
	}
	return page.Rows, next, err
}

// jobsAtOnce is how many jobs have a step before the caller has its turn.
const jobsAtOnce = 100

// ErrNoJob says that no kind of projection takes on a job, because a newer version left it.
// All other jobs had their step.
var ErrNoJob = errors.New("no kind of projection of this version knows this job")

// StandingJobs is the error of jobs that stand still. All other jobs had their step.
// It wraps ErrNoJob only if none of them failed.
type StandingJobs struct{ unknown, failed standing }

func (s *StandingJobs) Error() string { return errors.Join(s.failed.err(), s.unknown.err()).Error() }

func (s *StandingJobs) Unwrap() error {
	if s.failed.n > 0 {
		return s.failed.err()
	}
	return s.unknown.err()
}

// standing is jobs that stand still for reasons of one sort.
type standing struct {
	n    int
	errs []error // of the first
}

func (s *standing) add(job string, err error) {
	const named = 3
	if s.n++; s.n <= named {
		s.errs = append(s.errs, fmt.Errorf("job %s: %w", job, err))
	}
}

func (s *standing) err() error {
	if more := s.n - len(s.errs); more > 0 {
		return errors.Join(append(s.errs[:len(s.errs):len(s.errs)], fmt.Errorf("and %d more jobs", more))...)
	}
	return errors.Join(s.errs...)
}

// Jobs does the jobs of a model and of its builds, in rounds. Each job has one step in a round.
// A job that fails is tried again after a pause, which doubles each time.
type Jobs struct {
	Runner *Runner

	after *store.Cursor // how far the round is; nil is its beginning
	left  bool          // a job that had its step is left
	still StandingJobs
	// failed are the jobs that failed in this round, before those of the last.
	failed, before map[string]failedJob
}

type failedJob struct {
	err   error
	pause time.Duration
	again time.Time
}

const leastJobPause, longestJobPause = time.Second, time.Minute

// RunStep does one step of at most 100 jobs and reports whether any are left to go on with. Jobs that stand
// still are none of these: at the end of each round they are a StandingJobs.
func (j *Jobs) RunStep(ctx context.Context) (left bool, err error) {
	if j.after == nil {
		j.left, j.still, j.before, j.failed = false, StandingJobs{}, j.failed, map[string]failedJob{}
	}
	if j.after, err = j.stepSome(ctx, j.Runner, j.after); err != nil {
		j.after = nil
		return true, err
	}
	if j.after != nil {
		return true, nil
	}
	if j.Runner.Catalog != nil {
		for _, b := range j.Runner.Catalog.LastSeen().Builds.Counting() { // these have notes of large letters only
			in := j.Runner.ForGeneration(b)
			for after, first := (*store.Cursor)(nil), true; first || after != nil; first = false {
				if after, err = j.stepSome(ctx, in, after); err != nil {
					return true, err
				}
			}
		}
	}
	if j.still.unknown.n+j.still.failed.n > 0 {
		still := j.still
		err = &still
	}
	return j.left, err
}

// IsMidway reports whether a round has begun and is not at its end: until then it is not known which jobs stand still.
func (j *Jobs) IsMidway() bool { return j.after != nil }

// stepSome does one step of each job of a page. A job's row says how far it is, so a step that a
// crash cut off is done again from there. The catalog is asked first: a program of an older model
// does no job.
func (j *Jobs) stepSome(ctx context.Context, r *Runner, after *store.Cursor) (next *store.Cursor, err error) {
	page, err := r.Store.Query(ctx, store.Query{
		Table: owntable.TableName, Partition: value.OfString(owntable.Jobs(r.Model.Name)), Limit: jobsAtOnce, After: after,
	})
	if err != nil {
		return nil, err
	}
	if len(page.Rows) > 0 {
		if _, err := r.Admit(ctx, nil); err != nil {
			return nil, err
		}
	}
	for _, job := range page.Rows {
		if err := j.tryJob(ctx, r, job); err != nil {
			return nil, err
		}
	}
	return page.Next, nil
}

// tryJob does one step of a job, unless it failed a short while ago. It returns an error that is not of this job
// alone.
func (j *Jobs) tryJob(ctx context.Context, r *Runner, job value.Item) error {
	id := job.Get(owntable.Sort).Text()
	at := r.Model.Name + "|" + id
	failed, was := j.before[at]
	if !was || !r.Now().Before(failed.again) {
		var more bool
		err := r.RunTraced(ctx, Span{Name: SpanJob, Items: 1}, func(ctx context.Context) (err error) {
			more, err = r.stepJob(ctx, job)
			return err
		})
		switch {
		case err == nil:
			j.left = j.left || more
			return nil
		case errors.Is(err, ErrNoJob):
			j.still.unknown.add(id, ErrNoJob)
			return nil
		case ctx.Err() != nil || errors.Is(err, catalog.ErrRefused):
			return err
		}
		pause := min(max(2*failed.pause, leastJobPause), longestJobPause)
		failed = failedJob{err, pause, r.Now().Add(pause)}
	}
	j.failed[at] = failed
	j.still.failed.add(id, failed.err)
	return nil
}

// stepJob does one step of a job. It deletes the job after the last step, unless the job was
// restarted meanwhile. more is true if the job is left.
func (r *Runner) stepJob(ctx context.Context, row value.Item) (more bool, err error) {
	job, err := owntable.DecodeJob(row)
	if err != nil {
		return true, err
	}
	of := slices.IndexFunc(r.Kinds, func(k Kind) bool { return job.List != "" && k.Lists() == owntable.Kind(job.List) })
	if of < 0 {
		return false, ErrNoJob
	}
	rows, next, err := r.readPage(ctx, &job)
	if err == nil {
		err = r.Kinds[of].Serve(ctx, r, &job, rows, next == "")
	}
	if err != nil {
		return true, err
	}
	done, err := r.WriteIf(ctx, job.Move(r.Model.Name, next))
	return err != nil || next != "" || !done, err
}
