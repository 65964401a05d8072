package follow

import (
	"context"

	"weir/internal/deadletter"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/value"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Letters returns the kind of a row that refused the value that it follows.
func (Kind) Letters() []deadletter.Kind { return []deadletter.Kind{deadletter.Follow} }

// Work is the state of one batch whose followed values are being applied. Package copies
// drives it, because rows are entered in lists before they are written.
type Work struct {
	*runner.Work
	*Gathered
}

// Lists returns lists of followers.
func (Kind) Lists() string { return owntable.KindFollow }

// Serve gives the value of a list to some of its followers.
func (Kind) Serve(ctx context.Context, r *runner.Runner, job *owntable.Job, rows []value.Item, last bool) error {
	list := owntable.FollowedList(job.List)
	is, err := r.GetRow(ctx, list)
	if err != nil || is == nil { // the followed row is gone, and all of its followers know that
		return err
	}
	v := keptIn(is)
	ws, of, err := updateWrites(ctx, r, job.List, rows, v)
	if err == nil {
		_, err = serveAll(ctx, r, ws, of)
	}
	if err == nil && last {
		err = expireValue(ctx, r, list, v)
	}
	return err
}
