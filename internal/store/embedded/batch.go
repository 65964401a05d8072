package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// batch is the writes that are read, checked and committed together, with all
// the memory that takes; it is used again and again. The order of calls:
//
//	add…  begin  (step… commit)…  end  release
//
// Nothing is in the store before commit, and a crash leaves each commit whole or
// not at all. Rows are locked from begin to end.
type batch struct {
	s      *Store
	checks bool // Check is allowed

	keys    arena // row keys
	rows    arena // stored forms of rows
	writes  []*store.Write
	slotOf  []*slot // of each write; nil where add failed
	slots   []*slot // each row once, by key
	pool    []*slot
	locks   lockSet
	ticket  *ticket
	changes *pebble.Batch
	record  change
	dirty   []*slot
	pending int // bytes of dirty rows
	scratch [2][]byte
}

// slot is a row that the batch deals with.
type slot struct {
	tab *table
	key []byte // in the store
	id  store.Key

	stored     []byte // as it is in the store, nil for none
	now        []byte // as the writes so far leave it
	storedItem value.Item
	nowItem    value.Item
	isDirty    bool
	shard      *shard
}

// errTooMuch says that the batch reads more than a batch should hold.
var errTooMuch = errors.New("the batch is too large")

func newBatch(s *Store) *batch {
	return &batch{s: s, changes: s.db.NewBatch(pebble.WithInitialSizeBytes(64<<10), pebble.WithMaxRetainedSizeBytes(2*chunkBytes))}
}

// add takes a write on. An error is the write's own, and the batch is without it.
func (b *batch) add(w *store.Write) error {
	b.writes = append(b.writes, w)
	b.slotOf = append(b.slotOf, nil)
	tab, err := b.s.table(w.Table)
	if err != nil {
		return err
	}
	if w.Check && !b.checks {
		return fmt.Errorf("%w: a check belongs in a transaction", store.ErrRefused)
	}
	if err := tab.Validate(w); err != nil {
		return err
	}
	sl := b.newSlot()
	sl.tab, sl.id = tab, w.Key
	b.scratch[0] = appendRowKey(b.scratch[0][:0], tab, w.Key)
	sl.key = b.keys.copy(b.scratch[0])
	b.slotOf[len(b.slotOf)-1] = sl
	return nil
}

func (b *batch) newSlot() *slot {
	n := len(b.slots)
	if n == len(b.pool) {
		b.pool = append(b.pool, &slot{})
	}
	sl := b.pool[n]
	*sl = slot{}
	b.slots = append(b.slots, sl)
	return sl
}

// begin locks and reads the rows. With bounded it may answer errTooMuch; the batch
// then holds no locks.
func (b *batch) begin(bounded bool) error {
	b.fold()
	for _, sl := range b.slots {
		b.s.locks.add(&b.locks, sl.key)
	}
	b.s.locks.lock(&b.locks)
	err := b.read(bounded)
	if err != nil {
		b.s.locks.unlock(&b.locks)
		return err
	}
	b.ticket = b.s.numbers.reserve(len(b.writes))
	return nil
}

// fold leaves one slot for each key, in key order.
func (b *batch) fold() {
	slices.SortStableFunc(b.slots, func(x, y *slot) int { return bytes.Compare(x.key, y.key) })
	kept := b.slots[:0]
	var same map[*slot]*slot
	for _, sl := range b.slots {
		if n := len(kept); n > 0 && bytes.Equal(kept[n-1].key, sl.key) {
			if same == nil {
				same = map[*slot]*slot{}
			}
			same[sl] = kept[n-1]
			continue
		}
		kept = append(kept, sl)
	}
	b.slots = kept
	for i, sl := range b.slotOf {
		if first := same[sl]; first != nil {
			b.slotOf[i] = first
		}
	}
}

func (b *batch) read(bounded bool) error {
	r, err := b.s.reader(len(b.slots))
	if err != nil {
		return err
	}
	defer r.close()
	for _, sl := range b.slots {
		stored, err := r.get(sl.key)
		if err != nil {
			return sl.failed(err)
		}
		if stored == nil {
			continue
		}
		sl.stored = b.rows.copy(stored)
		if sl.storedItem, err = decodeRow(sl.stored); err != nil {
			return sl.failed(err)
		}
		sl.now, sl.nowItem = sl.stored, sl.storedItem
		if bounded && b.rows.used > chunkBytes {
			return errTooMuch
		}
	}
	return nil
}

func (sl *slot) failed(err error) error {
	return fmt.Errorf("%v: %w", store.Ref{Table: sl.tab.Name, Key: sl.id}, err)
}

// step does write i to its slot and adds its stream record. What keeps the write
// from happening is in the outcome; the error is the store's.
func (b *batch) step(i int, out *store.Outcome) error {
	w, sl := b.writes[i], b.slotOf[i]
	err := b.try(w, sl)
	if err != nil {
		out.Err = w.Failed(err)
	}
	if !w.Return || err != nil && !errors.Is(err, store.ErrCondition) {
		return nil
	}
	out.Row, err = decodeRow(bytes.Clone(sl.now))
	return err
}

func (b *batch) try(w *store.Write, sl *slot) error {
	if !w.If.Holds(sl.nowItem) {
		return store.ErrCondition
	}
	next, err := sl.tab.Apply(w, sl.nowItem)
	if err != nil || w.Check {
		return err
	}
	var stored []byte
	if next != nil {
		b.scratch[0] = value.AppendItem(b.scratch[0][:0], next)
		stored = b.scratch[0]
	}
	if (next == nil) == (sl.now == nil) && bytes.Equal(stored, sl.now) {
		return nil
	}
	if next != nil {
		if err := check(sl.tab, next, len(stored)); err != nil {
			return err
		}
		stored = b.rows.copy(stored)
	}
	b.emit(w, sl, stored)
	sl.now, sl.nowItem = stored, next
	b.touch(sl)
	return nil
}

// check refuses a row for what only the whole row shows.
func check(tab *table, row value.Item, stored int) error {
	// DynamoDB's count is at the most about twice the stored form.
	if stored > store.MaxItemBytes/3 {
		if err := store.CheckSize(row); err != nil {
			return err
		}
	}
	for _, ix := range tab.indexes {
		if ix.isExpiry() {
			continue
		}
		if _, _, err := store.IndexEntry(&tab.Table, &ix.Index, row); err != nil {
			return err
		}
	}
	return nil
}

// touch remembers that the row is to be written.
func (b *batch) touch(sl *slot) {
	b.pending += len(sl.now)
	if !sl.isDirty {
		sl.isDirty = true
		b.dirty = append(b.dirty, sl)
	}
}

// emit adds the stream record of a change from what the row is now.
func (b *batch) emit(w *store.Write, sl *slot, next []byte) {
	if !sl.tab.Stream {
		return
	}
	c := &b.record
	*c = change{old: sl.now, new: next}
	if o := w.Origin; o != nil {
		c.time, c.origin, c.expired = o.Time, o.Position, o.Expired
	}
	if c.time.IsZero() {
		c.time = b.s.opts.Now()
	}
	if sl.shard == nil {
		sl.shard = sl.tab.shardOf(sl.id)
	}
	b.scratch[0] = appendRecord(b.scratch[0][:0], c)
	op := b.changes.SetDeferred(recordKeyLen, len(b.scratch[0]))
	appendRecordKey(op.Key[:0], sl.shard.ID, b.ticket.take(sl.tab))
	copy(op.Value, b.scratch[0])
	_ = op.Finish() // fails only on indexed batches
}

func (b *batch) size() int { return b.changes.Len() + b.pending }

// commit writes what the steps so far have changed, each row once.
func (b *batch) commit() error {
	for _, sl := range b.dirty {
		b.put(sl)
	}
	b.dirty, b.pending = b.dirty[:0], 0
	if b.changes.Empty() {
		return nil
	}
	err := b.changes.Commit(pebble.NoSync)
	b.changes.Reset()
	return err
}

func (b *batch) put(sl *slot) {
	for _, ix := range sl.tab.indexes {
		b.reindex(ix, sl)
	}
	var op *pebble.DeferredBatchOp
	if sl.now == nil {
		op = b.changes.DeleteDeferred(len(sl.key))
	} else {
		op = b.changes.SetDeferred(len(sl.key), len(sl.now))
		copy(op.Value, sl.now)
	}
	copy(op.Key, sl.key)
	_ = op.Finish()
	sl.stored, sl.storedItem, sl.isDirty = sl.now, sl.nowItem, false
}

// reindex moves a row's entry in an index from where the store has it to where it
// belongs now.
func (b *batch) reindex(ix *index, sl *slot) {
	was, had := ix.entry(&sl.tab.Table, sl.storedItem)
	is, has := ix.entry(&sl.tab.Table, sl.nowItem)
	if had == has && value.Equal(was.Partition, is.Partition) && value.Equal(was.Sort, is.Sort) {
		return
	}
	if had {
		b.scratch[0] = appendEntryKey(b.scratch[0][:0], ix, was, sl.id)
		_ = b.changes.Delete(b.scratch[0], nil)
	}
	if has {
		b.scratch[0] = appendEntryKey(b.scratch[0][:0], ix, is, sl.id)
		_ = b.changes.Set(b.scratch[0], nil, nil)
	}
}

// entry is the row's key in the index. A row that was there before the index and
// has a wrong value in its key has no entry.
func (ix *index) entry(t *store.Table, row value.Item) (store.Key, bool) {
	if row == nil {
		return store.Key{}, false
	}
	if ix.isExpiry() {
		return expiryOf(&ix.Index, row)
	}
	k, ok, err := store.IndexEntry(t, &ix.Index, row)
	if !ok || err != nil {
		return store.Key{}, false
	}
	return k, true
}

// end lets go of the rows and lets readers see what was committed.
func (b *batch) end() {
	b.s.locks.unlock(&b.locks)
	b.s.numbers.publish(b.ticket)
}

// release gives the batch back for the next one.
func (b *batch) release() {
	b.keys.reset()
	b.rows.reset()
	clear(b.writes)
	for _, sl := range b.pool {
		*sl = slot{}
	}
	b.writes, b.slotOf, b.slots, b.dirty = b.writes[:0], b.slotOf[:0], b.slots[:0], b.dirty[:0]
	b.locks, b.ticket, b.pending, b.checks = lockSet{}, nil, 0, false
	b.record = change{}
	b.changes.Reset()
	b.s.batches.Put(b)
}
