package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/events"
	"weir/internal/store"
)

// loadShards reads the state of the open tables' shards from the store. It returns the
// greatest sequence number that is or was in use.
func (s *Store) loadShards() (last uint64, err error) {
	last = s.catalog.Numbered
	for name, meta := range s.catalog.Tables {
		tab := &table{Table: store.Table{Name: name}, id: meta.ID}
		for _, sh := range meta.Shards {
			if err := s.loadShard(tab, sh); err != nil {
				return 0, fmt.Errorf("table %s, shard %s: %w", name, shardName(sh.ID), err)
			}
			last = max(last, sh.Start, sh.trimmed.Load(), sh.last.Load())
		}
	}
	return last, nil
}

// loadShard reads how far a shard was trimmed and which record is its last. A mark that has another
// length than 8 bytes is damage, and opening the store fails.
func (s *Store) loadShard(tab *table, sh *shard) error {
	mark, err := getCopy(s.db, trimKey(sh.ID))
	if err != nil {
		return err
	}
	if mark != nil {
		if len(mark) != 8 {
			return fmt.Errorf("trim mark %x is corrupt", mark)
		}
		sh.trimmed.Store(binary.BigEndian.Uint64(mark))
	}
	last, err := s.lastRecord(tab, sh, maxNumber)
	sh.last.Store(last)
	return err
}

// lastRecord is the number of the shard's last record up to a number, 0 if there is
// none.
func (s *Store) lastRecord(tab *table, sh *shard, upTo uint64) (uint64, error) {
	w, err := s.newWalker(tab, sh.ID, sh.trimmed.Load()+1, upTo)
	if err != nil {
		return 0, err
	}
	defer w.endWalk()
	if !w.last() {
		return 0, w.err
	}
	return w.seq, nil
}

// Trim deletes a shard's records up to a position. From then on they are hidden; their
// space is freed when all shards of the table have been trimmed past their segment. A
// crash may undo a trim as a whole: then the records can be read again.
func (s *Store) Trim(ctx context.Context, tableName, shardName string, upTo events.Position) error {
	return store.Wrap(s.trimShard(ctx, tableName, shardName, upTo), "trimming the stream")
}

// trimShard deletes the records of a shard up to a position. Mark and deletion are one commit, which
// is not synced: after a power cut the records may be there again.
func (s *Store) trimShard(ctx context.Context, tableName, shardName string, upTo events.Position) error {
	if err := s.beginOperation(ctx); err != nil {
		return err
	}
	defer s.gate.RUnlock()
	tab, sh, err := s.findShard(tableName, shardName)
	if err != nil {
		return err
	}
	s.trims.Lock()
	defer s.trims.Unlock()
	visible := s.numbers.visible.Load()
	last, err := s.lastRecord(tab, sh, min(numberAfter(upTo)-1, visible))
	if err != nil || last <= sh.trimmed.Load() {
		return err
	}
	// Set this before anything is deleted: readers check it after they have their
	// snapshot.
	sh.trimmed.Store(last)
	b := s.db.NewBatch()
	defer b.Close()
	err = b.Set(trimKey(sh.ID), binary.BigEndian.AppendUint64(nil, last), nil)
	if free := tab.trimmed(visible) >> segmentBits; err == nil && free > tab.freed {
		err = b.DeleteRange(appendSegment(nil, tab, 0), appendSegment(nil, tab, free), nil)
		tab.freed = free
	}
	if err != nil {
		return err
	}
	return b.Commit(pebble.NoSync)
}

// trimmed is the number below which no shard of the table has records left.
// A shard without records does not hold space back.
func (t *table) trimmed(visible uint64) uint64 {
	least := visible + 1
	for _, sh := range t.meta.Shards {
		if n := sh.trimmed.Load(); n < sh.last.Load() {
			least = min(least, n+1)
		}
	}
	return least
}

// Horizon returns the position after which a shard still has all its records. Read
// after it to get everything that is left.
func (s *Store) Horizon(ctx context.Context, tableName, shardName string) (events.Position, error) {
	if err := s.beginOperation(ctx); err != nil {
		return events.Position{}, fmt.Errorf("horizon: %w", err)
	}
	defer s.gate.RUnlock()
	_, sh, err := s.findShard(tableName, shardName)
	if err != nil {
		return events.Position{}, fmt.Errorf("horizon: %w", err)
	}
	return events.PositionOf(sh.trimmed.Load()), nil
}

// Tip has both positions and no Lag. Given may be above Seen, while a batch with lower
// numbers is still being committed.
func (s *Store) Tip() store.Tip {
	return store.Tip{Seen: events.PositionOf(s.numbers.visible.Load()), Given: events.PositionOf(s.numbers.given())}
}

// Streams returns none: a table has only one stream.
func (s *Store) Streams(ctx context.Context, tableName string, _ ...string) ([]string, error) {
	if err := s.beginOperation(ctx); err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	defer s.gate.RUnlock()
	_, err := s.tableNamed(tableName)
	return nil, err
}

// Continues is true: all streams are numbered by one counter.
func (s *Store) Continues(ctx context.Context, tableName, _, _ string) (bool, error) {
	_, err := s.Streams(ctx, tableName)
	return err == nil, err
}

// Identity identifies a table by the store's own id and the table's in it. A stream's label
// is the id of its first shard.
// Whole says that the stream has every change of the table since it was made: it was switched on
// with the table, and nothing was trimmed.
func (s *Store) Identity(ctx context.Context, tableName string) (store.Identity, error) {
	if err := s.beginOperation(ctx); err != nil {
		return store.Identity{}, fmt.Errorf("identity: %w", err)
	}
	defer s.gate.RUnlock()
	tab, err := s.tableNamed(tableName)
	if err != nil {
		return store.Identity{}, fmt.Errorf("identity: %w", err)
	}
	id := store.Identity{ID: fmt.Sprintf("%s/%d", s.catalog.Store, tab.id)}
	if !tab.Stream {
		return id, nil
	}
	id.Images, id.Whole = store.NewAndOldImages, tab.meta.Streamed
	id.Stream = shardName(tab.meta.First)
	for _, sh := range tab.meta.Shards {
		id.Whole = id.Whole && sh.trimmed.Load() == 0
	}
	return id, nil
}

// Split closes a shard and opens two new shards in its place, each for half of its
// rows. Their records come after all records of the closed shard. Split waits for
// writes that have begun, and is durable when it returns. A crash leaves the old shard
// or the new ones.
func (s *Store) Split(ctx context.Context, tableName, shardName string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("split: %w", err)
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return fmt.Errorf("split: %w", store.ErrClosed)
	}
	tab, sh, err := s.findShard(tableName, shardName)
	if err != nil {
		return fmt.Errorf("split: %w", err)
	}
	if sh.Closed || sh.Low == sh.High {
		return fmt.Errorf("split: table %s, shard %s cannot be split", tableName, shardName)
	}
	if err := s.splitShard(tab, sh); err != nil {
		return fmt.Errorf("split: table %s, shard %s: %w", tableName, shardName, err)
	}
	tab.changed.wake()
	return nil
}

// splitShard changes memory only after the change is on disk.
func (s *Store) splitShard(tab *table, sh *shard) error {
	before, lastShard := tab.meta.Shards, s.catalog.LastShard
	children := s.catalog.newShards(2, sh.Low, sh.High, sh.ID, s.numbers.visible.Load())
	sh.Closed = true
	tab.meta.Shards = append(slices.Clone(before), children...)
	b := s.db.NewBatch()
	defer b.Close()
	err := s.catalog.saveCatalog(b)
	if err == nil {
		err = b.Commit(pebble.Sync)
	}
	if err != nil {
		tab.meta.Shards, s.catalog.LastShard, sh.Closed = before, lastShard, false
	}
	return err
}
