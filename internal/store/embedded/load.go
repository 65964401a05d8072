package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/events"
	"weir/internal/parallel"
	"weir/internal/store"
	"weir/internal/value"
)

// load is the store's Load. Its rows that differ from the store's are in memory, as they
// are stored.
type load struct {
	store.Store // for streams
	s           *Store
	opts        store.LoadOptions

	byID      map[uint16]*table
	rows      map[string]*loaded // by key
	parts     map[string]*part   // of tables without a stream, by the beginning of the keys of a partition
	below     *pebble.Iterator   // the store's rows, nil before the first query of a window
	bytes     int
	records   []events.Record
	first     uint64 // the last number before the window
	last      uint64 // the number of the last record
	known     []*loaded
	staging   parallel.Beside    // works on staged
	staged    staged             // of which it is, while it runs
	spare     map[string]*loaded // empty, for writes after the next Stage
	scratches int                // files that were made to sort in

	key, scratch []byte
	restore      func() // the caches of the store
}

// loaded is a row that a Load has read or written.
type loaded struct {
	tab      *table
	id       store.Key
	was, now []byte // as the store has it, and as the Load has it; nil for no row
	written  bool

	item  value.Item // of now, while known is set
	known bool
}

// loadedBytes is about the memory of a row beside its key and images.
const loadedBytes = 400

// mostKnown is how many rows are kept as items, too.
const mostKnown = 4096

// Load returns a Load if all rows of the tables, if there are any, were loaded.
func (s *Store) Load(ctx context.Context, o store.LoadOptions) (store.Load, error) {
	if err := s.beginOperation(ctx); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	defer s.gate.RUnlock()
	for _, name := range o.Tables {
		tab, err := s.tableNamed(name)
		if err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
		for _, sh := range tab.meta.Shards {
			if sh.last.Load() > 0 || sh.trimmed.Load() > 0 {
				return nil, nil
			}
		}
	}
	l := &load{
		Store: s, s: s, opts: o, rows: map[string]*loaded{}, spare: map[string]*loaded{}, parts: map[string]*part{}, byID: map[uint16]*table{},
	}
	for _, tab := range s.tables {
		l.byID[tab.id] = tab
	}
	l.restore = sync.OnceFunc(s.lendMemory())
	l.clearStaged()
	return l, nil
}

// lendMemory leaves the memory of memtables, which are not written while rows land, and of the row cache to a
// Load, which keeps its own reads. The function that it returns takes it back.
func (s *Store) lendMemory() (takeBack func()) {
	s.cache.beginAll()
	s.cache.endAll()
	return s.po.Cache.Reserve(2 * int(s.opts.MemTableBytes))
}

// Close gives up rows that have not landed. It may be called again.
func (l *load) Close() error {
	l.restore()
	return l.giveUp()
}

// AppendName appends the key under which the row is stored.
func (l *load) AppendName(b []byte, ref store.Ref) ([]byte, error) {
	tab, err := l.s.tableNamed(ref.Table)
	if err != nil {
		return b, err
	}
	return appendRowKey(b, tab, ref.Key), nil
}

// Named reads a name of AppendName.
func (l *load) Named(name []byte) (store.Ref, error) {
	if len(name) < spaceLen {
		return store.Ref{}, errKeyForm
	}
	tab := l.byID[uint16(name[1])<<8|uint16(name[2])]
	if tab == nil {
		return store.Ref{}, errKeyForm
	}
	key, _, err := takeKey(name[spaceLen:], &tab.Key)
	return store.Ref{Table: tab.Name, Key: key}, err
}

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
// positions are behind all that the store has given, and it gives greater ones once they landed.
func (l *load) Take() []events.Record {
	out := l.records
	l.records = nil
	return out
}

// Get reads rows by key, as the load has written them, or as the store has them. The rows that it reads stay in
// memory until the next Stage or Land.
func (l *load) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if err := l.s.beginOperation(ctx); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	defer l.s.gate.RUnlock()
	var f fetching
	rows := make([]*loaded, len(refs))
	for i := range refs {
		tab, err := l.s.tableNamed(refs[i].Table)
		if err != nil {
			return nil, fmt.Errorf("get: %w", err)
		}
		if err := tab.CheckKey(refs[i].Key); err == nil {
			l.wantRow(&f, tab, refs[i].Key, &rows[i])
		} else if !tab.IsKey(refs[i].Key) {
			return nil, fmt.Errorf("get %v: %w", refs[i], err)
		}
	}
	if err := l.fetchRows(&f); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	out := make([]value.Item, len(refs))
	for i, r := range rows {
		if r != nil {
			var err error
			if out[i], err = l.itemOf(r); err != nil {
				return nil, fmt.Errorf("get %v: %w", refs[i], err)
			}
		}
	}
	return out, nil
}

// fetching is rows that are about to be read from the store together.
type fetching struct {
	rows []fetched
	keep bool // also rows that do not exist
}

// fetched is a row that the load has to read from the store, with the table and key that ask for
// it, and where it is asked for.
type fetched struct {
	key []byte
	tab *table
	id  store.Key
	to  **loaded
}

// wantRow puts a row into to, now or when it is fetched; nil for a row that does not exist, unless those are
// kept.
func (l *load) wantRow(f *fetching, tab *table, id store.Key, to **loaded) {
	l.key = appendRowKey(l.key[:0], tab, id)
	if *to = l.rows[string(l.key)]; *to != nil {
		return
	}
	switch {
	case l.s.cache.keys.mayHave(maphash.Bytes(l.s.seed, l.key)):
		f.rows = append(f.rows, fetched{bytes.Clone(l.key), tab, id, to})
	case f.keep:
		*to = l.rememberRow(l.key, tab, id, nil)
	}
}

// fetchRows reads rows from the store.
func (l *load) fetchRows(f *fetching) error {
	if len(f.rows) == 0 {
		return nil
	}
	slices.SortFunc(f.rows, func(a, b fetched) int { return bytes.Compare(a.key, b.key) })
	r, err := l.s.newReader(len(f.rows))
	if err != nil {
		return err
	}
	defer r.closeReader()
	for i := range f.rows {
		m := &f.rows[i]
		if i > 0 && bytes.Equal(m.key, f.rows[i-1].key) {
			*m.to = *f.rows[i-1].to
			continue
		}
		found, err := r.get(m.key)
		if err != nil {
			return fmt.Errorf("table %s, key %x: %w", m.tab.Name, m.key, err)
		}
		stored := bytes.Clone(found)
		if stored != nil || f.keep {
			*m.to = l.rememberRow(m.key, m.tab, m.id, stored)
		}
	}
	return nil
}

// rememberRow keeps a row as the store has it.
func (l *load) rememberRow(key []byte, tab *table, id store.Key, stored []byte) *loaded {
	id = store.Key{Partition: id.Partition.Clone(), Sort: id.Sort.Clone()}
	name, r := string(key), &loaded{tab: tab, id: id, was: stored, now: stored}
	l.rows[name] = r
	if !tab.Stream && tab.Key.Sort.Name != "" {
		l.partOf(name, id).add(name)
	}
	l.bytes += loadedBytes + len(key)*(1+len(tab.indexes)) + len(stored)
	return r
}

// itemOf returns a row as an item.
func (l *load) itemOf(r *loaded) (value.Item, error) {
	if r.known {
		return r.item, nil
	}
	item, err := decodeRow(r.now)
	if err == nil {
		l.keepItem(r, item)
	}
	return item, err
}

// keepItem keeps the item of a row for a while. It may share memory with a whole recording.
func (l *load) keepItem(r *loaded, item value.Item) {
	if !r.known {
		if len(l.known) >= mostKnown {
			l.forgetDecoded()
		}
		l.known = append(l.known, r)
	}
	r.item, r.known = item, true
}

// forgetDecoded drops the decoded rows of the call that has ended. Their changed forms stay in the
// window, in stored form.
func (l *load) forgetDecoded() {
	for _, r := range l.known {
		r.item, r.known = nil, false
	}
	clear(l.known)
	l.known = l.known[:0]
}

// Write executes each write by itself, in order. Nothing of it is in the store before Land. An error of the
// whole call means that the load has to be given up; the fault of one write is in its Outcome.
func (l *load) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(ws))
	if err := l.s.beginOperation(ctx); err != nil {
		return out, fmt.Errorf("write: %w", err)
	}
	defer l.s.gate.RUnlock()
	rows, err := l.fetchAll(ws)
	if err != nil {
		return out, fmt.Errorf("write: %w", err)
	}
	for i := range ws {
		w := &ws[i]
		_, row, err := l.executeWrite(w, rows[i], false)
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

// fetchAll reads the rows of writes, nil for one of no table or with a wrong key.
func (l *load) fetchAll(ws []store.Write) ([]*loaded, error) {
	f, rows := fetching{keep: true}, make([]*loaded, len(ws))
	for i := range ws {
		if tab := l.s.tables[ws[i].Table]; tab != nil && tab.CheckKey(ws[i].Key) == nil {
			l.wantRow(&f, tab, ws[i].Key, &rows[i])
		}
	}
	return rows, l.fetchRows(&f)
}

// errLoad marks errors that are not of one write alone.
var errLoad = errors.New("loading")

// undo takes a write back.
type undo struct {
	row     *loaded
	was     []byte
	written bool
	bytes   int
	records int
	last    uint64
}

// executeWrite executes a write on r, its row as fetchAll returns it. row is the row after it, or the row for which its
// condition failed.
func (l *load) executeWrite(w *store.Write, r *loaded, checks bool) (u undo, row value.Item, err error) {
	if l.opts.Refuse != nil {
		if err := l.opts.Refuse(w.Ref); err != nil {
			return u, nil, fmt.Errorf("%w: %w", errLoad, err)
		}
	}
	tab, err := l.s.tableNamed(w.Table)
	if err != nil {
		return u, nil, err
	}
	if w.Check && !checks {
		return u, nil, fmt.Errorf("%w: a check belongs in a transaction", store.ErrRefused)
	}
	if err := tab.Validate(w); err != nil {
		return u, nil, err
	}
	if row, err = l.itemOf(r); err != nil {
		return u, nil, fmt.Errorf("%w: %w", errLoad, err)
	}
	u = undo{row: r, was: r.now, written: r.written, bytes: l.bytes, records: len(l.records), last: l.last}
	if !w.If.Holds(row) {
		return u, row, store.ErrCondition
	}
	next, err := tab.Apply(w, row)
	if err != nil {
		return u, row, err
	}
	if l.opts.Drop != nil && !tab.Stream && next != nil {
		next = l.opts.Drop(next)
	}
	if err := l.putRow(w, r, row, next); err != nil {
		return u, row, err
	}
	return u, next, nil
}

// putRow replaces a row by next.
func (l *load) putRow(w *store.Write, r *loaded, row, next value.Item) error {
	var stored []byte
	if next != nil {
		l.scratch = value.AppendItem(l.scratch[:0], next)
		stored = l.scratch
	}
	if (next == nil) == (r.now == nil) && bytes.Equal(stored, r.now) {
		return nil
	}
	if next != nil {
		if err := r.tab.checkRow(next, len(stored)); err != nil {
			return err
		}
		stored = append(make([]byte, 0, len(stored)), stored...)
	}
	l.bytes += len(stored)
	if r.written {
		l.bytes -= len(r.now)
	}
	r.now, r.written = stored, true
	l.keepItem(r, next)
	if r.tab.Stream && w != nil && (l.opts.Silent == nil || !l.opts.Silent(w.Ref, row, next)) {
		l.last++
		rec := l.s.recordOf(w, r.tab, row, next)
		rec.Position = events.PositionOf(l.last)
		l.records = append(l.records, rec)
	}
	return nil
}

// Fits returns why the store refuses a row, nil if it takes it.
func (l *load) Fits(ref store.Ref, row value.Item, stored int) error {
	tab, err := l.s.tableNamed(ref.Table)
	if err != nil {
		return err
	}
	if err := tab.Validate(&store.Write{Ref: ref, Put: row}); err != nil {
		return err
	}
	return tab.checkRow(row, stored)
}

// Place puts or removes a row without a record.
func (l *load) Place(ref store.Ref, row value.Item) error {
	tab, err := l.s.tableNamed(ref.Table)
	if err != nil {
		return fmt.Errorf("place %v: %w", ref, err)
	}
	l.key = appendRowKey(l.key[:0], tab, ref.Key)
	r := l.rows[string(l.key)]
	if r == nil { // it was read, and not there
		r = l.rememberRow(l.key, tab, ref.Key, nil)
	}
	if err := l.putRow(nil, r, nil, row); err != nil {
		return fmt.Errorf("place %v: %w: %w", ref, store.ErrLoading, err)
	}
	return nil
}

// Transact executes all the writes or none.
func (l *load) Transact(ctx context.Context, ws []store.Write) error {
	if len(ws) > store.MaxTransact {
		return fmt.Errorf("transact: %w: %d writes, the limit is %d", store.ErrRefused, len(ws), store.MaxTransact)
	}
	if err := l.s.beginOperation(ctx); err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	defer l.s.gate.RUnlock()
	var done []undo
	err := l.writeAll(ws, &done)
	if err == nil {
		return nil
	}
	for i := len(done) - 1; i >= 0; i-- {
		l.undoWrite(&done[i])
	}
	return fmt.Errorf("transact: %w", err)
}

// writeAll does the writes in order and notes in done how to undo each. After an error the caller
// undoes those that are in done, so none of them is seen.
func (l *load) writeAll(ws []store.Write, done *[]undo) error {
	if err := l.refuseImpossible(ws); err != nil {
		return err
	}
	rows, err := l.fetchAll(ws)
	if err != nil {
		return err
	}
	size := 0
	for i := range ws {
		w := &ws[i]
		u, row, err := l.executeWrite(w, rows[i], true)
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

// refuseImpossible refuses writes that can never happen, and a transaction with two writes of one row.
func (l *load) refuseImpossible(ws []store.Write) error {
	met := map[string]bool{}
	for i := range ws {
		tab, err := l.s.tableNamed(ws[i].Table)
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

// undoWrite takes one write back. Writes are undone in reverse order.
func (l *load) undoWrite(u *undo) {
	r := u.row
	r.now, r.written, r.known, r.item = u.was, u.written, false, nil
	l.known = slices.DeleteFunc(l.known, func(k *loaded) bool { return k == r })
	l.bytes, l.records, l.last = u.bytes, l.records[:u.records], u.last
}
