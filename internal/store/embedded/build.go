package embedded

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/seq"
)

// buildCommit limits the size of a commit while an index is built.
const buildCommit = 1 << 20

// buildIndexes fills the new indexes, table by table, in one pass over the rows. No other
// operation uses the store yet. A crash leaves the indexes Building, and the next Open
// builds them from the beginning.
func (s *Store) buildIndexes() error {
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		tab := s.tables[name]
		todo := seq.Where(tab.indexes, func(ix *index) bool { return tab.indexMeta(ix).Building })
		if len(todo) == 0 {
			continue
		}
		if err := s.fillIndexes(tab, todo); err != nil {
			return fmt.Errorf("building indexes of table %s: %w", name, err)
		}
	}
	return nil
}

// indexMeta is the catalog's entry of an open index.
func (t *table) indexMeta(ix *index) *indexMeta {
	if ix.isExpiry() {
		return t.meta.Expiry
	}
	return t.meta.Indexes[ix.Name]
}

// fillIndexes builds a table's new indexes from its rows, in several commits. The indexes stay
// Building until they have all entries.
func (s *Store) fillIndexes(tab *table, todo []*index) error {
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	low := appendSpace(nil, spaceRow, tab.id)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: keyAfter(appendSpace(nil, spaceRow, tab.id))})
	if err != nil {
		return err
	}
	defer it.Close()
	var key []byte
	for ok := it.First(); ok; ok = it.Next() {
		if key, err = addEntries(b, tab, todo, it, key); err != nil {
			return fmt.Errorf("key %x: %w", it.Key(), err)
		}
		if b.Len() > buildCommit {
			if err := b.Commit(pebble.NoSync); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	for _, ix := range todo {
		tab.indexMeta(ix).Building = false
	}
	if err := s.catalog.saveCatalog(b); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}

// addEntries adds the entries of the row at which the iterator is.
func addEntries(b *pebble.Batch, tab *table, todo []*index, it *pebble.Iterator, key []byte) ([]byte, error) {
	stored, err := it.ValueAndErr()
	if err != nil {
		return key, err
	}
	row, err := decodeRow(stored)
	if err != nil {
		return key, err
	}
	id, _, err := takeKey(it.Key()[3:], &tab.Key)
	if err != nil {
		return key, err
	}
	vs := tab.keyValues(nil, row)
	for _, ix := range todo {
		if entry, ok, err := ix.entryKey(vs); ok && err == nil {
			key = appendEntryKey(key[:0], ix, entry, id)
			if err := b.Set(key, nil, nil); err != nil {
				return key, err
			}
		}
	}
	return key, nil
}
