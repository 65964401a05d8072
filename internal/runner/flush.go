package runner

import (
	"context"
	"fmt"
	"slices"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections"
)

// flush is what a consumer that catches up has read for search and not applied yet: the
// newest version of each document, and how far each shard was read. The documents of one
// flush become one segment of an index. A few large segments cost less than many small
// ones, which the index must merge, and a document that changes often is indexed once. No
// checkpoint moves before the flush is applied, so after a crash the consumer reads the
// records again.
//
// A flush holds documents, not images. Code that needs an image reads the record again;
// the stream keeps the record until the checkpoints have moved.
type flush struct {
	asked[recordOf]
	pieces []piece
	counts []Result
	piece  map[place]int
	bytes  int
}

// A flush is applied when it has this many documents, or this many bytes of them. There
// are at most two flushes in memory at a time.
const (
	flushDocuments = 8192
	flushBytes     = 4 << 20
)

// recordOf says where a record can be read again.
type recordOf struct {
	piece int
	after events.Position
}

// of returns what was read of a shard, or nil.
func (h *flush) of(at place) *piece {
	if i, ok := h.piece[at]; ok {
		return &h.pieces[i]
	}
	return nil
}

// unsaved returns the last that was read of a shard without its checkpoint being saved,
// or nil.
func (c *consumer) unsaved(at place) *piece {
	p := c.next.of(at)
	if p == nil && c.flushing != nil {
		p = c.flushing.of(at)
	}
	return p
}

// add appends a page of a shard to what was read of that shard before.
// The page's records may be dropped by the caller: documents are cloned, and only the last record
// is kept, for the position behind the page.
func (h *flush) add(r *Runner, p piece) {
	at, ok := h.piece[p.place]
	if !ok {
		if h.piece == nil {
			h.piece = map[place]int{}
		}
		at = len(h.pieces)
		h.piece[p.place] = at
		h.pieces, h.counts = append(h.pieces, p), append(h.counts, Result{})
	}
	from := recordOf{at, p.after}
	for i := range p.page.Records {
		rec := &p.page.Records[i]
		if ch, ok := projections.NewChange(p.table, rec); ok {
			docs := r.documents(&ch)
			h.counts[at].searched(r.searchings(docs))
			for _, d := range docs {
				d = d.Clone()
				h.bytes += d.Size()
				old := h.asked.add(d, from)
				h.bytes -= old.Size()
			}
			h.counts[at].Counts.Add(count([]bool{len(docs) > 0}, []bool{false}))
		}
		from.after = rec.Position
	}
	all := &h.pieces[at]
	if all.oldest.IsZero() {
		all.oldest = p.page.Records[0].Time
	}
	all.page = p.page
	all.page.Records = slices.Clone(p.page.Records[len(p.page.Records)-1:])
}

// gather adds a page to the flush, and begins to apply the flush when it is full.
func (c *consumer) gather(ctx context.Context, p piece) (err error) {
	if len(p.page.Records) > 0 {
		c.next.add(c.Runner, p)
	}
	switch {
	case len(c.next.docs) >= c.gathers || c.next.bytes >= flushBytes:
		_, err = c.startFlush(ctx)
	case c.flushing != nil && isClosed(c.flushing.done):
		_, err = c.settle(ctx)
	}
	return err
}

// flushing is a flush that is being applied while the next one is collected.
type flushing struct {
	flush
	done chan struct{} // closed when these are set:
	errs []error       // one for each document
	err  error
}

// startFlush waits until the previous flush is applied, and then begins to apply the next
// one. It returns the number of records of the previous one.
func (c *consumer) startFlush(ctx context.Context) (n int, err error) {
	if n, err = c.settle(ctx); err != nil || len(c.next.pieces) == 0 {
		return n, err
	}
	r := &flushing{flush: c.next, done: make(chan struct{})}
	c.next, c.flushing = flush{}, r
	apply := func() {
		defer close(r.done)
		if _, r.err = c.Runner.Admit(ctx, tablesOf(r.pieces), c.group); r.err == nil {
			r.errs, r.err = c.Runner.ApplyDocuments(ctx, r.docs)
		}
	}
	if c.beside {
		go apply()
	} else {
		apply()
	}
	return n, nil
}

// flushAll applies everything that was collected. It returns the number of records.
func (c *consumer) flushAll(ctx context.Context) (n int, err error) {
	for range 2 {
		m, err := c.startFlush(ctx)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// applied waits until no flush is being applied.
func (c *consumer) applied() {
	if c.flushing != nil {
		<-c.flushing.done
	}
}

// settle waits until the flush that is being applied is done, and moves the checkpoints
// behind it. It returns the number of its records.
func (c *consumer) settle(ctx context.Context) (n int, err error) {
	h := c.flushing
	if h == nil {
		return 0, nil
	}
	<-h.done
	c.flushing = nil
	if h.err != nil {
		return 0, fmt.Errorf("%s: %w", c.group, h.err)
	}
	var ds []Dead
	kept, lost := map[recordOf]bool{}, map[recordOf][]string{}
	for i, refused := range h.errs {
		if refused == nil {
			continue
		}
		of := h.asked.of[i]
		d, err := c.again(ctx, h.pieces[of.piece], of.after)
		if err != nil {
			return 0, fmt.Errorf("the record of a document that is refused: %w", err)
		}
		ds = append(ds, deadDocument(&h.docs[i], &d, owntable.ShardKey(d.Table.Name, h.pieces[of.piece].shard), refused))
		lost[of] = h.counts[of.piece].unsearched(lost[of], c.Runner.searching(h.docs[i].Index))
		if !kept[of] {
			kept[of] = true
			h.counts[of.piece].Counts.Add(Counts{Applied: -1, Dead: 1})
		}
	}
	if err := c.Runner.KeepAll(ctx, ds); err != nil {
		return 0, err
	}
	for _, counts := range h.counts {
		n += counts.Applied + counts.Skipped + counts.Dead
	}
	return n, c.move(ctx, h.pieces, h.counts, nil)
}

// again reads the change behind a position again. It is an error if the stream no longer
// has it.
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
