package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// batch is the writes that are read, checked and committed together. The order of calls:
//
//	add…  begin  (step… commit)…  end  release
//
// Nothing is in the store before commitSteps, and a crash leaves each commit whole or not at
// all. The rows are locked from begin to end.
type batch struct {
	s      *Store
	checks bool // writes with Check are allowed

	writes  []*store.Write
	slotOf  []*slot // of each write; nil where add failed
	slots   []*slot // one for each row, by key
	pool    []slot  // of slots, with room for one of each write
	locks   lockSet
	ticket  *ticket
	changes *pebble.Batch
	records []tailRecord // of changes that are not committed yet
	dirty   []*slot
	pending int  // bytes of dirty rows
	unknown bool // a commit failed, so the stored rows are unknown
	scratch []byte
}

// slot is a row of the batch.
// There is one for each row, however many writes the batch has for it.
// An item and its stored form always belong together: both are those of the store, or both those
// after the writes so far.
type slot struct {
	tab *table
	key []byte // in the key-value store
	id  store.Key

	stored     []byte // as it is in the store; nil if there is no row
	now        []byte // as the writes so far leave it
	storedItem value.Item
	nowItem    value.Item
	err        error // the row cannot be read
	isDirty    bool
	isCached   bool // the cache has stored
	isBegun    bool // cache.begin was called for the row
	hash       uint64
	shard      *shard
}

// errTooMuch says that the batch reads more bytes than one batch may hold.
var errTooMuch = errors.New("the batch is too large")

// newBatch returns an empty batch for so many writes, which the caller releases.
func newBatch(s *Store, writes int) *batch {
	changes := s.db.NewBatch(pebble.WithInitialSizeBytes(64<<10), pebble.WithMaxRetainedSizeBytes(2*chunkBytes))
	return &batch{s: s, changes: changes, pool: make([]slot, 0, writes), writes: make([]*store.Write, 0, writes), slotOf: make([]*slot, 0, writes)}
}

// addWrite adds a write. After an error, which concerns only this write, the batch does not
// have the write.
// Writes keep their order, and their numbers in step are those of the calls of add, with those that
// failed.
func (b *batch) addWrite(w *store.Write) error {
	b.writes = append(b.writes, w)
	b.slotOf = append(b.slotOf, nil)
	tab, err := b.s.tableNamed(w.Table)
	if err != nil {
		return err
	}
	if w.Check && !b.checks {
		return fmt.Errorf("%w: a check belongs in a transaction", store.ErrRefused)
	}
	if err := tab.Validate(w); err != nil {
		return err
	}
	b.pool = append(b.pool, slot{tab: tab, id: w.Key, key: appendRowKey(nil, tab, w.Key)})
	sl := &b.pool[len(b.pool)-1]
	b.slots, b.slotOf[len(b.slotOf)-1] = append(b.slots, sl), sl
	return nil
}

// lockAndRead locks and reads the rows. If bounded is set it may return errTooMuch. After an
// error the batch holds no locks.
func (b *batch) lockAndRead(bounded bool) error {
	b.mergeSlots()
	for _, sl := range b.slots {
		sl.hash = maphash.Bytes(b.s.seed, sl.key)
		b.locks.add(sl.hash)
	}
	b.s.locks.lockAll(&b.locks)
	err := b.readRows(bounded)
	if err != nil {
		b.s.locks.unlockAll(&b.locks)
		return err
	}
	b.ticket = b.s.numbers.reserve(len(b.writes))
	return nil
}

// mergeSlots merges the slots so that each key has one, in key order.
func (b *batch) mergeSlots() {
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

// readRows reads the rows. A row that cannot be read is an error only of its own writes.
func (b *batch) readRows(bounded bool) error {
	var r reader
	defer r.closeReader()
	held := 0
	for i, sl := range b.slots {
		if sl.stored, sl.storedItem, sl.isCached, _ = b.s.cache.get(sl.hash, sl.key); !sl.isCached {
			if r.db == nil {
				var err error
				if r, err = b.s.newReader(len(b.slots) - i); err != nil {
					return err
				}
			}
			if sl.stored, sl.storedItem, sl.err = r.readRow(sl.key); sl.err != nil {
				continue
			}
		}
		sl.now, sl.nowItem = sl.stored, sl.storedItem
		if held += len(sl.stored); bounded && held > chunkBytes {
			return errTooMuch
		}
	}
	return nil
}

// applyStep applies write i to its slot and adds its stream record. A reason against
// this write is in the outcome.
// Writes of one batch see the effects of the ones before it in the batch, committed or not.
func (b *batch) applyStep(i int, out *store.Outcome) {
	w, sl := b.writes[i], b.slotOf[i]
	err := b.tryWrite(w, sl)
	if err != nil {
		out.Err = w.Failed(err)
	}
	if w.Return && (err == nil || errors.Is(err, store.ErrCondition)) {
		out.Row = sl.nowItem
	}
}

// tryWrite applies a write to its slot if its condition holds. An error is the write's own;
// the slot is then unchanged.
func (b *batch) tryWrite(w *store.Write, sl *slot) error {
	if sl.err != nil {
		return sl.err
	}
	if !w.If.Holds(sl.nowItem) {
		return store.ErrCondition
	}
	next, err := sl.tab.Apply(w, sl.nowItem)
	if err != nil || w.Check {
		return err
	}
	var stored []byte
	if next != nil {
		b.scratch = value.AppendItem(b.scratch[:0], next)
		stored = b.scratch
	}
	if (next == nil) == (sl.now == nil) && bytes.Equal(stored, sl.now) {
		return nil
	}
	if next != nil {
		if err := sl.tab.checkRow(next, len(stored)); err != nil {
			return err
		}
		stored = bytes.Clone(stored)
	}
	b.emitRecord(w, sl, next)
	sl.now, sl.nowItem = stored, next
	if b.pending += len(stored); !sl.isDirty {
		sl.isDirty = true
		b.dirty = append(b.dirty, sl)
	}
	return nil
}

// emitRecord adds the stream record of the change from the current row to next.
// Tables without a stream have none. The record is in the same batch of Pebble as its row, so a crash leaves both or neither; it
// shares the items of the slot, which must not change after.
func (b *batch) emitRecord(w *store.Write, sl *slot, next value.Item) {
	if !sl.tab.Stream {
		return
	}
	r := b.s.recordOf(w, sl.tab, sl.nowItem, next)
	if sl.shard == nil {
		sl.shard = sl.tab.shardOf(sl.id)
	}
	seq := b.ticket.take(sl.tab)
	r.Position = events.PositionOf(seq)
	sl.shard.noteNumber(seq)
	b.scratch = appendRecord(b.scratch[:0], &r)
	op := b.changes.SetDeferred(recordKeyLen, len(b.scratch))
	appendRecordKey(op.Key[:0], sl.tab, sl.shard.ID, seq)
	copy(op.Value, b.scratch)
	_ = op.Finish() // fails only on indexed batches
	if b.records == nil {
		b.records = make([]tailRecord, 0, len(b.writes))
	}
	b.records = append(b.records, tailRecord{
		seq: seq, shard: sl.shard, bytes: tailOverhead + len(b.scratch) + attrOverhead*(len(sl.nowItem)+len(next)), record: r,
	})
}

// commitSize is how many bytes a commit would write, without index entries.
func (b *batch) commitSize() int { return b.changes.Len() + b.pending }

// commitSteps writes the changes of the steps so far, each row once. A crash leaves the
// commit whole or not at all.
// It does not sync. After an error it is unknown whether the changes are in the store, and end
// drops the rows from the cache.
func (b *batch) commitSteps() error {
	for _, sl := range b.dirty {
		b.putSlot(sl)
	}
	b.dirty, b.pending = b.dirty[:0], 0
	if b.changes.Empty() {
		return nil
	}
	b.unknown = true
	err := b.changes.Commit(pebble.NoSync)
	b.unknown = err != nil
	b.changes.Reset()
	if err == nil {
		b.s.tail.addRecords(b.records)
		b.records = nil
	}
	return err
}

// putSlot adds a slot's row and its index entries to the Pebble batch.
func (b *batch) putSlot(sl *slot) {
	if !sl.isBegun {
		sl.isBegun = true
		b.s.cache.beginChange(sl.hash, sl.key)
	}
	b.replaceEntries(sl)
	var op *pebble.DeferredBatchOp
	if sl.now == nil {
		op = b.changes.DeleteDeferred(len(sl.key))
	} else {
		op = b.changes.SetDeferred(len(sl.key), len(sl.now))
		copy(op.Value, sl.now)
	}
	copy(op.Key, sl.key)
	_ = op.Finish()
	sl.stored, sl.storedItem = sl.now, sl.nowItem
	sl.isDirty, sl.isCached = false, false
}

// replaceEntries replaces the row's index entries in the store by those that belong to the row
// now.
func (b *batch) replaceEntries(sl *slot) {
	if len(sl.tab.indexes) == 0 {
		return
	}
	b.scratch, _ = sl.tab.eachEntry(sl.id, sl.storedItem, sl.nowItem, b.scratch, func(key []byte, gone bool) error {
		if gone {
			return b.changes.Delete(key, nil)
		}
		return b.changes.Set(key, nil, nil)
	})
}

// unlockRows unlocks the rows and makes the committed records visible to readers. The cache
// gets the rows as they are in the store; it drops them if a failed commit leaves that
// unknown.
func (b *batch) unlockRows() {
	for _, sl := range b.slots {
		switch {
		case b.unknown || sl.err != nil:
			b.s.cache.drop(sl.hash, sl.key)
		case !sl.isCached:
			b.s.cache.putRow(sl.hash, sl.key, sl.stored)
		}
		if sl.isBegun {
			b.s.cache.endChange(sl.hash)
		}
	}
	if b.unknown {
		b.s.tail.noteLost(b.ticket.next - 1)
	}
	b.s.locks.unlockAll(&b.locks)
	b.s.numbers.publishTicket(b.ticket)
}

// releaseMemory gives the memory of the changes back.
func (b *batch) releaseMemory() { _ = b.changes.Close() }
