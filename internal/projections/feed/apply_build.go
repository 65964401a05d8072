package feed

import (
	"context"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// DerivedRows returns the subscribers that a row is, if subscribers of their rule are built. As a
// builder puts them, they get every notification of the lists of this generation: these have
// no moment before the build is over.
func (Kind) DerivedRows(r *runner.Runner, name string, c *projections.Change, faults *projections.Faults) (out []runner.DerivedRow) {
	rule, is := model.BuiltRule(name)
	if !is {
		return nil
	}
	for _, j := range Fold(c, faults) {
		if j.Rule != rule {
			continue
		}
		j.Position = events.PositionOf(1)
		var s Subscriber
		s.ApplyAnyway(&j, 0)
		ref := owntable.Subscriber(owntable.Subscribers(r.Model.Name, j.List), j.Row)
		out = append(out, r.DerivedRowOf(SubscriberFrom(nil).Replace(ref, s.SubscriberRow, value.Value{}), c.Row))
	}
	return out
}

// Audit enters a row in a list, or removes it from the list, as its fields say. It keeps its
// position, so a change that is still to come wins. Earlier notifications are not sent
// again.
func (Kind) Audit(ctx context.Context, r *runner.Runner, have value.Item, want *runner.DerivedRow) (w store.Write, mine bool, err error) {
	partition := have.Get(owntable.Partition).Text()
	if !strings.HasPrefix(partition, owntable.SubscriberLists(r.Model.Name)) {
		return w, false, nil
	}
	is, be := SubscriberFrom(have), SubscriberFrom(nil)
	if want != nil {
		be = SubscriberFrom(want.Row)
	}
	if (is.Says == nil) == (be.Says == nil) && value.EqualItems(is.Says, be.Says) {
		return w, true, nil
	}
	counter, err := r.GetRow(ctx, owntable.Ref(partition, ""))
	if err != nil {
		return w, true, err
	}
	was := is.SubscriberRow
	is.ApplyAnyway(&Subscription{Gone: be.Says == nil, Fields: be.Says, Position: is.Position}, owntable.ListFrom(counter).Moment())
	return was.Replace(owntable.Ref(partition, is.Name), is.SubscriberRow, r.OwnRowExpiry()), true, nil
}
