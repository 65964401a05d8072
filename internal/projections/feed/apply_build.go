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

// Holds returns the subscribers that a row is, if subscribers of their rule are built. As a
// builder puts them, they get every notification of the lists of this generation: these have
// no moment before the build is over.
func (Kind) Holds(r *runner.Runner, name string, c *projections.Change, faults *projections.Faults) (out []runner.Held) {
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
		s.Mend(&j, 0)
		ref := owntable.Subscriber(owntable.Subscribers(r.Model.Name, j.List), j.Row)
		put := r.Sourced(s.Put(ref, events.Position{}, value.Value{}), c.Row)
		out = append(out, runner.Held{Ref: ref, Row: put.Put})
	}
	return out
}

// Audit enters a row in a list, or removes it from the list, as its fields say. It keeps its
// position, so a change that is still to come wins. Earlier notifications are not sent
// again.
func (Kind) Audit(ctx context.Context, r *runner.Runner, have value.Item, want *runner.Held) (w store.Write, mine bool, err error) {
	partition := have.Get(owntable.Partition).Text()
	if !strings.HasPrefix(partition, owntable.SubscriberLists(r.Model.Name)) {
		return w, false, nil
	}
	is, be := SubscriberFrom(have), SubscriberFrom(nil)
	if want != nil {
		be = SubscriberFrom(want.Row)
	}
	if is.Here == be.Here && (!is.Here || value.EqualItems(is.Fields, be.Fields)) {
		return w, true, nil
	}
	counter, err := r.GetRow(ctx, owntable.Ref(partition, ""))
	if err != nil {
		return w, true, err
	}
	was := is.SubscriberRow
	is.Mend(&Subscription{Gone: !be.Here, Fields: be.Fields, Position: is.Position}, owntable.ListFrom(counter).Moment())
	w = is.Replace(owntable.Ref(partition, have.Get(owntable.Sort).Text()), was, r.Expiry())
	table, key := owntable.SourceOf(have)
	w.Put = w.Put.With(owntable.SourceAttrs(store.Ref{Table: table}, key)...)
	return w, true, nil
}
