package follow

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Letters returns the kind of a row that refused the value that it follows.
func (Kind) Letters() []runner.DeadKind { return []runner.DeadKind{runner.DeadFollow} }

// Work is the state of one batch whose followed values are being applied. Package copies
// drives it, because rows are entered in lists before they are written.
type Work struct {
	*runner.Work
	*Gathered
}

// Job does one step of a job that updates a long list of followers. It deletes the job
// after the last step, unless the job was restarted meanwhile.
func (Kind) Job(ctx context.Context, r *runner.Runner, row value.Item) (mine, more bool, err error) {
	job, mine := owntable.FollowJobFrom(r.Model.Name, row)
	if !mine {
		return false, false, nil
	}
	list := owntable.FollowedList(job.List)
	is, err := r.GetRow(ctx, list)
	if err != nil {
		return true, true, err
	}
	if is == nil { // the followed row is gone, and all of its followers know that
		_, err := r.Write(ctx, []store.Write{job.Move(r.Model.Name, "")})
		return true, false, err
	}
	v := keptIn(is)
	ws, of, last, err := updates(ctx, r, job.List, job.Cursor, v)
	if err == nil {
		_, err = serveAll(ctx, r, ws, of)
	}
	if err == nil && last == "" {
		err = outlives(ctx, r, list, v)
	}
	if err != nil {
		return true, true, err
	}
	_, err = r.Write(ctx, []store.Write{job.Move(r.Model.Name, last)})
	return true, last != "", err
}
