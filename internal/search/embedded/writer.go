package embedded

import (
	"context"
	"slices"
	"sync"

	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

// request is work for the writer goroutine.
type request struct {
	docs   []*search.Document
	weight int
	filled bool       // record that the index is filled
	done   chan error // receives the result; has room for it
}

// askWriter makes the writer do the work of a request. After an error the work may have been
// done, or may still be done.
func (c *corpus) askWriter(ctx context.Context, r *request) error {
	r.done = make(chan error, 1)
	select {
	case c.requests <- r:
	case <-c.broken:
		return c.cause
	case <-c.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-c.broken:
		return c.cause
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write is the writer goroutine. While a commit waits for the disk, requests gather;
// the next commit takes all of them, up to a limit.
func (c *corpus) write() {
	defer close(c.ended)
	for {
		var batch []*request
		select {
		case r := <-c.requests:
			batch = append(batch, r)
		case <-c.closing:
			return
		}
		size, weight := len(batch[0].docs), batch[0].weight
	gather:
		for size < maxCommit && weight < maxCommitWeight {
			select {
			case r := <-c.requests:
				batch = append(batch, r)
				size, weight = size+len(r.docs), weight+r.weight
			default:
				break gather
			}
		}
		err := c.guardCall(func() error { return c.writeNewest(batch, size) })
		for _, r := range batch {
			r.done <- err
		}
	}
}

// writeNewest writes the newest change of each document, unless the index holds that change
// or a newer one. It returns when the changes are on disk. A crash leaves the commit
// whole or not at all.
func (c *corpus) writeNewest(batch []*request, size int) error {
	newest, ids := newestOf(batch, size)
	snap, err := c.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	held, err := readStamps(snap, ids)
	if err != nil {
		return err
	}
	is, err := describedBy(snap)
	if err != nil {
		return err
	}
	holds := is.Content
	now := c.options.Now()
	b := index.NewBatch()
	filled := slices.ContainsFunc(batch, func(r *request) bool { return r.filled })
	for _, id := range ids {
		d := newest[id]
		st := stampOf(&c.schema, d)
		h, ok := held[id]
		if ok && (h == st || h.position.Compare(st.position) > 0) {
			continue
		}
		if ok {
			holds -= h.of(id)
		}
		holds += st.of(id)
		if d.Deleted {
			b.Update(tombstone(id, st, now))
		} else {
			b.Update(live(&c.schema, d, st))
		}
	}
	gone, err := c.pruneTombstones(snap, b, newest, now)
	if err != nil {
		return err
	}
	if len(b.IndexOps) > 0 || c.unsure || filled {
		c.commits++
		if err := c.addDescription(b, holds-gone, filled || c.filled.Load()); err != nil {
			return err
		}
	}
	if err := c.persistBatch(b); err != nil {
		return err
	}
	if filled {
		c.filled.Store(true)
	}
	return c.writeCommitNumber()
}

// newestOf returns the newest change of each document, and the ids in the order given.
// Of two changes at one position, the later one counts.
func newestOf(batch []*request, size int) (map[string]*search.Document, []string) {
	newest := make(map[string]*search.Document, size)
	ids := make([]string, 0, size)
	for _, r := range batch {
		for _, d := range r.docs {
			old := newest[d.ID]
			if old == nil {
				ids = append(ids, d.ID)
			}
			if old == nil || old.Position.Compare(d.Position) <= 0 {
				newest[d.ID] = d
			}
		}
	}
	return newest, ids
}

// persistBatch gives a batch to scorch and waits until it is on disk. After a failure scorch
// shows changes that may not be on disk, and goes on trying. A repeated change then
// looks as if it had been applied, so commit gives a batch that reaches the disk even if
// nothing is new, before anything is acknowledged.
//
// Scorch's own waiting is not used: when it fails, it closes a segment that the index
// still shows.
func (c *corpus) persistBatch(b *index.Batch) error {
	if len(b.IndexOps) == 0 && len(b.InternalOps) == 0 {
		return nil
	}
	done := make(chan struct{})
	if c.options.InMemory {
		close(done)
	} else {
		once := sync.OnceFunc(func() { close(done) })
		b.SetPersistedCallback(func(error) { once() })
	}
	select {
	case <-c.failed: // of an earlier batch
	default:
	}
	c.unsure = true
	if err := c.scorch.Batch(b); err != nil {
		return err
	}
	select {
	case <-done:
		c.unsure = false
		return nil
	case err := <-c.failed:
		return err
	case <-c.broken:
		return c.cause
	}
}
