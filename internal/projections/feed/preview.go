package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// preview says which lists will have other subscribers. Of too many it says nothing.
type preview struct {
	runner.BasePreview
	*runner.Previewing
	rule  string                           // "" if it is not new or changed
	lists map[string]map[string]value.Item // by list and place: what a subscriber has
	held  int
}

// Preview returns the kind's part in a dry run.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	v := &preview{Previewing: p, lists: map[string]map[string]value.Item{}}
	if rule, ok := model.BuiltRule(p.Build); ok && p.Says.Tells(rule) {
		v.rule = rule
	}
	return v
}

// Add takes in the subscriptions of a row. Above runner.PreviewValues of them nothing is compared.
func (v *preview) Add(row *projections.Change) {
	if v.rule == "" || v.held > runner.PreviewValues {
		return
	}
	for _, j := range Fold(row, nil) {
		if rule, _, _ := strings.Cut(j.List, "<"); rule != v.rule {
			continue
		}
		if v.lists[j.List] == nil {
			v.lists[j.List] = map[string]value.Item{}
		}
		ref := owntable.Subscriber(owntable.Subscribers(v.Model.Name, j.List), j.Row)
		v.lists[j.List][ref.Key.Sort.Text()] = j.Fields
		v.held++
	}
}

// End compares the lists with those that notifications go to now. Where these are of an
// earlier generation of the build, that one is read.
func (v *preview) End(ctx context.Context) error {
	if v.rule == "" || v.held > runner.PreviewValues {
		return nil
	}
	now := v.Runner
	row, err := v.Catalog.Row(ctx)
	if err != nil {
		return err
	}
	if b, _ := row.Builds.Of(v.Build); b.State.Shown() {
		now = v.In(b)
	}
	for _, list := range slices.Sorted(maps.Keys(v.lists)) {
		will := v.lists[list]
		is, same, err := subscribed(ctx, now, list, will)
		if err != nil {
			return err
		}
		v.Says.Compared(v.rule)
		if is != len(will) || same != is {
			v.Says.Differs(v.rule, list, fmt.Sprintf("%d subscribers", is), fmt.Sprintf("%d, of which %d are those", len(will), same))
		}
	}
	return nil
}

// subscribed returns how many subscribers a list has, and how many of them will be as they are.
func subscribed(ctx context.Context, r *runner.Runner, list string, will map[string]value.Item) (is, same int, err error) {
	err = r.EachOwn(ctx, owntable.Subscribers(r.Model.Name, list).Key.Partition.Text(), func(row value.Item) error {
		at := row.Get(owntable.Sort).Text()
		if s := SubscriberFrom(row); owntable.IsEntry(at) && s.Here {
			is++
			if fields, left := will[at]; left && value.EqualItems(fields, s.Fields) {
				same++
			}
		}
		return nil
	})
	return is, same, err
}
