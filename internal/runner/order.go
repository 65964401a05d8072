package runner

import (
	"context"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
)

// Which subscribers get a notification depends on the order in which subscriptions and
// notifications are handled. Everything else has the same result in any order. So only
// for a model with such rules does the runner cut batches into phases and make shards
// wait for each other.

// tellsEach reports whether the model has rules that make a row for each subscriber.
func tellsEach(m *model.Model) bool {
	return slices.ContainsFunc(m.Rows, func(r *model.RowRule) bool { return r.Each != nil })
}

// run is a part of the of-th batch that can be gathered as one.
type run struct {
	Batch
	of int
}

// phases cuts batches of several shards into runs, in the order in which they must be
// applied: the order of their positions, where that matters.
func (r *Runner) phases(bs []Batch) []run {
	var out []run
	if !tellsEach(r.Model) {
		for i, b := range bs {
			out = append(out, run{b, i})
		}
		return out
	}
	var all []*projections.Change
	for i := range bs {
		for j := range bs[i].Changes {
			all = append(all, &bs[i].Changes[j])
		}
	}
	if len(bs) > 1 { // the changes of a single batch may have an order of their own
		slices.SortStableFunc(all, func(a, b *projections.Change) int { return a.Position.Compare(b.Position) })
	}
	phase := map[*projections.Change]int{}
	last := 0
	for i, n := range projections.Phases(all) {
		phase[all[i]], last = n, n
	}
	next := make([]int, len(bs))
	for n := 0; n <= last; n++ {
		for i, b := range bs {
			end := next[i]
			for end < len(b.Changes) && phase[&b.Changes[end]] <= n {
				end++
			}
			if end > next[i] || n == last && len(b.Changes) == 0 {
				part := b
				part.Changes = b.Changes[next[i]:end]
				out = append(out, run{part, i})
			}
			next[i] = end
		}
	}
	return out
}

// inOrder cuts the pieces down to the position up to which every shard has been read.
// Other processes wrote while the pieces were read, so it reads those that are not full
// again, and then uses nothing beyond what was seen at first. If a stream's positions
// have no order between shards, its pieces are applied too, each in its own order.
func (c *consumer) inOrder(ctx context.Context, pieces []piece) ([]piece, error) {
	var upTo events.Position
	for _, p := range pieces {
		if n := len(p.page.Records); n > 0 && p.page.Records[n-1].Position.Compare(upTo) > 0 {
			upTo = p.page.Records[n-1].Position
		}
	}
	if upTo.IsZero() {
		return nil, nil
	}
	for i := range pieces {
		p := &pieces[i]
		if len(p.page.Records) >= c.pace.records {
			continue
		}
		again, err := c.read(ctx, p.table, p.place)
		if err != nil {
			return nil, err
		}
		*p = again
	}
	for _, p := range pieces {
		if n := len(p.page.Records); n >= c.pace.records && p.page.Records[n-1].Position.Compare(upTo) < 0 {
			upTo = p.page.Records[n-1].Position
		}
	}
	return cut(pieces, upTo), nil
}

// cut drops records above a position, and then pieces without records.
func cut(pieces []piece, upTo events.Position) []piece {
	out := pieces[:0]
	for _, p := range pieces {
		n := len(p.page.Records)
		for n > 0 && p.page.Records[n-1].Position.Compare(upTo) > 0 {
			n--
		}
		p.page.End = p.page.End && n == len(p.page.Records)
		if p.page.Records = p.page.Records[:n]; n > 0 {
			out = append(out, p)
		}
	}
	return out
}
