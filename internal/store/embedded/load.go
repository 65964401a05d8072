package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// load is the store's Load. Its rows that differ from the store's are in memory, as they
// are stored.
type load struct {
	store.Store // for streams
	s           *Store
	opts        store.LoadOptions

	rows    map[string]*loaded // by key
	bytes   int
	records []events.Record
	last    uint64 // the position of the last record

	key, scratch []byte
	values       []value.Value
}

// loaded is a row that a Load has written.
type loaded struct {
	tab      *table
	id       store.Key
	was, now []byte // as the store has it, and as the Load has it; nil for no row
}

// loadedBytes is about what a written row takes beside its key and images.
const loadedBytes = 400

// Load returns a Load if all rows of the tables, if there are any, were loaded.
func (s *Store) Load(ctx context.Context, o store.LoadOptions) (store.Load, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	defer s.gate.RUnlock()
	for _, name := range o.Tables {
		tab, err := s.table(name)
		if err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
		for _, sh := range tab.meta.Shards {
			if sh.last.Load() > 0 || sh.trimmed.Load() > 0 {
				return nil, nil
			}
		}
	}
	return &load{Store: s, s: s, opts: o, rows: map[string]*loaded{}}, nil
}

// Close does nothing.
func (l *load) Close() error { return nil }

// Load is refused.
func (l *load) Load(context.Context, store.LoadOptions) (store.Load, error) {
	return nil, fmt.Errorf("load: %w", store.ErrLoading)
}

// Sweep is refused.
func (l *load) Sweep(context.Context, time.Time, int, store.Prepare) (int, error) {
	return 0, fmt.Errorf("sweep: %w", store.ErrLoading)
}

// Bytes is about how much memory the rows take that have not landed.
func (l *load) Bytes() int { return l.bytes }

// Take returns the stream records of the writes since the last Take, in their order. Their
// positions ascend from 1, and mean nothing to another Load.
func (l *load) Take() []events.Record {
	out := l.records
	l.records = nil
	return out
}

// Get reads rows by key.
func (l *load) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	out := make([]value.Item, len(refs))
	var missing []store.Ref
	var at []int
	for i := range refs {
		row, err := l.find(refs[i])
		if err != nil {
			return nil, fmt.Errorf("get %v: %w", refs[i], err)
		}
		if row == nil {
			missing, at = append(missing, refs[i]), append(at, i)
			continue
		}
		if out[i], err = decodeRow(row.now); err != nil {
			return nil, fmt.Errorf("get %v: %w", refs[i], err)
		}
	}
	if len(missing) == 0 {
		return out, ctx.Err()
	}
	rows, err := l.s.Get(ctx, missing)
	for i, row := range rows {
		out[at[i]] = row
	}
	return out, err
}

// find returns the row of a reference if the Load has written it, else nil. Its key is
// then in l.key.
func (l *load) find(ref store.Ref) (*loaded, error) {
	tab, err := l.s.table(ref.Table)
	if err != nil {
		return nil, err
	}
	if !tab.IsKey(ref.Key) {
		return nil, tab.CheckKey(ref.Key)
	}
	l.key = appendRowKey(l.key[:0], tab, ref.Key)
	return l.rows[string(l.key)], nil
}

// Query is refused.
func (l *load) Query(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, fmt.Errorf("query: %w", store.ErrLoading)
}

// Write executes each write by itself, in order.
func (l *load) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(ws))
	if err := l.s.enter(ctx); err != nil {
		return out, fmt.Errorf("write: %w", err)
	}
	defer l.s.gate.RUnlock()
	for i := range ws {
		w := &ws[i]
		_, row, err := l.write(w, false)
		switch {
		case errors.Is(err, errLoad):
			return out, fmt.Errorf("write: %w", err)
		case err != nil:
			out[i].Err = w.Failed(err)
		}
		if w.Return && (err == nil || errors.Is(err, store.ErrCondition)) {
			out[i].Row = row
		}
	}
	return out, nil
}

// errLoad marks errors that are not of one write alone.
var errLoad = errors.New("loading")

// undo is what takes a write back.
type undo struct {
	key     string
	row     *loaded
	was     []byte
	made    bool
	bytes   int
	records int
	last    uint64
}

// write executes a write. row is the row after it, or the row for which its condition
// failed.
func (l *load) write(w *store.Write, checks bool) (u undo, row value.Item, err error) {
	if l.opts.Refuse != nil {
		if err := l.opts.Refuse(w.Ref); err != nil {
			return u, nil, fmt.Errorf("%w: %w", errLoad, err)
		}
	}
	tab, err := l.s.table(w.Table)
	if err != nil {
		return u, nil, err
	}
	if w.Check && !checks {
		return u, nil, fmt.Errorf("%w: a check belongs in a transaction", store.ErrRefused)
	}
	if err := tab.Validate(w); err != nil {
		return u, nil, err
	}
	l.key = appendRowKey(l.key[:0], tab, w.Key)
	r := l.rows[string(l.key)]
	u = undo{row: r, bytes: l.bytes, records: len(l.records), last: l.last}
	if r == nil {
		u.made = true
		r = &loaded{tab: tab}
		if r.was, row, err = l.stored(); err != nil {
			return u, nil, fmt.Errorf("%w: %w", errLoad, err)
		}
		r.now = r.was
		u.row = r
	} else if row, err = decodeRow(r.now); err != nil {
		return u, nil, fmt.Errorf("%w: %w", errLoad, err)
	}
	u.was = r.now
	if !w.If.Holds(row) {
		return u, row, store.ErrCondition
	}
	next, err := tab.Apply(w, row)
	if err != nil {
		return u, row, err
	}
	if l.opts.Drop != "" && !tab.Stream && next.Has(l.opts.Drop) {
		next = next.Filter(func(name string) bool { return name != l.opts.Drop })
	}
	if err := l.put(&u, w, r, row, next); err != nil {
		return u, row, err
	}
	return u, next, nil
}

// stored reads the row of l.key in the store.
func (l *load) stored() ([]byte, value.Item, error) {
	hash := maphash.Bytes(l.s.seed, l.key)
	stored, item, found, since := l.s.cache.get(hash, l.key)
	if found {
		return stored, item, nil
	}
	r, err := l.s.reader(1)
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	if stored, item, err = r.row(l.key); err == nil {
		l.s.cache.fill(hash, l.key, stored, since)
	}
	return stored, item, err
}

// put replaces a row, whose key is in l.key, by next.
func (l *load) put(u *undo, w *store.Write, r *loaded, row, next value.Item) error {
	var stored []byte
	if next != nil {
		l.scratch = value.AppendItem(l.scratch[:0], next)
		stored = l.scratch
	}
	if (next == nil) == (r.now == nil) && bytes.Equal(stored, r.now) {
		return nil
	}
	if next != nil {
		var err error
		if l.values, err = r.tab.fits(l.values, next, len(stored)); err != nil {
			return err
		}
		stored = append(make([]byte, 0, len(stored)), stored...)
	}
	if u.made {
		u.key = string(l.key)
		l.rows[u.key] = r
		r.id = store.Key{Partition: w.Key.Partition.Clone(), Sort: w.Key.Sort.Clone()}
		l.bytes += loadedBytes + len(l.key)*(1+len(r.tab.indexes)) + len(r.was)
	}
	l.bytes += len(stored)
	if !u.made {
		l.bytes -= len(u.was)
	}
	r.now = stored
	if r.tab.Stream {
		l.record(w, r, row, next)
	}
	return nil
}

// record keeps the stream record of a write for Take.
func (l *load) record(w *store.Write, r *loaded, old, next value.Item) {
	l.last++
	rec := events.Record{Table: r.tab.Name, Keys: r.tab.Item(r.id), Old: old, New: next, Position: events.PositionOf(l.last)}
	if o := w.Origin; o != nil {
		rec.Time, rec.Origin, rec.Expired = o.Time, o.Position, o.Expired
	}
	if rec.Time.IsZero() {
		rec.Time = l.s.opts.Now()
	}
	rec.Time = rec.Time.Round(0).UTC()
	l.records = append(l.records, rec)
}

// Transact executes all the writes or none.
func (l *load) Transact(ctx context.Context, ws []store.Write) error {
	if len(ws) > store.MaxTransact {
		return fmt.Errorf("transact: %w: %d writes, the limit is %d", store.ErrRefused, len(ws), store.MaxTransact)
	}
	if err := l.s.enter(ctx); err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	defer l.s.gate.RUnlock()
	var done []undo
	err := l.transact(ws, &done)
	if err == nil {
		return nil
	}
	for i := len(done) - 1; i >= 0; i-- {
		l.undo(&done[i])
	}
	return fmt.Errorf("transact: %w", err)
}

func (l *load) transact(ws []store.Write, done *[]undo) error {
	if err := l.apart(ws); err != nil {
		return err
	}
	size := 0
	for i := range ws {
		w := &ws[i]
		u, row, err := l.write(w, true)
		if err != nil {
			return w.Failed(err)
		}
		*done = append(*done, u)
		old, err := decodeRow(u.was)
		if err != nil {
			return err
		}
		size += max(old.Size(), row.Size())
		if err := store.CheckTransact(size); err != nil {
			return err
		}
	}
	return nil
}

// apart refuses writes that can never happen, and a transaction with two writes of one row.
func (l *load) apart(ws []store.Write) error {
	met := map[string]bool{}
	for i := range ws {
		tab, err := l.s.table(ws[i].Table)
		if err == nil {
			err = tab.Validate(&ws[i])
		}
		if err != nil {
			return ws[i].Failed(err)
		}
		l.key = appendRowKey(l.key[:0], tab, ws[i].Key)
		met[string(l.key)] = true
	}
	if len(met) < len(ws) {
		return fmt.Errorf("%w: a key occurs twice", store.ErrRefused)
	}
	return nil
}

func (l *load) undo(u *undo) {
	u.row.now = u.was
	if u.key != "" {
		delete(l.rows, u.key)
	}
	l.bytes, l.records, l.last = u.bytes, l.records[:u.records], u.last
}
