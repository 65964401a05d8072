package feed

import (
	"context"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
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
	list := owntable.Followers(r.Model.Name, f.List).Key.Partition.Text()
	f.noted, err = r.GetRow(ctx, owntable.Ref(list, f.At))
	return err
}

// Correct writes the recounted subscription, or that there is none.
func (f *SubscriberFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	var join *Subscription
	if j, ok := runner.RecountOf[*recount](now.Recounts).subscriptions[f.Thing()]; ok {
		join = &j
	}
	return repairSubscriber(ctx, r, f.List, f.At, f.noted, join, now.Floor)
}

// repairSubscriber makes a row a subscriber of a list as j says or, if j is nil, removes it
// from the list. done is false if the subscription has changed since it was noted.
// Notifications from before are not sent again.
func repairSubscriber(ctx context.Context, r *runner.Runner, list, at string, noted value.Item, j *Subscription, floor events.Position) (done, differs bool, err error) {
	head := owntable.Followers(r.Model.Name, list)
	rows, err := r.Get(ctx, []store.Ref{head})
	if err != nil {
		return false, false, err
	}
	f := SubscriberFrom(noted)
	if j == nil && !f.Here() || j != nil && f.Here() && value.EqualItems(j.Fields, f.Fields) {
		return true, false, nil
	}
	mended := Subscription{List: list, Gone: j == nil, Position: runner.RepairAt(f.Position, floor)}
	if j != nil {
		mended.Row, mended.Fields = j.Row, j.Fields
	}
	moment, _ := rows[0].Get(owntable.Count).Int64()
	f.Mend(&mended, moment)
	w := work{Work: &runner.Work{Runner: r}}
	wr := w.subscriberWrite(owntable.Ref(head.Key.Partition.Text(), at), f, events.Position{})
	wr.If = runner.AsNoted(owntable.Position, noted)
	done, err = r.Did(ctx, wr)
	return done, true, err
}
