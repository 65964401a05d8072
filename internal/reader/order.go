package reader

import (
	"context"

	"weir/internal/events"
	"weir/internal/runner"
)

// keepsOrder reports whether the consumer applies the records of all shards in the order of their
// positions: where the order of changes matters, and the source is a store that one process reads. The
// shards that processes share are DynamoDB's, which have no common order: each goes by itself.
func (c *consumer) keepsOrder() bool {
	_, is := c.sourceOf().(shared)
	return !is && len(c.Runner.Orders()) > 0
}

// inOrder cuts the pages down to the position up to which every shard has been read.
// Other processes wrote while the pages were read, so it reads those that were not cut
// again, and then uses nothing beyond the records that were seen at first. If a stream's positions
// have no order between shards, its pages are applied too, each in its own order.
func (c *consumer) inOrder(ctx context.Context, pieces []shardPage) ([]shardPage, error) {
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
		if p.page.More {
			continue
		}
		again, err := c.readPage(ctx, p.table, p.shardName, len(p.page.Records)+1)
		if err != nil {
			return nil, err
		}
		again.above = p.above
		*p = again
	}
	for _, p := range pieces {
		if n := len(p.page.Records); p.page.More && n > 0 && p.page.Records[n-1].Position.Compare(upTo) < 0 {
			upTo = p.page.Records[n-1].Position
		}
	}
	return cutPages(pieces, upTo), nil
}

// cutPages drops records above a position, and then pages without records.
// It reuses the slice of pages. A page that loses records no longer ends its shard.
func cutPages(pieces []shardPage, upTo events.Position) []shardPage {
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

// run is a part of a page's changes.
type run struct{ piece, from, to int }

// splitRuns divides batches of several shards into parts, so that the changes whose order matters come in the order of their
// positions. Others go with those of their shard: a shard that has none of them is one part.
func (c *consumer) splitRuns(batches []runner.Batch) (out []run) {
	orders := c.rows.Orders()
	next := make([]run, len(batches)) // of each batch, the rest, and in to its next change whose order matters
	seek := func(i int) {
		n := &next[i]
		for n.to < len(batches[i].Changes) && !orders.ConcernsOrder(batches[i].Changes[n.to].Was, batches[i].Changes[n.to].Is) {
			n.to++
		}
	}
	for i := range batches {
		next[i].piece = i
		seek(i)
	}
	at := func(i int) (events.Position, bool) {
		if n := next[i]; n.to < len(batches[i].Changes) {
			return batches[i].Changes[n.to].Position, true
		}
		return events.Position{}, false
	}
	for {
		least, first := -1, events.Position{}
		for i := range batches {
			if p, has := at(i); has && (least < 0 || p.Compare(first) < 0) {
				least, first = i, p
			}
		}
		if least < 0 {
			break
		}
		if n := len(out); n > 0 && out[n-1].piece == least {
			out[n-1].to = next[least].to + 1
		} else {
			out = append(out, run{least, next[least].from, next[least].to + 1})
		}
		next[least].to++
		next[least].from = next[least].to
		seek(least)
	}
	for i := range batches {
		if n := next[i]; n.from < len(batches[i].Changes) {
			out = append(out, run{i, n.from, len(batches[i].Changes)})
		}
	}
	return out
}
