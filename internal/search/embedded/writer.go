package embedded

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

// request is a part of an Apply, for the writer.
type request struct {
	docs []*search.Document
	done chan error // takes the answer; has room for it
}

// apply has documents written. On an error any may have been, or may yet be.
func (c *corpus) apply(ctx context.Context, docs []*search.Document) error {
	r := &request{docs, make(chan error, 1)}
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

// write is the writer. While a commit waits for the disk requests gather, and the
// next takes them all.
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
		size := len(batch[0].docs)
	gather:
		for size < maxCommit {
			select {
			case r := <-c.requests:
				batch = append(batch, r)
				size += len(r.docs)
			default:
				break gather
			}
		}
		err := c.guard(func() error { return c.commit(batch, size) })
		for _, r := range batch {
			r.done <- err
		}
	}
}

// commit writes the newest change of each document, unless the index holds a newer
// one or that very one. It returns when they are on disk.
func (c *corpus) commit(batch []*request, size int) error {
	newest := make(map[string]*search.Document, size)
	ids := make([]string, 0, size)
	for _, r := range batch {
		for _, d := range r.docs {
			old, known := newest[d.ID]
			if !known {
				ids = append(ids, d.ID)
			} else if old.Position.Compare(d.Position) > 0 {
				continue
			}
			newest[d.ID] = d
		}
	}
	snap, err := c.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	held, err := stamps(snap, ids)
	if err != nil {
		return err
	}
	now := c.options.Now()
	b := index.NewBatch()
	for _, id := range ids {
		d := newest[id]
		st := stampOf(&c.schema, d)
		if h, ok := held[id]; ok && (h == st || h.position.Compare(st.position) > 0) {
			continue
		}
		if d.Deleted {
			b.Update(tombstone(id, st, now))
		} else {
			b.Update(live(&c.schema, d, st))
		}
	}
	if err := c.prune(snap, b, newest, now); err != nil {
		return err
	}
	return c.persist(b)
}

// persist hands a batch to scorch. After a failure scorch shows what may not be on
// disk, so that a change that comes again looks known: then even an empty batch
// has to reach the disk before anything is acknowledged.
func (c *corpus) persist(b *index.Batch) error {
	if len(b.IndexOps) == 0 && !c.unsure {
		return nil
	}
	if c.unsure {
		b.SetInternal(keySchema, []byte(fingerprint(c.schema)))
	}
	c.unsure = true
	if err := c.scorch.Batch(b); err != nil {
		return err
	}
	c.unsure = false
	return nil
}

// stamps looks up what the index holds for these ids, tombstones included.
func stamps(snap *scorch.IndexSnapshot, ids []string) (map[string]stamp, error) {
	held := map[string]stamp{}
	for _, seg := range snap.Segments() {
		docs, err := seg.DocNumbers(ids)
		if err != nil {
			return nil, err
		}
		if err := visitStamps(seg, docs, held); err != nil {
			return nil, err
		}
	}
	return held, nil
}

func visitStamps(seg *scorch.SegmentSnapshot, docs *roaring.Bitmap, held map[string]stamp) error {
	for it := docs.Iterator(); it.HasNext(); {
		var id string
		var st stamp
		err := seg.VisitDocument(uint64(it.Next()), func(name string, _ byte, b []byte, _ []uint64) bool {
			switch name {
			case "_id":
				id = string(b)
			case fieldStamp:
				st, _ = parseStamp(b)
			}
			return true
		})
		if err != nil {
			return err
		}
		held[id] = st
	}
	return nil
}

// A tombstone may go this long after it was written, and is looked for this often.
const (
	keepTombstones = 48 * time.Hour
	pruneEvery     = time.Hour
	maxPrune       = 5000 // in one commit
)

// prune adds to a batch the removal of old tombstones, except those of documents
// that the batch is about.
func (c *corpus) prune(snap *scorch.IndexSnapshot, b *index.Batch, about map[string]*search.Document, now time.Time) error {
	if now.Before(c.nextPrune) {
		return nil
	}
	c.nextPrune = now.Add(pruneEvery)
	dict, err := snap.FieldDictRange(fieldGone, []byte(termGoneAt), []byte(goneAt(now.Add(-keepTombstones-time.Hour))))
	if err != nil {
		return err
	}
	defer dict.Close()
	left := maxPrune
	for e, err := dict.Next(); e != nil || err != nil; e, err = dict.Next() {
		if err != nil {
			return err
		}
		ids, err := withTerm(snap, fieldGone, e.Term, left)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if about[id] == nil {
				b.Delete(id)
			}
		}
		if left -= len(ids); left <= 0 {
			c.nextPrune = now
			return nil
		}
	}
	return nil
}

// withTerm lists the documents that have the term, at most limit.
func withTerm(snap *scorch.IndexSnapshot, field, term string, limit int) ([]string, error) {
	r, err := snap.TermFieldReader(context.Background(), []byte(term), field, false, false, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var ids []string
	for len(ids) < limit {
		d, err := r.Next(nil)
		if err != nil || d == nil {
			return ids, err
		}
		id, err := snap.ExternalID(d.ID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
