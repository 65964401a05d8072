package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// shard is a part of a table's stream. It has the changes of the rows whose partition
// hashes into its range, in their order. Sequence numbers of shards that do not descend
// from each other are in no order. Those of a child are greater than its parent's, and
// longer, so as text they may sort lower.
type shard struct {
	store.Shard
	low, high uint32 // the range, both ends included
	records   []events.Record
	seen      int // how many of them readers can see by now
	given     int // how many of the first have been read
	trimmed   int // how many of the first have expired
	last      events.Position
	ahead     time.Duration // of the clock that gives its records their times
	gone      bool          // no longer listed
	ended     time.Time     // when it was closed
}

// beginStream makes the first shards of a table.
func (t *table) beginStream(d *dice) {
	n := 1 + d.n(3)
	for i := range n {
		digits := fmt.Sprintf("%d%020d", 1+d.n(8), d.n(1e9))
		last, _ := events.ParsePosition(digits)
		width := uint32(1<<32/uint64(n) - 1)
		s := &shard{low: uint32(i) * (width + 1), last: last}
		if s.high = s.low + width; i == n-1 {
			s.high = 1<<32 - 1
		}
		t.addShard(s)
	}
}

// addShard adds a shard and gives it an id.
func (t *table) addShard(s *shard) {
	s.ID = fmt.Sprintf("shardId-%020d-%08x", len(t.shards), s.low)
	t.shards = append(t.shards, s)
}

// hashOf places a partition key in the range of a shard.
func hashOf(v value.Value) uint32 {
	h := fnv.New32a()
	h.Write([]byte(partName(v)))
	return h.Sum32() * 2654435761
}

// append adds the record of a change to its shard. before is the shard's last position
// before that.
func (t *table) append(m *memoryStore, w *store.Write, old, now value.Item, expired bool) (s *shard, before events.Position) {
	h := hashOf(w.Key.Partition)
	i := slices.IndexFunc(t.shards, func(s *shard) bool { return !s.Closed && s.low <= h && h <= s.high })
	s = t.shards[i]
	before = s.last
	s.last = positionAbove(s.last, uint64(1+m.dice.n(9)))
	rec := events.Record{
		Table: t.Name, Keys: t.Item(w.Key), Old: old, New: now, Position: s.last, Time: m.now().Add(s.ahead).UTC().Truncate(1e9),
		Expired: expired, ID: s.ID[8:] + s.last.String(),
	}
	if w.Origin != nil {
		rec.Origin, rec.Time, rec.Expired = w.Origin.Position, w.Origin.Time, w.Origin.Expired || expired
	}
	s.records = append(s.records, rec)
	return s, before
}

// positionAbove is the position n above p.
func positionAbove(p events.Position, n uint64) events.Position {
	low := binary.BigEndian.Uint64(p[9:])
	binary.BigEndian.PutUint64(p[9:], low+n)
	if low+n < low {
		for i := 8; i >= 0; i-- {
			if p[i]++; p[i] != 0 {
				break
			}
		}
	}
	return p
}

// splitShard closes a shard. Two children share its range, or one child takes over all of it.
func (t *table) splitShard(s *shard, d *dice) {
	s.Closed = true
	last := s.last
	if digits := last.String(); len(digits) < 40 { // as text the child's is lower
		last, _ = events.ParsePosition("1" + strings.Repeat("0", len(digits)+d.n(min(3, 40-len(digits)))))
	}
	middle := s.high
	if s.high > s.low && d.chance(0.6) {
		middle = s.low + (s.high-s.low)/2
	}
	first := &shard{Shard: store.Shard{Parent: s.ID}, low: s.low, high: middle, last: last}
	t.addShard(first)
	if middle < s.high {
		t.addShard(&shard{Shard: store.Shard{Parent: s.ID}, low: middle + 1, high: s.high, last: positionAbove(last, 1)})
	}
}

// Shards lists the shards, parents first.
func (m *memoryStore) Shards(ctx context.Context, name string) (out []store.Shard, err error) {
	t, err := m.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, s := range t.shards {
		if !s.gone {
			out = append(out, s.Shard)
		}
	}
	return out, nil
}

// Read reads a page of a shard.
func (m *memoryStore) Read(ctx context.Context, name, id string, after events.Position, limit int) (out store.Records, err error) {
	t, err := m.enter(ctx, name)
	if err != nil {
		return out, err
	}
	defer m.mu.Unlock()
	i := slices.IndexFunc(t.shards, func(s *shard) bool { return s.ID == id && !s.gone })
	if i < 0 {
		return out, fmt.Errorf("shard %s of %s: %w", id, name, store.ErrNoTable)
	}
	s := t.shards[i]
	at := s.upTo(after)
	if after.IsZero() {
		at = s.trimmed
	} else if at < s.trimmed {
		return out, fmt.Errorf("shard %s of %s: %w", id, name, store.ErrTrimmed)
	}
	end := max(at, min(at+limit, s.seen, len(s.records)))
	out.Records = s.records[at:end:end]
	out.End, out.More = s.Closed && end == len(s.records), end < min(s.seen, len(s.records))
	return out, nil
}

// Trim does nothing: link expires the records.
func (m *memoryStore) Trim(ctx context.Context, name, _ string, _ events.Position) error {
	return m.has(ctx, name)
}

// Horizon is the zero position, which Read takes for the oldest record.
func (m *memoryStore) Horizon(ctx context.Context, name, _ string) (events.Position, error) {
	return events.Position{}, m.has(ctx, name)
}

// Changed is nil: the schedule decides when a follower reads.
func (m *memoryStore) Changed(name string) (<-chan struct{}, error) {
	return nil, m.has(context.Background(), name)
}

// Tip is zero: the streams have no common order, and the schedule controls time.
func (m *memoryStore) Tip() store.Tip { return store.Tip{} }

// Streams are none: no run disables a stream.
func (m *memoryStore) Streams(ctx context.Context, name string, _ ...string) ([]string, error) {
	return nil, m.has(ctx, name)
}

// Continues is true: no run has a second stream.
func (m *memoryStore) Continues(ctx context.Context, name, _, _ string) (bool, error) {
	return true, m.has(ctx, name)
}

// Identity is the table's name: no run makes a table again. A stream that expired records
// would not be whole, and the simulator does not ask.
func (m *memoryStore) Identity(ctx context.Context, name string) (store.Identity, error) {
	t, err := m.enter(ctx, name)
	if err != nil {
		return store.Identity{}, err
	}
	defer m.mu.Unlock()
	id := store.Identity{ID: name}
	if t.Stream {
		id.Stream, id.Images = "1", store.NewAndOldImages
	}
	return id, nil
}

// noteRead notes how far a shard was read.
func (t *table) noteRead(id string, last events.Position) {
	for _, s := range t.shards {
		if s.ID == id {
			s.given = max(s.given, s.upTo(last))
		}
	}
}

// upTo is how many records of the shard are at or before a position.
func (s *shard) upTo(p events.Position) int {
	n, _ := slices.BinarySearchFunc(s.records, positionAbove(p, 1), func(r events.Record, p events.Position) int { return r.Position.Compare(p) })
	return n
}
