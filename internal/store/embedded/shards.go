package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/events"
	"weir/internal/store"
)

// lastNumber is the greatest sequence number that any shard has or had, and reads
// the shards' trim marks on the way.
func (s *Store) lastNumber() (last uint64, err error) {
	for _, meta := range s.catalog.Tables {
		for _, sh := range meta.Shards {
			n, err := s.loadShard(sh)
			if err != nil {
				return 0, fmt.Errorf("shard %s: %w", shardName(sh.ID), err)
			}
			last = max(last, n)
		}
	}
	return last, nil
}

func (s *Store) loadShard(sh *shard) (last uint64, err error) {
	mark, err := getCopy(s.db, trimKey(sh.ID))
	if err != nil {
		return 0, err
	}
	if mark != nil {
		if len(mark) != 8 {
			return 0, fmt.Errorf("trim mark %x is corrupt", mark)
		}
		sh.trimmed.Store(binary.BigEndian.Uint64(mark))
	}
	last, err = s.lastRecord(sh, endOfShard(sh.ID))
	return max(last, sh.trimmed.Load(), sh.Start), err
}

// endOfShard is the key after a shard's last record.
func endOfShard(shard uint32) []byte {
	return after(binary.BigEndian.AppendUint32([]byte{spaceStream}, shard))
}

// lastRecord is the number of the shard's last record below a key, 0 for none.
func (s *Store) lastRecord(sh *shard, below []byte) (uint64, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: appendRecordKey(nil, sh.ID, 0), UpperBound: below})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	if !it.Last() {
		return 0, it.Error()
	}
	n, ok := seqOf(it.Key())
	if !ok {
		return 0, errRecordForm
	}
	return n, nil
}

// Trim forgets a shard's records up to a position. Records and mark go in one
// batch; a crash may bring both back.
func (s *Store) Trim(ctx context.Context, tableName, shardName string, upTo events.Position) error {
	if err := s.trim(ctx, tableName, shardName, upTo); err != nil {
		return fmt.Errorf("trimming the stream: %w", err)
	}
	return nil
}

func (s *Store) trim(ctx context.Context, tableName, shardName string, upTo events.Position) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.RUnlock()
	_, sh, err := s.shard(tableName, shardName)
	if err != nil {
		return err
	}
	s.trims.Lock()
	defer s.trims.Unlock()
	end := min(numberAfter(upTo), s.numbers.visible.Load()+1)
	last, err := s.lastRecord(sh, appendRecordKey(nil, sh.ID, end))
	if err != nil || last <= sh.trimmed.Load() {
		return err
	}
	// Readers look at the mark after they have their view of the records.
	sh.trimmed.Store(last)
	b := s.db.NewBatch()
	defer b.Close()
	err = errors.Join(
		b.DeleteRange(appendRecordKey(nil, sh.ID, 0), appendRecordKey(nil, sh.ID, last+1), nil),
		b.Set(trimKey(sh.ID), binary.BigEndian.AppendUint64(nil, last), nil))
	if err != nil {
		return err
	}
	return b.Commit(pebble.NoSync)
}

// Horizon is the position after which a shard's stream still has everything: what
// to Read after when all that is there is wanted.
func (s *Store) Horizon(ctx context.Context, tableName, shardName string) (events.Position, error) {
	if err := s.enter(ctx); err != nil {
		return events.Position{}, fmt.Errorf("horizon: %w", err)
	}
	defer s.gate.RUnlock()
	_, sh, err := s.shard(tableName, shardName)
	if err != nil {
		return events.Position{}, fmt.Errorf("horizon: %w", err)
	}
	return events.PositionOf(sh.trimmed.Load()), nil
}

// Split closes a shard and opens two in its place, each for half of its rows.
// Their records come after all of the closed one's. It waits for writes that have
// begun and is durable when it returns.
func (s *Store) Split(ctx context.Context, tableName, shardName string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("split: %w", err)
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return fmt.Errorf("split: %w", store.ErrClosed)
	}
	tab, sh, err := s.shard(tableName, shardName)
	if err != nil {
		return fmt.Errorf("split: %w", err)
	}
	if sh.Closed || sh.Low == sh.High {
		return fmt.Errorf("split: table %s, shard %s cannot be split", tableName, shardName)
	}
	if err := s.split(tab, sh); err != nil {
		return fmt.Errorf("split: table %s, shard %s: %w", tableName, shardName, err)
	}
	tab.changed.wake()
	return nil
}

// split changes memory only after the disk has it.
func (s *Store) split(tab *table, sh *shard) error {
	before, lastShard := tab.meta.Shards, s.catalog.LastShard
	children := s.catalog.newShards(2, sh.Low, sh.High, sh.ID, s.numbers.visible.Load())
	sh.Closed = true
	tab.meta.Shards = append(slices.Clone(before), children...)
	b := s.db.NewBatch()
	defer b.Close()
	err := s.catalog.save(b)
	if err == nil {
		err = b.Commit(pebble.Sync)
	}
	if err != nil {
		tab.meta.Shards, s.catalog.LastShard, sh.Closed = before, lastShard, false
	}
	return err
}
