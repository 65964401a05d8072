package feed

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/value"
)

// SubscriberFix enters a row in a list, or removes it from the list, as its fields say.
type SubscriberFix struct {
	runner.UsualUnits
	List, At string // the list, and the sort key in it
	noted    value.Item
}

// Thing returns the subscriber's place.
func (f *SubscriberFix) Thing() string { return place(f.List, f.At) }

// Stage returns StageFacts.
func (*SubscriberFix) Stage() runner.Stage { return runner.StageFacts }

// Note reads the subscriber's row.
func (f *SubscriberFix) Note(ctx context.Context, r *runner.Runner) (err error) {
	f.noted, err = r.GetRow(ctx, owntable.SubscriberAt(owntable.Subscribers(r.Model.Name, f.List), f.At))
	return err
}

// Correct writes the recounted subscription, or that there is none. done is false if the
// subscription has changed since it was noted. Notifications from before are not sent again.
func (f *SubscriberFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	j, there := runner.RecountOf[*recount](now.Recounts).subscriptions[f.Thing()]
	head := owntable.Subscribers(r.Model.Name, f.List)
	counter, err := r.GetRow(ctx, head)
	if err != nil {
		return false, false, err
	}
	is := SubscriberFrom(f.noted)
	if !there && !is.Here || there && is.Here && value.EqualItems(j.Fields, is.Fields) {
		return true, false, nil
	}
	mended := Subscription{List: f.List, Gone: !there, Position: runner.RepairAt(is.Position, now.Floor)}
	if there {
		mended.Row, mended.Fields = j.Row, j.Fields
	}
	was := is.SubscriberRow
	is.Mend(&mended, owntable.ListFrom(counter).Moment())
	done, err = r.Did(ctx, is.Replace(owntable.SubscriberAt(head, f.At), was, r.Expiry()))
	return done, true, err
}
