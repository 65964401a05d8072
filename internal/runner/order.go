package runner

import (
	"context"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
)

// Who is told what depends on the order in which followers and what they are told
// are handled. Everything else comes out the same in any order, so that batches are
// cut, and shards wait for each other, only where a model has such rules.

// tellsEach reports whether the model has rules that make a row for each follower.
func tellsEach(m *model.Model) bool {
	return slices.ContainsFunc(m.Rows, func(r *model.RowRule) bool { return r.Each != nil })
}

// run is a part of the of-th batch, which may be gathered as one.
type run struct {
	Batch
	of int
}

// phases cuts batches of several lanes into runs, in the order in which they are to
// be applied: that of positions, as far as it matters.
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
	if len(bs) > 1 { // a single one may come in an order of its own
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

// inOrder leaves of what was read that up to which nothing is unread in any shard.
// While the pieces were read others wrote: so those that are not full are read
// again, and go no further than what was seen at first. A stream whose positions
// are in no order between shards is read as well, in that of each shard.
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

// cut leaves out what is above a position, and pieces of which nothing is left.
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
