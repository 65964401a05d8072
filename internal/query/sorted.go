package query

import (
	"context"
	"slices"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// answerSorted answers a list in an order that is not its key's. The whole list is read
// for each page; rows without the field come last.
func (r *run) answerSorted(ctx context.Context, from place) ([]value.Item, place, error) {
	st := r.plan.steps[0]
	type ranked struct {
		row value.Item
		at  store.Cursor
	}
	var all []ranked
	err := r.eachRow(ctx, st, scope{args: r.args}, func(row value.Item) {
		if key, ok := st.Entity.Table.KeyOf(row); ok {
			all = append(all, ranked{row, store.Cursor{Key: key, Entry: store.Key{Partition: rankOf(r.plan.Sort, st.readField(r.plan.Sort, row))}}})
		}
	})
	if err != nil {
		return nil, place{}, err
	}
	slices.SortFunc(all, func(a, b ranked) int { return compareRanks(a.at, b.at) })
	var items []value.Item
	for i, a := range all {
		switch {
		case len(from.at) > 0 && compareRanks(a.at, from.at[0]) <= 0:
		case len(items) == r.want:
			return items, place{at: []store.Cursor{all[i-1].at}}, nil
		default:
			items = append(items, st.outsideRow(a.row))
		}
	}
	return items, place{}, nil
}

// rankOf is a value that orders rows, Missing for one that cannot. Times are in the order of their instants.
func rankOf(f *model.Field, v value.Value) value.Value {
	if f.Declared != nil {
		var unlike string
		if v, unlike = f.Declared.Read(v, f.Key != nil); unlike != "" {
			return value.Value{}
		}
		if instant, ok := value.Instant(v); ok && f.Declared.Type == model.TypeTime {
			return value.OfString(instant)
		}
	}
	switch v.Kind() {
	case value.String, value.Number, value.Binary:
		return v
	}
	return value.Value{}
}

// compareRanks orders rows by rank, then by key, so that no two are equal.
func compareRanks(a, b store.Cursor) int {
	x, y := a.Entry.Partition, b.Entry.Partition
	switch c := compareSorts(x, y); {
	case x.IsMissing() != y.IsMissing():
		return -c // Missing is the least kind, and comes last
	case c != 0:
		return c
	}
	return compareKeys(a.Key, b.Key)
}
