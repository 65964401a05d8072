package runner

import (
	"context"
	"fmt"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
)

// harvest is what a consumer that catches up has read for search and not applied
// yet: the newest of each document, and how far each shard was read. What is applied
// together is one segment of an index, and a few large segments cost less than many
// small ones, which have to be merged; a document that changes again and again is
// indexed once. No place is saved before, so that after a crash it is read again.
//
// It holds documents, not images: who needs an image reads its record again, which no
// stream gives up before the places have moved.
type harvest struct {
	asked[recordOf]
	pieces []piece
	counts []Counts
	piece  map[place]int
	bytes  int
}

// A harvest is applied when it has so many documents, or so many bytes of them.
const (
	harvestDocuments = 16384
	harvestBytes     = 8 << 20
)

// recordOf says where a record can be read again.
type recordOf struct {
	piece int
	after events.Position
}

// of is what was read of a shard, nil for nothing.
func (h *harvest) of(at place) *piece {
	if i, ok := h.piece[at]; ok {
		return &h.pieces[i]
	}
	return nil
}

// add takes in what was read of a shard behind what was read before.
func (h *harvest) add(m *model.Model, p piece) {
	at, ok := h.piece[p.place]
	if !ok {
		if h.piece == nil {
			h.piece = map[place]int{}
		}
		at = len(h.pieces)
		h.piece[p.place] = at
		h.pieces, h.counts = append(h.pieces, p), append(h.counts, Counts{})
	}
	from := recordOf{at, p.after}
	for i := range p.page.Records {
		rec := &p.page.Records[i]
		if ch, ok := projections.NewChange(p.table, rec); ok {
			docs := projections.Documents(m, &ch)
			for _, d := range docs {
				d = d.Clone()
				h.bytes += d.Size()
				old := h.asked.add(d, from)
				h.bytes -= old.Size()
			}
			h.counts[at].Add(count([]bool{len(docs) > 0}, []bool{false}))
		}
		from.after = rec.Position
	}
	all := &h.pieces[at]
	all.page = p.page
	all.page.Records = slices.Clone(p.page.Records[len(p.page.Records)-1:])
}

// gather puts what was read to the harvest, and applies that when it is full.
func (c *consumer) gather(ctx context.Context, p piece) (err error) {
	if len(p.page.Records) > 0 {
		c.harvest.add(c.Runner.Model, p)
	}
	if len(c.harvest.docs) >= c.gathers || c.harvest.bytes >= harvestBytes {
		_, err = c.reap(ctx)
	}
	return err
}

// reap applies the harvest and moves the places behind it. It says how many records
// that were.
func (c *consumer) reap(ctx context.Context) (n int, err error) {
	h := c.harvest
	c.harvest = harvest{}
	if len(h.pieces) == 0 {
		return 0, nil
	}
	errs, err := c.Runner.index(ctx, h.docs)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.group, err)
	}
	var ds []Dead
	kept := map[recordOf]bool{}
	for i, refused := range errs {
		if refused == nil {
			continue
		}
		of := h.asked.of[i]
		d, err := c.again(ctx, h.pieces[of.piece], of.after)
		if err != nil {
			return 0, fmt.Errorf("the record of a document that is refused: %w", err)
		}
		ds = append(ds, deadDocument(&h.docs[i], &d, Lane(d.Table.Name, h.pieces[of.piece].shard), refused))
		if !kept[of] {
			kept[of] = true
			h.counts[of.piece].Add(Counts{Applied: -1, Kept: 1})
		}
	}
	if err := c.Runner.keep(ctx, ds); err != nil {
		return 0, err
	}
	for _, counts := range h.counts {
		n += counts.Applied + counts.Skipped + counts.Kept
	}
	return n, c.move(ctx, h.pieces, h.counts)
}

// again reads the change behind a position once more.
func (c *consumer) again(ctx context.Context, p piece, after events.Position) (ch projections.Change, err error) {
	page, err := c.source().Read(ctx, p.place.table, p.shard, after, 1)
	if err != nil {
		return ch, err
	}
	if len(page.Records) > 0 {
		ch, _ = projections.NewChange(p.table, &page.Records[0])
	}
	if ch.Table == nil {
		return ch, fmt.Errorf("shard %s of %s has none behind %s any more", p.shard, p.place.table, after)
	}
	return ch, nil
}
