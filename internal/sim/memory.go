package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// memoryStore is the simulated DynamoDB: rows, and streams whose shards split. It does at once
// what it is asked to; link makes things go wrong on the way to it.
type memoryStore struct {
	mu     sync.Mutex // for the methods of store.Store; a run has one goroutine at a time
	closed bool
	tables map[string]*table
	names  []string
	now    func() time.Time
	dice   *dice
	who    string // the name of the writing fiber, for wrote
	began  int    // how many writes the run had done when that fiber read the records it applies
	writes int    // how many times a row was changed
	// wrote is called with each change of a row.
	wrote func(who string, t *table, key store.Key, old, now value.Item)
	undo  []func() // of the changes that can still be lost
	keep  bool     // whether undo is kept at all
	whole [][2]int // the ranges of undo that are transactions, which are lost whole
}

// table is the rows of a table by partition, in the order of their sort keys.
type table struct {
	store.Table
	parts  map[string]*partition
	order  []string // the partitions, in the order of their creation
	shards []*shard
}

// partition is the rows with one partition key, in the order of their sort keys.
type partition struct {
	keys []store.Key
	rows []value.Item
}

// newMemory makes a store without rows. The dice choose the first shards of its streams.
func newMemory(tables []store.Table, now func() time.Time, d *dice) *memoryStore {
	m := &memoryStore{tables: map[string]*table{}, now: now, dice: d, wrote: func(string, *table, store.Key, value.Item, value.Item) {}}
	for _, t := range tables {
		mt := &table{Table: t, parts: map[string]*partition{}}
		if t.Stream {
			mt.beginStream(d)
		}
		m.tables[t.Name] = mt
		m.names = append(m.names, t.Name)
	}
	return m
}

func partName(v value.Value) string { return v.Kind().Descriptor() + v.Text() }

// findKey looks up a key. If ok is false and p is not nil, at is where the key would be
// inserted.
func (t *table) findKey(k store.Key) (p *partition, at int, ok bool) {
	p = t.parts[partName(k.Partition)]
	if p == nil {
		return nil, 0, false
	}
	at = sort.Search(len(p.keys), func(i int) bool { return compareSort(p.keys[i].Sort, k.Sort) >= 0 })
	return p, at, at < len(p.keys) && compareSort(p.keys[at].Sort, k.Sort) == 0
}

func compareSort(a, b value.Value) int {
	if a.IsMissing() || b.IsMissing() {
		return 0
	}
	return value.Compare(a, b)
}

// get is the row with a key, nil for none.
func (t *table) get(k store.Key) value.Item {
	if p, at, ok := t.findKey(k); ok {
		return p.rows[at]
	}
	return nil
}

// put replaces a row; nil deletes it.
func (t *table) put(k store.Key, row value.Item) {
	p, at, ok := t.findKey(k)
	switch {
	case ok && row == nil:
		p.keys, p.rows = slices.Delete(p.keys, at, at+1), slices.Delete(p.rows, at, at+1)
	case ok:
		p.rows[at] = row
	case row == nil:
	case p == nil:
		name := partName(k.Partition)
		t.parts[name] = &partition{[]store.Key{k}, []value.Item{row}}
		t.order = append(t.order, name)
	default:
		p.keys, p.rows = slices.Insert(p.keys, at, k), slices.Insert(p.rows, at, row)
	}
}

// eachRow yields all rows.
func (t *table) eachRow(yield func(k store.Key, row value.Item)) {
	for _, name := range t.order {
		p := t.parts[name]
		for i := range p.keys {
			yield(p.keys[i], p.rows[i])
		}
	}
}

func (m *memoryStore) table(name string) (*table, error) {
	if t := m.tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("table %q: %w", name, store.ErrNoTable)
}

var _ store.Store = (*memoryStore)(nil)

// begin begins a call. If err is nil, the caller unlocks m.mu.
func (m *memoryStore) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return store.ErrClosed
	}
	return nil
}

// enter is begin for a call about one table.
func (m *memoryStore) enter(ctx context.Context, name string) (*table, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	t, err := m.table(name)
	if err != nil {
		m.mu.Unlock()
	}
	return t, err
}

// has is a whole call that only checks whether a table exists.
func (m *memoryStore) has(ctx context.Context, name string) error {
	_, err := m.enter(ctx, name)
	if err == nil {
		m.mu.Unlock()
	}
	return err
}

// Get reads rows.
func (m *memoryStore) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := make([]value.Item, len(refs))
	for i, r := range refs {
		t, err := m.table(r.Table)
		if err != nil {
			return nil, err
		}
		if err := t.CheckKey(r.Key); err != nil {
			if t.IsKey(r.Key) {
				continue
			}
			return nil, err
		}
		out[i] = t.get(r.Key)
	}
	return out, nil
}

// check returns the error for which a write is refused, or the row before and after it.
func (m *memoryStore) check(w *store.Write) (t *table, old, now value.Item, err error) {
	if t, err = m.table(w.Table); err != nil {
		return nil, nil, nil, err
	}
	if err = t.Validate(w); err != nil {
		return t, nil, nil, err
	}
	old = t.get(w.Key)
	if !w.If.Holds(old) {
		return t, old, old, store.ErrCondition
	}
	if now, err = t.Apply(w, old); err != nil {
		return t, old, old, err
	}
	if now != nil && !w.Check {
		if err = store.CheckSize(now); err != nil {
			return t, old, old, err
		}
		for i := range t.Indexes {
			if _, _, err = store.IndexEntry(&t.Indexes[i], now); err != nil {
				return t, old, old, err
			}
		}
	}
	return t, old, now, nil
}

// change replaces a row and appends the record.
func (m *memoryStore) change(t *table, w *store.Write, old, now value.Item, expired bool) {
	if old == nil && now == nil || old != nil && now != nil && value.EqualItems(old, now) {
		return
	}
	t.put(w.Key, now)
	var s *shard
	var before events.Position
	if t.Stream {
		s, before = t.append(m, w, old, now, expired)
	}
	if m.keep {
		k := w.Key
		m.undo = append(m.undo, func() {
			t.put(k, old)
			if s != nil {
				s.records, s.last = s.records[:len(s.records)-1], before
				s.given = min(s.given, len(s.records))
			}
		})
	}
	m.writes++
	m.wrote(m.who, t, w.Key, old, now)
}

// undone adds something to undo if the last change is lost.
func (m *memoryStore) undone(then func()) {
	if n := len(m.undo); n > 0 && m.keep {
		change := m.undo[n-1]
		m.undo[n-1] = func() { change(); then() }
	}
}

// Write does each write by itself.
func (m *memoryStore) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := make([]store.Outcome, len(ws))
	for i := range ws {
		t, old, now, err := m.check(&ws[i])
		if ws[i].Check {
			err = fmt.Errorf("%w: a check outside a transaction", store.ErrRefused)
		}
		if err != nil {
			out[i].Err = ws[i].Failed(err)
		} else {
			m.change(t, &ws[i], old, now, false)
		}
		if ws[i].Return && (err == nil || errors.Is(err, store.ErrCondition)) {
			out[i].Row = now
		}
	}
	return out, nil
}

// Transact does all of the writes or none.
func (m *memoryStore) Transact(ctx context.Context, ws []store.Write) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if len(ws) > store.MaxTransact {
		return fmt.Errorf("%w: %d writes in a transaction", store.ErrRefused, len(ws))
	}
	type step struct {
		t        *table
		old, now value.Item
	}
	steps, size := make([]step, len(ws)), 0
	seen := map[string]bool{}
	for i := range ws {
		name := ws[i].Ref.String()
		if seen[name] {
			return ws[i].Failed(fmt.Errorf("%w: the key comes twice in a transaction", store.ErrRefused))
		}
		seen[name] = true
		t, old, now, err := m.check(&ws[i])
		if err != nil {
			return ws[i].Failed(err)
		}
		steps[i] = step{t, old, now}
		size += max(old.Size(), now.Size())
		if err := store.CheckTransact(size); err != nil {
			return ws[i].Failed(err)
		}
	}
	from := len(m.undo)
	for i, s := range steps {
		if !ws[i].Check {
			m.change(s.t, &ws[i], s.old, s.now, false)
		}
	}
	if len(m.undo) > from+1 {
		m.whole = append(m.whole, [2]int{from, len(m.undo)})
	}
	return nil
}

// expire deletes a row as TTL does.
func (m *memoryStore) expire(t *table, k store.Key) {
	m.change(t, &store.Write{Ref: store.Ref{Table: t.Name, Key: k}, Delete: true}, t.get(k), nil, true)
}

// Query reads a page.
func (m *memoryStore) Query(ctx context.Context, q store.Query) (store.Page, error) {
	t, err := m.enter(ctx, q.Table)
	if err != nil {
		return store.Page{}, err
	}
	defer m.mu.Unlock()
	if _, err := t.CheckQuery(&q); err != nil {
		return store.Page{}, err
	}
	entries := t.findEntries(&q)
	if q.Reverse {
		slices.Reverse(entries)
	}
	if q.After != nil {
		after := entry{key: q.After.Key, at: q.After.Entry}
		if q.Index == "" {
			after.at = after.key
		}
		n := 0
		for n < len(entries) && (compareEntries(entries[n], after) <= 0) != q.Reverse || n < len(entries) && compareEntries(entries[n], after) == 0 {
			n++
		}
		entries = entries[n:]
	}
	var page store.Page
	size := 0
	for i := range entries {
		e := &entries[i]
		if q.Limit > 0 && i == q.Limit || i > 0 && size+e.row.Size() > store.MaxPageBytes {
			page.Next = &store.Cursor{Key: entries[i-1].key}
			if q.Index != "" {
				page.Next.Entry = entries[i-1].at
			}
			break
		}
		size += e.row.Size()
		page.Rows = append(page.Rows, e.row)
	}
	return page, nil
}

// entry is the place of a row in a table or an index.
type entry struct {
	key, at store.Key
	row     value.Item
}

func compareEntries(a, b entry) int {
	for _, c := range [...][2]value.Value{{a.at.Partition, b.at.Partition}, {a.at.Sort, b.at.Sort}, {a.key.Partition, b.key.Partition}, {a.key.Sort, b.key.Sort}} {
		if n := compareSort(c[0], c[1]); n != 0 {
			return n
		}
	}
	return 0
}

// findEntries are the entries that a query asks for, in ascending order.
func (t *table) findEntries(q *store.Query) (out []entry) {
	take := func(k store.Key, row value.Item) {
		e := entry{k, k, row}
		if q.Index != "" {
			ix := t.Index(q.Index)
			at, ok, err := store.IndexEntry(ix, row)
			if err != nil || !ok {
				return
			}
			e.at = at
			if ix.KeysOnly {
				e.row = t.Item(k).With(value.Attr{Name: ix.Key.Partition.Name, Value: at.Partition}, value.Attr{Name: ix.Key.Sort.Name, Value: at.Sort})
			}
		}
		if (q.Partition.IsMissing() || value.Equal(e.at.Partition, q.Partition)) && inRange(e.at.Sort, &q.Sort) && q.InSegment(k.Partition) {
			out = append(out, e)
		}
	}
	if q.Index != "" || q.Partition.IsMissing() {
		t.eachRow(take)
		slices.SortFunc(out, compareEntries)
	} else if p := t.parts[partName(q.Partition)]; p != nil {
		for i := range p.keys {
			take(p.keys[i], p.rows[i])
		}
	}
	return out
}

// inRange reports whether a sort key is in a range.
func inRange(v value.Value, r *store.Range) bool {
	switch {
	case !r.Equal.IsMissing():
		return value.Equal(v, r.Equal)
	case !r.Prefix.IsMissing():
		p := r.Prefix.Text()
		return len(v.Text()) >= len(p) && v.Text()[:len(p)] == p
	}
	return (r.From.IsMissing() || value.Compare(v, r.From) >= 0) && (r.Below.IsMissing() || value.Compare(v, r.Below) < 0)
}

// Sweep deletes nothing: the application lets rows expire.
func (m *memoryStore) Sweep(ctx context.Context, _ time.Time, _ int, _ store.Prepare) (int, error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	m.mu.Unlock()
	return 0, nil
}

// Sync makes everything durable.
func (m *memoryStore) Sync(ctx context.Context) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.durable()
	return nil
}

// durable notes that no change made so far can be lost.
func (m *memoryStore) durable() { m.undo, m.whole = m.undo[:0], m.whole[:0] }

// Close makes everything durable.
func (m *memoryStore) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.durable()
	return nil
}

// cut is a power cut: it loses some of the newest changes that are not durable.
func (m *memoryStore) cut(d *dice) (lost int) {
	if len(m.undo) == 0 {
		return 0
	}
	left := len(m.undo) - 1 - d.n(len(m.undo))
	for _, t := range m.whole {
		if t[0] < left && left < t[1] {
			left = t[0]
		}
	}
	for ; len(m.undo) > left; lost++ {
		last := len(m.undo) - 1
		m.undo[last]()
		m.undo = m.undo[:last]
	}
	m.undo, m.whole = m.undo[:0], m.whole[:0]
	return lost
}

// Load returns none: rows come with their stream records here.
func (m *memoryStore) Load(context.Context, store.LoadOptions) (store.Load, error) { return nil, nil }
