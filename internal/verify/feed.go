package verify

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// feeds recounts the lists of subscribers, which are state, and compares them. The
// notifications are history, and no recount can tell them.
type feeds struct {
	runner.BaseRecount
	*runner.Verification
	lists string                      // what the partition keys of lists begin with
	joins map[string]projections.Join // by place
}

func newFeeds(v *runner.Verification) runner.Recount {
	return &feeds{Verification: v, lists: book.Lists(v.Model.Name), joins: map[string]projections.Join{}}
}

// Add adds the subscriptions of a row.
func (v *feeds) Add(row *runner.Found) {
	for _, j := range row.Joins {
		ref := book.Follower(book.Followers(v.Model.Name, j.List), j.Row)
		v.joins[place(j.List, ref.Key.Sort.Text())] = j
	}
}

// place names the subscriber with a sort key on a list.
func place(list, at string) string { return list + "\x00" + at }

// OwnRow compares a subscriber on a list with the row that subscribes.
func (v *feeds) OwnRow(_ context.Context, row value.Item) error {
	list, ok := strings.CutPrefix(row.Get(book.Partition).Text(), v.lists)
	if !ok {
		return nil
	}
	at := row.Get(book.Sort).Text()
	f := projections.FollowerFrom(row)
	if at == "-" || !f.Here() {
		return nil
	}
	v.Checked++
	switch j, ok := v.joins[place(list, at)]; {
	case !ok:
		v.differs(list, at, list, "no subscriber in "+at, "a subscriber")
	case !value.EqualItems(j.Fields, f.Fields):
		v.differs(list, at, v.RowText(j.Row), runner.ValueText(value.OfMap(j.Fields)), runner.ValueText(value.OfMap(f.Fields)))
	}
	delete(v.joins, place(list, at))
	return nil
}

func (v *feeds) differs(list, at, row, want, have string) {
	v.Differs("subscribers", row, want, have, &Subscriber{List: list, At: at})
}

// End reports the subscribers that are on no list.
func (v *feeds) End(context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.joins)) {
		j := v.joins[name]
		_, at, _ := strings.Cut(name, "\x00")
		v.differs(j.List, at, v.RowText(j.Row), "in the list "+j.List, "nowhere")
	}
	return nil
}

// Subscriber enters a row in a list, or removes it from the list, as its fields say.
type Subscriber struct {
	List, At string // the list, and the sort key in it
	noted    value.Item
}

// Thing returns the subscriber's place.
func (f *Subscriber) Thing() string { return place(f.List, f.At) }

// Stage returns StageFacts.
func (*Subscriber) Stage() runner.Stage { return runner.StageFacts }

// Note reads the subscriber's row.
func (f *Subscriber) Note(ctx context.Context, r *runner.Runner) error {
	list := book.Followers(r.Model.Name, f.List).Key.Partition.Text()
	return note(ctx, r, book.Ref(list, f.At), &f.noted)
}

// Correct writes the recounted subscription, or that there is none.
func (f *Subscriber) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	var join *projections.Join
	if j, ok := runner.RecountOf[*feeds](now.Recounts).joins[f.Thing()]; ok {
		join = &j
	}
	return r.RepairFollower(ctx, f.List, f.At, f.noted, join, now.Floor)
}
