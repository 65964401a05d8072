package feed

import (
	"context"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// SubscriberFix enters a row in a list, or removes it from the list, as its fields say.
type SubscriberFix struct {
	List, At string // the list, and the sort key in it
	noted    value.Item
}

// Thing returns the subscriber's place.
func (f *SubscriberFix) Thing() string { return place(f.List, f.At) }

// Stage returns StageFacts.
func (*SubscriberFix) Stage() runner.Stage { return runner.StageFacts }

// Note reads the subscriber's row.
func (f *SubscriberFix) Note(ctx context.Context, r *runner.Runner) (err error) {
	list := book.Followers(r.Model.Name, f.List).Key.Partition.Text()
	f.noted, err = r.GetRow(ctx, book.Ref(list, f.At))
	return err
}

// Correct writes the recounted subscription, or that there is none.
func (f *SubscriberFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	var join *projections.Join
	if j, ok := runner.RecountOf[*recount](now.Recounts).joins[f.Thing()]; ok {
		join = &j
	}
	return r.RepairFollower(ctx, f.List, f.At, f.noted, join, now.Floor)
}
