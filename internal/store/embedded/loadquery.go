package embedded

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// part is the keys of the rows of a partition that a Load has read or written, whether they exist
// or not.
type part struct {
	sorted []string
	late   []string // not sorted in yet
	alone  bool     // the store has no row of the partition
}

// partBytes is about the memory of a key in a part.
const partBytes = 64

func (p *part) add(key string) { p.late = append(p.late, key) }

// from returns the keys from low on, in their order. They are valid until the next add.
func (p *part) from(low string) []string {
	if len(p.late) > 0 {
		slices.Sort(p.late)
		if n := len(p.sorted); n == 0 || p.sorted[n-1] < p.late[0] {
			p.sorted = append(p.sorted, p.late...)
		} else {
			p.sorted = mergedIn(p.sorted, p.late)
		}
		p.late = p.late[:0]
	}
	at, _ := slices.BinarySearch(p.sorted, low)
	return p.sorted[at:]
}

// mergedIn merges late, which is short, into the end of sorted. Both are in order.
func mergedIn(sorted, late []string) []string {
	at, from := len(sorted)+len(late), len(sorted)
	sorted = slices.Grow(sorted, len(late))[:at]
	for n := len(late) - 1; n >= 0; n-- {
		to, _ := slices.BinarySearch(sorted[:from], late[n])
		copy(sorted[to+n+1:at], sorted[to:from])
		sorted[to+n] = late[n]
		at, from = to+n, to
	}
	return sorted
}

// partOf returns the part of the partition of a row whose key is given.
func (l *load) partOf(key string, id store.Key) *part {
	l.scratch = appendKeyValue(l.scratch[:0], id.Partition)
	begin := key[:spaceLen+len(l.scratch)]
	p := l.parts[begin]
	if p == nil {
		p = &part{}
		l.parts[begin] = p
		l.bytes += partBytes
	}
	l.bytes += partBytes
	return p
}

// Query reads a page of a partition of a table without a stream, as the Load has it. Any other query
// is refused with ErrLoading.
func (l *load) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := l.queryLoaded(ctx, &q)
	return page, store.Wrap(err, "query of %s %s", q.Table, q.Index)
}

func (l *load) queryLoaded(ctx context.Context, q *store.Query) (page store.Page, err error) {
	if err := l.s.beginOperation(ctx); err != nil {
		return page, err
	}
	defer l.s.gate.RUnlock()
	tab, err := l.s.tableNamed(q.Table)
	if err != nil {
		return page, err
	}
	keys, err := tab.CheckQuery(q)
	if err != nil {
		return page, err
	}
	if tab.Stream || q.Index != "" || q.Partition.IsMissing() || q.Reverse || keys.Sort.Name == "" {
		return page, store.ErrLoading
	}
	p := pager{tab: tab, q: q}
	low, high := p.keyBounds()
	m := merging{load: l, tab: tab, high: string(high)}
	if err := m.begin(q.Partition, low); err != nil {
		return page, err
	}
	size := 0
	for {
		r, err := m.nextRow()
		if err != nil || r == nil {
			return page, err
		}
		if n := len(page.Rows); n > 0 && n == q.Limit || size >= store.MaxPageBytes {
			last, _ := tab.KeyOf(page.Rows[n-1])
			page.Next = &store.Cursor{Key: last}
			return page, nil
		}
		row, err := l.itemOf(r)
		if err != nil {
			return page, fmt.Errorf("row %v: %w", store.Ref{Table: tab.Name, Key: r.id}, err)
		}
		page.Rows = append(page.Rows, row)
		size += row.Size()
	}
}

// merging reads a range of keys of the store, and over it those of a Load.
type merging struct {
	*load
	tab   *table
	high  string
	own   []string // the Load's keys that are left
	valid bool     // below is at a key
}

// begin is before the first key from low on.
func (m *merging) begin(partition value.Value, low []byte) error {
	begin := appendKeyValue(appendSpace(nil, spaceRow, m.tab.id), partition)
	p := m.parts[string(begin)]
	if p == nil {
		p = &part{}
		m.parts[string(begin)] = p
		m.bytes += partBytes
	}
	m.own = p.from(string(low))
	if p.alone {
		return nil
	}
	if m.below == nil {
		it, err := m.s.db.NewIter(nil)
		if err != nil {
			return err
		}
		m.below = it
	}
	if m.below.SeekGE(begin) && bytes.HasPrefix(m.below.Key(), begin) {
		m.valid = m.below.SeekGE(low)
	} else {
		p.alone = m.below.Error() == nil
	}
	return m.below.Error()
}

// nextRow returns the next row that exists, nil behind the last one. From then on the Load has it, so
// that it is not read from the store again.
func (m *merging) nextRow() (*loaded, error) {
	for {
		if m.valid && string(m.below.Key()) >= m.high {
			m.valid = false
		}
		if len(m.own) > 0 && m.own[0] >= m.high {
			m.own = nil
		}
		order := 0 // of the store's key and the Load's
		switch {
		case !m.valid && len(m.own) == 0:
			return nil, nil
		case !m.valid:
			order = 1
		case len(m.own) == 0:
			order = -1
		default:
			order = strings.Compare(string(m.below.Key()), m.own[0])
		}
		var r *loaded
		if order < 0 {
			var err error
			if r, err = m.readStored(); err != nil {
				return nil, err
			}
		} else {
			r, m.own = m.rows[m.own[0]], m.own[1:]
		}
		if order <= 0 {
			m.valid = m.below.Next()
			if err := m.below.Error(); err != nil {
				return nil, err
			}
		}
		if r.now != nil {
			return r, nil
		}
	}
}

// readStored has the Load remember the row at which the store's rows are.
func (m *merging) readStored() (*loaded, error) {
	key := m.below.Key()
	found, err := m.below.ValueAndErr()
	if err != nil {
		return nil, err
	}
	id, rest, err := takeKey(key[spaceLen:], &m.tab.Key)
	if err == nil && len(rest) > 0 {
		err = errKeyForm
	}
	if err != nil {
		return nil, fmt.Errorf("key %x: %w", key, err)
	}
	return m.rememberRow(key, m.tab, id, bytes.Clone(found)), nil
}

// endQueries lets go of the store's rows as they were when the window's first query came.
func (l *load) endQueries() error {
	clear(l.parts)
	if l.below == nil {
		return nil
	}
	it := l.below
	l.below = nil
	return it.Close()
}
