package embedded

import (
	"context"
	"slices"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

// A tombstone may be deleted this long after it was written. Old tombstones are looked
// for this often.
const (
	keepTombstones = 48 * time.Hour
	pruneEvery     = time.Hour
	maxPrune       = 5000 // in one commit
)

// pruneTombstones adds the removal of old tombstones to a batch, except of documents that the
// batch itself writes. gone is their part of the index's content.
func (c *corpus) pruneTombstones(snap *scorch.IndexSnapshot, b *index.Batch, about map[string]*search.Document, now time.Time) (gone content, err error) {
	if now.Before(c.nextPrune) {
		return 0, nil
	}
	c.nextPrune = now.Add(pruneEvery)
	dict, err := snap.FieldDictRange(fieldGone, []byte(termGoneAt), []byte(goneAt(now.Add(-keepTombstones-time.Hour))))
	if err != nil {
		return 0, err
	}
	defer dict.Close()
	left := maxPrune
	for e, err := dict.Next(); e != nil || err != nil; e, err = dict.Next() {
		if err != nil {
			return 0, err
		}
		ids, err := withTerm(snap, fieldGone, e.Term, left)
		if err != nil {
			return 0, err
		}
		if left -= len(ids); left <= 0 {
			c.nextPrune = now
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return about[id] != nil })
		held, err := readStamps(snap, ids)
		if err != nil {
			return 0, err
		}
		for _, id := range ids {
			b.Delete(id)
			gone += held[id].of(id)
		}
		if left <= 0 {
			break
		}
	}
	return gone, nil
}

// withTerm lists at most limit documents that have the term.
// An error comes with no ids, or with those found
// before it.
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
