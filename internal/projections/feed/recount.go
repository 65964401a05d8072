package feed

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// recount recounts the lists of subscribers, which are state, and compares them. The
// notifications are history, and no recount can tell them.
type recount struct {
	runner.BaseRecount
	*runner.Verification
	lists         string                  // the prefix of the partition keys of lists
	subscriptions map[string]Subscription // by place
}

// Recount returns the kind's part in a verification.
func (Kind) Recount(v *runner.Verification) runner.Recount {
	return &recount{Verification: v, lists: owntable.SubscriberLists(v.Model.Name), subscriptions: map[string]Subscription{}}
}

// Add adds the subscriptions of a row.
func (v *recount) Add(row *projections.Change, faults *projections.Faults) {
	for _, j := range Fold(row, faults) {
		ref := owntable.Subscriber(owntable.Subscribers(v.Model.Name, j.List), j.Row)
		v.subscriptions[place(j.List, ref.Key.Sort.Text())] = j
	}
}

// place names the subscriber with a sort key on a list.
func place(list, at string) string { return list + "\x00" + at }

// OwnRow compares a subscriber on a list with the row that subscribes, and forgets that row: those that are
// left at the end have no subscriber. Rows of other kinds and of other generations are passed over.
func (v *recount) OwnRow(_ context.Context, row value.Item) error {
	list, ok := v.listOf(row.Get(owntable.Partition).Text())
	if !ok {
		return nil
	}
	at := row.Get(owntable.Sort).Text()
	s := SubscriberFrom(row)
	if !owntable.IsEntry(at) || !s.Here {
		return nil
	}
	v.Checked++
	switch j, ok := v.subscriptions[place(list, at)]; {
	case !ok:
		v.differs(list, at, list, "no subscriber in "+at, "a subscriber")
	case !value.EqualItems(j.Fields, s.Fields):
		v.differs(list, at, v.RowText(j.Row), runner.ValueText(value.OfMap(j.Fields)), runner.ValueText(value.OfMap(s.Fields)))
	}
	delete(v.subscriptions, place(list, at))
	return nil
}

// listOf returns the list that a partition of our own table holds. ok is false unless the
// partition is of the generation that notifications go to.
func (v *recount) listOf(partition string) (list string, ok bool) {
	if list, ok = strings.CutPrefix(partition, v.lists); ok {
		return list, !v.built(list) && v.feeds(list)
	}
	for _, b := range v.Catalog.Builds.Counting() {
		if list, ok = strings.CutPrefix(partition, owntable.SubscriberLists(b.Ledgers(v.Model.Name))); ok {
			return list, b.State.Shown() && v.feeds(list)
		}
	}
	return "", false
}

// feeds reports whether the model has the rule of a list. Lists of one that is retired stay, and nothing
// reads them.
func (v *recount) feeds(list string) bool {
	rule, _, _ := strings.Cut(list, "<")
	return slices.ContainsFunc(v.Model.Rows, func(r *model.RowRule) bool { return r.Name == rule && r.Subscribers != nil })
}

// built reports whether the lists of the rule of a list were built.
func (v *recount) built(list string) bool {
	rule, _, _ := strings.Cut(list, "<")
	return v.Shown(model.BuildSubscribers + rule)
}

// differs reports a subscriber that differs. There is no fix for a list that a build made:
// projector build puts it right.
func (v *recount) differs(list, at, row, want, have string) {
	var fix runner.Fix = &SubscriberFix{List: list, At: at}
	if v.built(list) {
		fix = nil // projector build puts it right
	}
	v.Differs("subscribers", row, want, have, fix)
}

// End reports the subscribers that are on no list.
func (v *recount) End(context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.subscriptions)) {
		j := v.subscriptions[name]
		_, at, _ := strings.Cut(name, "\x00")
		v.differs(j.List, at, v.RowText(j.Row), "in the list "+j.List, "nowhere")
	}
	return nil
}
