package runner

import (
	"context"
	"time"

	"weir/internal/model"
)

// Documents are written behind the rows of their records and beside the rows of later records, so no row waits for an index.
// Pages whose rows are applied gather in a flush. One flush is written while the next one gathers. The checkpoints of its
// pages move when each of its documents is in its index, or pending. After a crash the records are read again.
//
// The documents of one flush become one segment of an embedded index. A few large segments cost less than many small
// ones, which the index must merge, and a document that changes often is written once.

const (
	// A flush begins to be written when it has this many records, or bytes of them, or pages of so many shards, each of which
	// has a position in ledgers meanwhile.
	flushRecords = 8192
	flushBytes   = 4 << 20
	flushShards  = 16
	// gatherTime is how long its first page waits for others.
	gatherTime = 100 * time.Millisecond
	// flushTime is how long an index may take for it.
	flushTime = 10 * time.Second
	// downTime is how long documents are not offered to an index that did not take some.
	downTime = 5 * time.Second
	// catchUpEvery is how often a Follower looks for documents that others noted as pending.
	catchUpEvery = time.Minute
)

// behind is what a consumer has applied to rows and not to the indexes.
type behind struct {
	gathers  int  // how many records a Stepper gathers
	beside   bool // write one flush while the next one gathers
	next     flush
	flushing *flush    // nil if none is being written
	down     time.Time // when an index last did not take documents
	catching catching
}

// catching is what a consumer knows of documents that are pending.
type catching struct {
	owed bool // there are some
	at   time.Time
}

// flush is pages whose rows are applied. done is closed when the fields after it are set.
type flush struct {
	pieces         []piece // of each shard one at the most
	at             map[place]int
	records, bytes int
	since          time.Time // when the first page was applied

	done    chan struct{}
	caught  error // why documents are still pending
	tried   bool  // to write those
	pending int
	err     error
}

// of returns what a flush has of a shard, or nil.
func (h *flush) of(at place) *piece {
	if i, ok := h.at[at]; ok {
		return &h.pieces[i]
	}
	return nil
}

// add takes in a page, which follows those that the flush has of its shard.
func (h *flush) add(p piece, now time.Time) {
	if h.since.IsZero() {
		h.since, h.at = now, map[place]int{}
	}
	h.records += len(p.page.Records)
	for i := range p.page.Records {
		h.bytes += p.page.Records[i].Size()
	}
	was := h.of(p.place)
	if was == nil {
		h.at[p.place] = len(h.pieces)
		h.pieces = append(h.pieces, p)
		return
	}
	p.page.Records = append(was.page.Records[:len(was.page.Records):len(was.page.Records)], p.page.Records...)
	p.from = was.from
	p.counts.Add(was.counts)
	*was = p
}

// full reports whether a flush is to be written before more is applied to rows.
func (h *flush) full() bool {
	return h.records >= flushRecords || h.bytes >= flushBytes || len(h.pieces) >= flushShards
}

// holds reports whether something is applied of which the checkpoint is not saved.
func (c *consumer) holds() bool { return c.flushing != nil || len(c.next.pieces) > 0 }

// unsaved returns the last that was applied of a shard without its checkpoint being saved, or nil.
func (c *consumer) unsaved(at place) *piece {
	p := c.next.of(at)
	if p == nil && c.flushing != nil {
		p = c.flushing.of(at)
	}
	return p
}

// drop forgets what was gathered, if some of it is of a shard: it is read again, from the checkpoints.
func (h *behind) drop(at place) {
	if h.next.of(at) != nil {
		h.next = flush{}
	}
}

// searched reports whether rows of a table are in an index.
func (r *Runner) searched(t *model.Table) bool {
	for _, s := range r.Model.Searches {
		if s.Of.Table == t {
			return true
		}
	}
	return false
}

// gather takes in pages whose rows are applied. It moves the checkpoints of those that no index has anything of.
func (c *consumer) gather(ctx context.Context, pieces []piece, documents bool) error {
	var done []piece
	for _, p := range pieces {
		if c.unsaved(p.place) != nil || documents && c.Runner.searched(p.table) {
			c.next.add(p, c.Runner.Moment())
		} else {
			done = append(done, p)
		}
	}
	return c.move(ctx, done)
}

// untilDue is how long the next flush may wait to be written.
func (c *consumer) untilDue() time.Duration {
	if len(c.next.pieces) == 0 || c.flushing != nil {
		return time.Hour
	}
	return max(0, gatherTime-c.Runner.Moment().Sub(c.next.since))
}

// catchesUp reports whether it is time to write documents that are pending.
func (c *consumer) catchesUp() bool {
	if c.Runner.Index == nil || c.catching.owed && !c.beside {
		return c.Runner.Index != nil
	}
	waited := c.Runner.Moment().Sub(c.catching.at)
	return waited >= catchUpEvery || c.catching.owed && waited >= downTime
}

// flushDue has the next flush written if it is time and no other is being written. It waits for nothing.
func (c *consumer) flushDue(ctx context.Context) error {
	if c.flushing != nil && !isClosed(c.flushing.done) {
		return nil
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	if c.untilDue() > 0 && !c.catchesUp() {
		return nil
	}
	return c.startFlush(ctx)
}

// flushAll has everything written that was gathered, and waits for that.
func (c *consumer) flushAll(ctx context.Context) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	if len(c.next.pieces) == 0 && !c.catchesUp() {
		return nil
	}
	if err := c.startFlush(ctx); err != nil {
		return err
	}
	return c.settle(ctx)
}

// startFlush waits until the flush before is written, and begins to write the next one.
func (c *consumer) startFlush(ctx context.Context) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	h := c.next
	h.done, h.tried = make(chan struct{}), c.catchesUp()
	c.next, c.flushing = flush{}, &h
	within := flushTime
	if !c.down.IsZero() && c.Runner.Moment().Sub(c.down) <= downTime {
		within = 0
	}
	write := func() {
		defer close(h.done)
		var of []Result
		if of, h.pending, h.err = c.Runner.Documents(ctx, batchesOf(h.pieces), within); h.err != nil {
			return
		}
		for i := range of {
			h.pieces[i].counts.Add(of[i])
		}
		if h.tried {
			ctx, cancel := context.WithTimeout(ctx, flushTime)
			defer cancel()
			_, h.caught = c.Runner.CatchUp(ctx)
		}
	}
	if c.beside {
		go write()
	} else {
		write()
	}
	return nil
}

// written waits until no flush is being written.
func (c *consumer) written() {
	if c.flushing != nil {
		<-c.flushing.done
	}
}

// settle waits until the flush that is being written is done, and moves the checkpoints behind it.
func (c *consumer) settle(ctx context.Context) error {
	h := c.flushing
	if h == nil {
		return nil
	}
	<-h.done
	c.flushing = nil
	if h.err != nil {
		return h.err
	}
	switch {
	case h.pending > 0:
		c.down, c.catching.owed, h.pieces[0].pending = c.Runner.Moment(), true, h.pending
	case len(h.pieces) > 0:
		c.down = time.Time{}
	}
	if err := c.move(ctx, h.pieces); err != nil || !h.tried || ctx.Err() != nil {
		return err
	}
	c.catching = catching{h.caught != nil || h.pending > 0, c.Runner.Moment()}
	return c.stands("documents", h.caught)
}
