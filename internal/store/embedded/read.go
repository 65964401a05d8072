package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// Get reads rows by key. The result is as long as refs, nil for a row that does not
// exist.
func (s *Store) Get(ctx context.Context, refs []store.Ref) (_ []value.Item, err error) {
	ctx, end := s.opts.Observe.Begin(ctx, store.Call{Method: store.IsGet, Rows: len(refs)})
	defer func() { end(err) }()
	if err := s.beginOperation(ctx); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	defer s.gate.RUnlock()
	out := make([]value.Item, len(refs))
	var missing []missed
	var key []byte
	for i := range refs {
		tab, err := s.tableNamed(refs[i].Table)
		if err != nil {
			return nil, fmt.Errorf("get: %w", err)
		}
		if err := tab.CheckKey(refs[i].Key); err != nil {
			if tab.IsKey(refs[i].Key) {
				continue
			}
			return nil, fmt.Errorf("get %v: %w", refs[i], err)
		}
		key = appendRowKey(key[:0], tab, refs[i].Key)
		hash := maphash.Bytes(s.seed, key)
		_, item, found, since := s.cache.get(hash, key)
		if !found {
			missing = append(missing, missed{at: i, hash: hash, key: bytes.Clone(key), since: since})
		}
		out[i] = item
	}
	if len(missing) == 0 {
		return out, nil
	}
	slices.SortFunc(missing, func(a, b missed) int { return bytes.Compare(a.key, b.key) })
	// Make the reader only now, so that it reads nothing older than since.
	r, err := s.newReader(len(missing))
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	defer r.closeReader()
	for _, m := range missing {
		stored, item, err := r.readRow(m.key)
		if err != nil {
			return nil, fmt.Errorf("get %v: %w", refs[m.at], err)
		}
		s.cache.fillRow(m.hash, m.key, stored, m.since)
		out[m.at] = item
	}
	return out, nil
}

// missed is a row that is not in the cache.
type missed struct {
	at    int
	hash  uint64
	key   []byte
	since uint64
}

// reader reads single keys. A result is valid until the next call.
type reader struct {
	db   *pebble.DB
	iter *pebble.Iterator // nil if there are only few keys
	last io.Closer
}

// manyKeys is the number of keys from which one iterator is cheaper than a Get for
// each.
const manyKeys = 4

// newReader makes a reader. For few keys it reads each key as it is when it is asked for;
// for many, all as they are now.
func (s *Store) newReader(keys int) (reader, error) {
	r := reader{db: s.db}
	if keys < manyKeys {
		return r, nil
	}
	var err error
	r.iter, err = s.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	return r, err
}

// get returns nil if the key does not exist.
func (r *reader) get(key []byte) ([]byte, error) {
	if r.iter != nil {
		if !r.iter.SeekPrefixGE(key) {
			return nil, r.iter.Error()
		}
		return r.iter.ValueAndErr()
	}
	if err := r.releaseRead(); err != nil {
		return nil, err
	}
	v, closer, err := r.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	r.last = closer
	return v, err
}

// readRow reads a row into memory of its own.
func (r *reader) readRow(key []byte) (stored []byte, item value.Item, err error) {
	found, err := r.get(key)
	if err == nil {
		stored = bytes.Clone(found)
		item, err = decodeRow(stored)
	}
	return stored, item, err
}

// releaseRead gives back the memory of the last read. Bytes that the read returned may not be used after it.
func (r *reader) releaseRead() error {
	last := r.last
	r.last = nil
	if last == nil {
		return nil
	}
	return last.Close()
}

// closeReader ends the reader, also after an error. Its error would say nothing that a read has not said.
func (r *reader) closeReader() {
	_ = r.releaseRead()
	if r.iter != nil {
		_ = r.iter.Close()
	}
}
