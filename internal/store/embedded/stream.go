package embedded

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"weir/internal/events"
	"weir/internal/seq"
	"weir/internal/store"
)

// readBytes limits a page of a stream, in stored form.
const readBytes = store.PageBytes

// shardOf is the open shard for a row's partition.
func (t *table) shardOf(k store.Key) *shard {
	var buf [128]byte
	h := hashPartition(appendKeyValue(buf[:0], k.Partition))
	return seq.Find(t.meta.Shards, func(s *shard) bool { return !s.Closed && s.Low <= h && h <= s.High }) // not reached: open shards cover every hash
}

// hashPartition spreads partition keys over shards and must never change: FNV-1a, mixed once
// more because its high bits are poor for short keys.
func hashPartition(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h
}

// shardName is the name of a shard as readers see it; "" for the parent of a shard that has none.
func shardName(id uint32) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("shard-%06d", id)
}

// Shards lists a table's shards, parents before children. Those that were
// divided stay on the list, closed, so a reader that stood in one finds its children.
func (s *Store) Shards(ctx context.Context, name string) ([]store.Shard, error) {
	if err := s.beginOperation(ctx); err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	defer s.gate.RUnlock()
	tab, err := s.tableNamed(name)
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	out := make([]store.Shard, 0, len(tab.meta.Shards))
	for _, sh := range tab.meta.Shards {
		out = append(out, store.Shard{ID: shardName(sh.ID), Parent: shardName(sh.Parent), Closed: sh.Closed})
	}
	return out, nil
}

// findShard finds a table's shard by its name.
func (s *Store) findShard(tableName, name string) (*table, *shard, error) {
	tab, err := s.tableNamed(tableName)
	if err != nil {
		return nil, nil, err
	}
	for _, sh := range tab.meta.Shards {
		if shardName(sh.ID) == name {
			return tab, sh, nil
		}
	}
	return nil, nil, fmt.Errorf("table %s has no shard %q: %w", tableName, name, store.ErrNoTable)
}

// Read returns committed records, durable or not. Call Sync before passing them to
// another system.
func (s *Store) Read(ctx context.Context, tableName, shardName string, after events.Position, limit int) (store.Records, error) {
	out, err := s.readShard(ctx, tableName, shardName, after, limit)
	return out, store.Wrap(err, "reading the stream")
}

// readShard is Read, with the store kept open meanwhile. End is true with each page that reaches
// the last record of a closed shard, an empty one too.
func (s *Store) readShard(ctx context.Context, tableName, shardName string, after events.Position, limit int) (out store.Records, err error) {
	if err := s.beginOperation(ctx); err != nil {
		return out, err
	}
	defer s.gate.RUnlock()
	tab, sh, err := s.findShard(tableName, shardName)
	if err != nil {
		return out, err
	}
	page, more, err := s.readRecords(tab, sh, after, limit)
	if err != nil {
		return out, fmt.Errorf("table %s, shard %s: %w", tab.Name, shardName, err)
	}
	return store.Records{Records: page, End: sh.Closed && !more, More: more}, nil
}

// readRecords reads records of a shard: from memory if possible, or else from the store.
// It is ErrTrimmed, not an empty page, where records behind the position are gone.
func (s *Store) readRecords(tab *table, sh *shard, after events.Position, limit int) (page []events.Record, more bool, err error) {
	low, high := numberAfter(after), s.numbers.visible.Load()
	if sh.last.Load() < low {
		return nil, false, sh.missing(after)
	}
	if page, more, known := s.tail.readRecords(sh, low, high, limit); known {
		return page, more, sh.missing(after)
	}
	w, err := s.newWalker(tab, sh.ID, low, high)
	if err != nil {
		return nil, false, err
	}
	defer w.endWalk()
	// Check this only now that the walker has its snapshot: if records were trimmed
	// before it, missing reports that.
	if err := sh.missing(after); err != nil {
		return nil, false, err
	}
	return readPage(w, limit)
}

// missing returns ErrTrimmed if records above a position were trimmed.
func (sh *shard) missing(after events.Position) error {
	if trimmed := events.PositionOf(sh.trimmed.Load()); after.Compare(trimmed) < 0 {
		return fmt.Errorf("after %v, trimmed to %v: %w", after, trimmed, store.ErrTrimmed)
	}
	return nil
}

// numberAfter is the least sequence number above a position.
// A position of another store, which no number of this one has, is behind everything.
func numberAfter(p events.Position) uint64 {
	n := p.Uint64()
	if n == math.MaxUint64 || p.Compare(events.PositionOf(n)) != 0 {
		return math.MaxUint64
	}
	return n + 1
}

// readPage reads records until limit or readBytes is reached; a single record may be larger.
// more says that the shard has another one.
func readPage(w *walker, limit int) (page []events.Record, more bool, err error) {
	size := 0
	for ok := w.first(); ok; ok = w.nextRecord() {
		if len(page) >= limit || size > readBytes {
			return page, true, nil
		}
		r, n, err := w.decodeRecord()
		if err != nil {
			return nil, false, fmt.Errorf("record %d: %w", w.seq, err)
		}
		page = append(page, r)
		size += n
	}
	return page, false, w.err
}

// decodeRecord decodes the record at which the walker is, and returns its stored size.
// The bytes are copied, so the record may be kept.
func (w *walker) decodeRecord() (r events.Record, size int, err error) {
	stored, err := w.it.ValueAndErr()
	if err != nil {
		return r, 0, err
	}
	r, err = decodeRecord(bytes.Clone(stored), w.tab, w.seq)
	return r, len(stored), err
}

// Changed returns a channel that is closed when the table's stream has more to read, or
// the store is closed. Call Changed, then Read to the end, then wait: so no record is
// missed.
func (s *Store) Changed(tableName string) (<-chan struct{}, error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	tab, err := s.tableNamed(tableName)
	if err != nil {
		return nil, err
	}
	return tab.changed.wait(), nil
}
