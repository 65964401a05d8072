package embedded

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// Query reads a page of the store at one moment: index entries and their rows agree.
func (s *Store) Query(ctx context.Context, q store.Query) (store.Page, error) {
	ctx, end := s.opts.Observe.Begin(ctx, store.Call{Method: store.IsQuery, Table: q.Table})
	page, err := s.queryPage(ctx, &q)
	end(err)
	return page, store.Wrap(err, "query of %s %s", q.Table, q.Index)
}

// queryPage reads a page from one snapshot: rows and index entries are those of the same commits.
func (s *Store) queryPage(ctx context.Context, q *store.Query) (page store.Page, err error) {
	if err := s.beginOperation(ctx); err != nil {
		return page, err
	}
	defer s.gate.RUnlock()
	tab, err := s.tableNamed(q.Table)
	if err != nil {
		return page, err
	}
	if _, err := tab.CheckQuery(q); err != nil {
		return page, err
	}
	p := pager{tab: tab, q: q}
	if q.Index != "" {
		p.ix = tab.indexNamed(q.Index)
	}
	var bounds pebble.IterOptions
	bounds.LowerBound, bounds.UpperBound = p.keyBounds()
	if p.it, err = s.db.NewIter(&bounds); err != nil {
		return page, err
	}
	defer p.it.Close()
	if p.ix != nil && !p.ix.KeysOnly {
		// A clone reads the same snapshot.
		if p.byKey, err = p.it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}}); err != nil {
			return page, err
		}
		defer p.byKey.Close()
	}
	return p.readPage()
}

// pager reads one page.
type pager struct {
	tab   *table
	ix    *index // nil for the table itself
	q     *store.Query
	it    *pebble.Iterator
	byKey *pebble.Iterator // reads the rows of an index's entries
	space int              // length of the common prefix of the keys
}

// keyBounds returns the first key that is left to read, and the key after the last one.
func (p *pager) keyBounds() (low, high []byte) {
	space, id := byte(spaceRow), p.tab.id
	if p.ix != nil {
		space, id = spaceIndex, p.ix.id
	}
	base := appendSpace(nil, space, id)
	p.space = len(base)
	low, high = p.keySpan(base)
	if p.q.After == nil {
		return low, high
	}
	at := p.cursorKey(bytes.Clone(base))
	switch {
	case p.q.Reverse && bytes.Compare(at, high) < 0:
		high = at
	case !p.q.Reverse && bytes.Compare(at, low) >= 0:
		low = append(at, 0)
	}
	if bytes.Compare(low, high) > 0 {
		low = high
	}
	return low, high
}

// keySpan is the range of keys of the query, without its cursor.
func (p *pager) keySpan(base []byte) (low, high []byte) {
	if !p.q.Partition.IsMissing() {
		base = appendKeyValue(base, p.q.Partition)
	}
	low, high = bytes.Clone(base), keyAfter(bytes.Clone(base))
	r := &p.q.Sort
	switch {
	case !r.Equal.IsMissing():
		low = appendKeyValue(low, r.Equal)
		high = keyAfter(bytes.Clone(low))
	case !r.Prefix.IsMissing():
		low = appendEscaped(low, r.Prefix.Text())
		high = keyAfter(bytes.Clone(low))
	}
	if !r.From.IsMissing() {
		low = appendKeyValue(low, r.From)
	}
	if !r.Below.IsMissing() {
		high = appendKeyValue(bytes.Clone(base), r.Below)
	}
	if bytes.Compare(low, high) > 0 {
		low = high
	}
	return low, high
}

// cursorKey appends the key at which the caller's cursor stands.
func (p *pager) cursorKey(b []byte) []byte {
	if p.ix != nil {
		b = appendKey(b, p.q.After.Entry)
	}
	return appendKey(b, p.q.After.Key)
}

// readPage reads rows until the page is full, and then one more key, to know whether
// anything follows.
func (p *pager) readPage() (page store.Page, err error) {
	first, next := p.it.First, p.it.Next
	if p.q.Reverse {
		first, next = p.it.Last, p.it.Prev
	}
	size := 0
	var last store.Cursor
	for ok := first(); ok; ok = next() {
		if in, err := p.inSegment(); err != nil {
			return store.Page{}, err
		} else if !in {
			continue
		}
		if n := len(page.Rows); n > 0 && n == p.q.Limit || size >= store.MaxPageBytes {
			page.Next = &last
			break
		}
		row, at, err := p.readRow()
		if err != nil {
			return store.Page{}, err
		}
		page.Rows = append(page.Rows, row)
		size += row.Size()
		last = at
	}
	return page, p.it.Error()
}

// inSegment reports whether the row at which the iterator is belongs to the query's
// segment. Of the rows of other segments only the keys are read.
func (p *pager) inSegment() (bool, error) {
	if p.q.Segments <= 1 {
		return true, nil
	}
	key, _, err := takeKey(p.it.Key()[p.space:], &p.tab.Key)
	if err != nil {
		return false, fmt.Errorf("key %x: %w", p.it.Key(), err)
	}
	return p.q.InSegment(key.Partition), nil
}

// readRow reads the row at which the iterator is.
func (p *pager) readRow() (row value.Item, at store.Cursor, err error) {
	key := p.it.Key()
	rest := key[p.space:]
	if p.ix != nil {
		if at.Entry, rest, err = takeKey(rest, &p.ix.Key); err != nil {
			return nil, at, fmt.Errorf("entry %x: %w", key, err)
		}
	}
	rowKey := rest
	if at.Key, rest, err = takeKey(rest, &p.tab.Key); err == nil && len(rest) > 0 {
		err = errKeyForm
	}
	if err != nil {
		return nil, at, fmt.Errorf("key %x: %w", key, err)
	}
	stored, err := p.storedForm(rowKey)
	if err == nil && stored == nil {
		return p.keysOnly(at), at, nil
	}
	if err == nil {
		row, err = decodeRow(bytes.Clone(stored))
	}
	if err != nil {
		return nil, at, fmt.Errorf("row %v: %w", store.Ref{Table: p.tab.Name, Key: at.Key}, err)
	}
	return row, at, nil
}

// storedForm is the row's stored form, nil if the index holds only keys.
func (p *pager) storedForm(rowKey []byte) ([]byte, error) {
	switch {
	case p.ix == nil:
		return p.it.ValueAndErr()
	case p.byKey == nil:
		return nil, nil
	}
	key := append(appendSpace(nil, spaceRow, p.tab.id), rowKey...)
	if p.byKey.SeekPrefixGE(key) {
		return p.byKey.ValueAndErr()
	}
	if err := p.byKey.Error(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("index %s has an entry and the row is not there: %w", p.ix.Name, value.ErrCorrupt)
}

// keysOnly is a row as an index with keys only has it: the table's key and the index's.
func (p *pager) keysOnly(at store.Cursor) value.Item {
	return p.tab.Item(at.Key).With(
		value.Attr{Name: p.ix.Key.Partition.Name, Value: at.Entry.Partition},
		value.Attr{Name: p.ix.Key.Sort.Name, Value: at.Entry.Sort})
}
