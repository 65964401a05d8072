package query

import (
	"cmp"
	"context"
	"slices"

	"weir/internal/store"
	"weir/internal/value"
)

// answerDistinct answers a query that gives each row once, in the order of its key. The
// whole walk is done for each page, since any part of it may lead to any row; of
// the rows that it comes to only the keys behind the page before are kept.
func (r *run) answerDistinct(ctx context.Context, from place) ([]value.Item, place, error) {
	last := r.plan.steps[len(r.plan.steps)-1]
	keys := map[string]store.Key{}
	w := &walk{run: r, ctx: ctx, keep: func(k store.Key) {
		if from.key == nil || compareKeys(k, *from.key) > 0 {
			keys[keyText(k)] = k
		}
	}}
	if _, err := w.descendFrom(0, []found{{}}, nil); err != nil {
		return nil, place{}, err
	}
	sorted := make([]store.Key, 0, len(keys))
	for _, k := range keys {
		sorted = append(sorted, k)
	}
	slices.SortFunc(sorted, compareKeys)
	r.reads, r.bytes = 0, 0
	return r.giveEach(ctx, last, sorted)
}

// giveEach gives the rows out whose keys these are, up to those wanted.
// The page may end before it has as many rows as were wanted, when it has cost the limit of a page.
func (r *run) giveEach(ctx context.Context, st *step, keys []store.Key) ([]value.Item, place, error) {
	var items []value.Item
	var behind store.Key // the last of items
	alone := scope{args: r.args, alone: true}
	for start := 0; start < len(keys); {
		batch := keys[start:min(start+maxBatch, start+r.want-len(items)+1, len(keys))]
		rows, err := r.fetchRows(ctx, st, batch, func(int) scope { return alone })
		if err != nil {
			return nil, place{}, err
		}
		for i, row := range rows {
			switch {
			case row == nil:
			case len(items) == r.want:
				return items, place{key: &behind}, nil
			default:
				items, behind = append(items, st.outsideRow(row)), batch[i]
			}
		}
		if start += len(batch); start < len(keys) && r.isSpent() {
			return items, place{key: &batch[len(batch)-1]}, nil
		}
	}
	return items, place{}, nil
}

// compareKeys orders keys by their bytes, first by the partition.
func compareKeys(a, b store.Key) int {
	return cmp.Or(value.Compare(a.Partition, b.Partition), value.Compare(a.Sort, b.Sort))
}
