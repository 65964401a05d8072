package follow

import (
	"context"
	"strings"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Name returns "follow".
func (Kind) Name() string { return "follow" }

// Letters returns the kind of a row that refused the value that it follows.
func (Kind) Letters() []runner.DeadKind { return []runner.DeadKind{runner.DeadFollow} }

// Work is the state of one batch whose followed values are being applied. Package copies
// drives it, because rows are entered in lists before they are written.
type Work struct {
	*runner.Work
	*Gathered
}

// A job updates the rows that follow a value and are too many for one step. It keeps the
// list and the position of the list's value. A newer value restarts it.

func startJob(ctx context.Context, r *runner.Runner, list, cursor string, p events.Position) error {
	_, err := r.Write(ctx, []store.Write{jobWrite(r, list, cursor, p)})
	return err
}

func jobWrite(r *runner.Runner, list, cursor string, p events.Position) store.Write {
	return store.Write{
		Ref: owntable.Job(r.Model.Name, list), If: store.Cond{runner.Below(owntable.Position, p.Value())},
		Ops: []store.Op{
			runner.Set(runner.JobList, value.OfString(list)), runner.Set(runner.JobCursor, value.OfString(cursor)), runner.Set(owntable.Position, p.Value()),
		},
	}
}

// Job does one step of a job that updates a long list of followers. It deletes the job
// after the last step, unless the job was restarted meanwhile.
func (Kind) Job(ctx context.Context, r *runner.Runner, job value.Item) (mine, more bool, err error) {
	if !strings.HasPrefix(job.Get(runner.JobList).Text(), owntable.FollowedIn(r.Model.Name)) {
		return false, false, nil
	}
	list := job.Get(runner.JobList)
	rows, err := r.Get(ctx, []store.Ref{owntable.Ref(list.Text(), "")})
	if err != nil {
		return true, true, err
	}
	if rows[0] == nil { // the followed row is gone, and all of its followers know that
		_, err := r.Write(ctx, []store.Write{{
			Ref: owntable.Job(r.Model.Name, list.Text()), Delete: true,
			If: store.Cond{{{Attr: owntable.Position, Is: store.Eq, Value: job.Get(owntable.Position)}}},
		}})
		return true, false, err
	}
	v := keptIn(rows[0])
	ws, of, last, err := members(ctx, r, list, job.Get(runner.JobCursor).Text(), v)
	if err == nil {
		_, err = serveAll(ctx, r, ws, of)
	}
	if err == nil && last == "" {
		err = outlives(ctx, r, owntable.Ref(list.Text(), ""), v)
	}
	if err != nil {
		return true, true, err
	}
	w := store.Write{
		Ref: owntable.Job(r.Model.Name, list.Text()),
		If:  store.Cond{{{Attr: owntable.Position, Is: store.Eq, Value: job.Get(owntable.Position)}}},
	}
	if last == "" {
		w.Delete = true
	} else {
		w.Ops = []store.Op{runner.Set(runner.JobCursor, value.OfString(last))}
	}
	_, err = r.Write(ctx, []store.Write{w})
	return true, last != "", err
}
