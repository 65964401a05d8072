package reader

import (
	"context"
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/projections/document"
	"weir/internal/runner"
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
	// flushTime is how long an index may take for it, and hurryTime how long once the next one is full, so that rows go on.
	flushTime = 10 * time.Second
	hurryTime = time.Second
	// downTime is how long documents are not offered to an index that did not take some.
	downTime = 5 * time.Second
	// catchUpEvery is how often a Follower looks for documents that others noted as pending.
	catchUpEvery = time.Minute
)

// behind is the records that a consumer has applied to rows and not to the indexes.
type behind struct {
	gathers  int  // how many records a Stepper gathers
	beside   bool // write one flush while the next one gathers
	next     flush
	flushing *flush    // nil if none is being written
	down     time.Time // when an index last did not take documents
	catching catching
}

// catching is a consumer's knowledge of documents that are pending. Those are written beside all else.
type catching struct {
	owed bool // there are some
	at   time.Time
	done chan struct{} // closed when err is set; nil if none are being written
	err  error
}

// flush is pages whose rows are applied. done is closed when the fields after it are set.
type flush struct {
	pieces         []shardPage // of each shard one at the most
	at             map[shardName]int
	records, bytes int
	since          time.Time // when the first page was applied
	offered        bool      // to the indexes
	hurry          func()    // ends the time of these

	done    chan struct{}
	adds    []runner.Result // to those of the pages
	pending int
	err     error
}

// pageOf returns a flush's page of a shard, or nil.
func (h *flush) pageOf(at shardName) *shardPage {
	if i, ok := h.at[at]; ok {
		return &h.pieces[i]
	}
	return nil
}

// addPage takes in a page, which follows those that the flush has of its shard.
func (h *flush) addPage(p shardPage, now time.Time) {
	if h.since.IsZero() {
		h.since, h.at = now, map[shardName]int{}
	}
	h.records += len(p.page.Records)
	for i := range p.page.Records {
		h.bytes += p.page.Records[i].Size()
	}
	was := h.pageOf(p.shardName)
	if was == nil {
		h.at[p.shardName] = len(h.pieces)
		h.pieces = append(h.pieces, p)
		return
	}
	p.page.Records = append(was.page.Records[:len(was.page.Records):len(was.page.Records)], p.page.Records...)
	p.from = was.from
	p.counts.Add(was.counts)
	*was = p
}

// isFull reports whether a flush is to be written before more is applied to rows.
func (h *flush) isFull() bool {
	return h.records >= flushRecords || h.bytes >= flushBytes || len(h.pieces) >= flushShards
}

// hasUnsaved reports whether something is applied of which the checkpoint is not saved.
func (c *consumer) hasUnsaved() bool { return c.flushing != nil || len(c.next.pieces) > 0 }

// unsavedPage returns the last that was applied of a shard without its checkpoint being saved, or nil.
func (c *consumer) unsavedPage(at shardName) *shardPage {
	p := c.next.pageOf(at)
	if p == nil && c.flushing != nil {
		p = c.flushing.pageOf(at)
	}
	return p
}

// dropShard forgets where a shard is, and the pages that were gathered of it: it is read again, from its checkpoint.
func (c *consumer) dropShard(at shardName) {
	delete(c.at, at)
	if _, has := c.next.at[at]; !has {
		return
	}
	was := c.next
	c.next = flush{}
	for _, p := range was.pieces {
		if p.shardName != at {
			c.next.addPage(p, was.since)
		}
	}
}

// isSearched reports whether rows of a table are in an index.
func isSearched(t *model.Table, searches []*model.Search) bool {
	return slices.ContainsFunc(searches, func(s *model.Search) bool { return s.Of.Table == t })
}

// gatherPages takes in pages whose rows are applied. It moves the checkpoints of those that no index has anything of.
func (c *consumer) gatherPages(ctx context.Context, pieces []shardPage, indexed bool) error {
	var done []shardPage
	for _, p := range pieces {
		before := c.unsavedPage(p.shardName)
		switch {
		case before != nil && countOf(before.view) != countOf(p.view): // a page that is not saved cannot be, since the fence is that of the later view
			c.dropShard(p.shardName)
		case before != nil || indexed && isSearched(p.table, c.Runner.Model.Searches):
			c.next.addPage(p, c.Runner.MonotonicNow())
		default:
			done = append(done, p)
		}
	}
	return c.moveCheckpoints(ctx, done)
}

// untilDue is how long the next flush may wait to be written.
func (c *consumer) untilDue() time.Duration {
	if len(c.next.pieces) == 0 || c.flushing != nil {
		return time.Hour
	}
	return max(0, gatherTime-c.Runner.MonotonicNow().Sub(c.next.since))
}

// standsBy reports whether another process may read.
func (c *consumer) standsBy() bool {
	s, ok := c.sourceOf().(shared)
	return ok && s.Fence() == 0
}

// catchesUp reports whether it is time to write documents that are pending. A process that stands by writes none.
func (c *consumer) catchesUp() bool {
	if c.Runner.Index == nil || c.catching.done != nil || c.standsBy() {
		return false
	}
	waited := c.Runner.MonotonicNow().Sub(c.catching.at)
	return waited >= catchUpEvery || c.catching.owed && (waited >= downTime || !c.beside)
}

// catchUp has documents written that are pending, and reports the outcome the next time.
func (c *consumer) catchUp(ctx context.Context) {
	k := &c.catching
	done := make(chan struct{})
	k.owed, k.at, k.done = false, c.Runner.MonotonicNow(), done
	c.writeBeside(func() {
		defer close(done)
		_, k.err = document.CatchUp(ctx, c.Runner)
	})
}

// writeBeside writes documents, beside all else if that is so for this consumer.
func (h *behind) writeBeside(do func()) {
	if h.beside {
		go do()
	} else {
		do()
	}
}

// caughtUp waits until no documents that were pending are being written.
func (c *consumer) caughtUp(ctx context.Context) error {
	k := &c.catching
	if k.done == nil {
		return nil
	}
	<-k.done
	k.done, k.owed = nil, k.owed || k.err != nil // some may be pending since
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.reportStanding("documents", k.err)
}

// flushDue has the next flush written if it is time and no other is being written, and documents that are pending. It waits for nothing.
func (c *consumer) flushDue(ctx context.Context) error {
	if c.catching.done != nil && isClosed(c.catching.done) {
		if err := c.caughtUp(ctx); err != nil {
			return err
		}
	}
	if c.catchesUp() {
		c.catchUp(ctx)
	}
	if c.flushing != nil && !isClosed(c.flushing.done) {
		return nil
	}
	err := c.settleFlush(ctx)
	if err == nil && c.untilDue() <= 0 {
		err = c.startFlush(ctx)
	}
	return err
}

// flushAll has everything written that was gathered, and pending documents if it is time, and waits for that.
func (c *consumer) flushAll(ctx context.Context) error {
	for c.hasUnsaved() {
		err := c.startFlush(ctx)
		if err == nil {
			err = c.settleFlush(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := c.caughtUp(ctx); err != nil {
		return err
	}
	if c.catchesUp() {
		c.catchUp(ctx)
	}
	return c.caughtUp(ctx)
}

// startFlush waits until the flush before is written, and begins to write the next one, if there is one.
func (c *consumer) startFlush(ctx context.Context) error {
	if h := c.flushing; h != nil && c.beside && c.isPrompt() {
		select {
		case <-h.done:
		case <-time.After(hurryTime):
			h.hurry()
		}
	}
	if err := c.settleFlush(ctx); err != nil || len(c.next.pieces) == 0 {
		return err
	}
	h := c.next
	h.done = make(chan struct{})
	c.next, c.flushing = flush{}, &h
	writing, cancel := context.WithTimeout(ctx, flushTime)
	h.hurry, h.offered = cancel, true
	if !c.down.IsZero() && c.Runner.MonotonicNow().Sub(c.down) <= downTime {
		writing, h.offered = nil, false
	}
	batches := batchesOf(h.pieces)
	c.writeBeside(func() {
		defer close(h.done)
		defer cancel()
		h.adds, h.pending, h.err = document.WriteDocuments(ctx, c.Runner, batches, writing)
	})
	return nil
}

// awaitWritten waits until nothing is being written.
func (c *consumer) awaitWritten() {
	if c.flushing != nil {
		<-c.flushing.done
	}
	if c.catching.done != nil {
		<-c.catching.done
	}
}

// settleFlush waits until the flush that is being written is done, and moves the checkpoints behind it.
func (c *consumer) settleFlush(ctx context.Context) error {
	h := c.flushing
	if h == nil {
		return nil
	}
	<-h.done
	c.flushing = nil
	if h.err != nil {
		return h.err
	}
	if h.offered {
		c.down = time.Time{}
	}
	if h.pending > 0 {
		c.catching.owed, h.pieces[0].pending = true, h.pending
		if h.offered {
			c.down = c.Runner.MonotonicNow()
		}
	}
	for i := range h.adds {
		h.pieces[i].counts.Add(h.adds[i])
	}
	return c.moveCheckpoints(ctx, h.pieces)
}
