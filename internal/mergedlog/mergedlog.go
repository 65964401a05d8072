// Package mergedlog decides how a process reads many shards as one log, so that what
// counts records keeps one position for each process instead of one for each shard.
//
// The records of several shards come in no order that can be told again. So the order is
// written down before it is used: the row of a log (Log) names up to where the pending batch
// goes in each of its shards. From where, the checkpoints of the shards say. A process that applies
// the batch reads these ranges, and gets the same records with the same offsets (Merge). An
// offset is the number of the batch, and within it the record's own position: it does not
// depend on which of the other records the stream still has.
//
//	Begin        names the ranges of the next batch
//	             each ledger takes what is behind its position in the log, in one write
//	checkpoints  move to the ends of the ranges, each in a write of its own
//
// A checkpoint moves only after all of its batch is applied, and only from the position at
// which the range begins. The next batch begins after all of them have moved. Every change
// of the row is conditional on its Version. Leases are not part of this: two processes that
// take themselves for the owner of a log apply the same batch, and one of them begins the
// next. A lease only keeps them from doing the same work.
//
// A checkpoint says to which log its shard belongs. It changes when no range of the shard is
// pending, in one transaction with a new Version of the log that it leaves (Touch): a batch
// that another process is about to begin there with the shard fails. The row of a log is
// never deleted, as its numbers must not begin again: ledgers remember them.
package mergedlog

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/value"
)

// Log is the row of a merged log. The zero Log stands for one that was never used. The
// methods leave the Log that they are called on as it is.
type Log struct {
	Version int64   // rises with every change
	Batch   int64   // the number of the last batch that was begun
	Ranges  []Range // of that batch, by name of the shard; none if it is known to be applied
}

// Range is a part of a batch: the records of a shard from its checkpoint up to To. Once the
// checkpoint is at To, all of the batch is applied.
type Range struct {
	Shard   string
	To      events.Position
	Records int // how many there are
}

// ErrPending says that a batch must be applied before another one may begin.
var ErrPending = errors.New("a batch of the merged log is pending")

// Pending returns the indexes of the ranges whose checkpoints have not moved, given a
// function that returns them.
func (l Log) Pending(at func(shard string) events.Position) (out []int) {
	for i, r := range l.Ranges {
		if at(r.Shard).Compare(r.To) < 0 {
			out = append(out, i)
		}
	}
	return out
}

// Begin names the next batch. It is an error while the last one may be pending: call it on
// what Finish returned.
func (l Log) Begin(ranges []Range) (Log, error) {
	if len(l.Ranges) > 0 {
		return l, ErrPending
	}
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b Range) int { return strings.Compare(a.Shard, b.Shard) })
	return Log{l.Version + 1, l.Batch + 1, ranges}, nil
}

// Finish says that no range is pending. It needs no write of its own: Begin after it is one
// change.
func (l Log) Finish() Log { return Log{l.Version, l.Batch, nil} }

// Same reports whether two logs are equal.
func (l Log) Same(m Log) bool {
	return l.Version == m.Version && l.Batch == m.Batch && slices.Equal(l.Ranges, m.Ranges)
}

// Touch changes the version only.
func (l Log) Touch() Log {
	l.Version++
	return l
}

// Find returns the index of a shard's range; ok is false if the batch has none.
func (l Log) Find(shard string) (i int, ok bool) {
	return slices.BinarySearchFunc(l.Ranges, shard, func(r Range, name string) int { return strings.Compare(r.Shard, name) })
}

// After is before all offsets of batches that are not applied yet, and behind all that are,
// given whether a range of the last batch is pending.
func (l Log) After(pending bool) Offset {
	if pending {
		return Offset{Batch: l.Batch}
	}
	return Offset{Batch: l.Batch + 1}
}

// Offset is the place of a record in a merged log. The zero Offset is before all others.
type Offset struct {
	Batch    int64
	Position events.Position // of the record in its shard
	Nth      int             // which range of the batch: positions of different shards may be equal
}

// Compare returns -1, 0 or 1, as o is before, at or after p.
func (o Offset) Compare(p Offset) int {
	return cmp.Or(cmp.Compare(o.Batch, p.Batch), o.Position.Compare(p.Position), cmp.Compare(o.Nth, p.Nth))
}

// offsetBytes is the length of an offset's value: 6 bytes for the batch, 17 for the
// position, 2 for the range.
const offsetBytes = 6 + len(events.Position{}) + 2

// IsZero reports whether o is the zero Offset.
func (o Offset) IsZero() bool { return o == Offset{} }

// OffsetOf is the offset of a record where positions of a single shard are kept: such a shard
// is a log of one batch.
func OffsetOf(p events.Position) Offset { return Offset{Position: p} }

// Value returns the offset as a Binary. Such values compare like offsets.
func (o Offset) Value() value.Value {
	b := make([]byte, 0, offsetBytes)
	for shift := 40; shift >= 0; shift -= 8 {
		b = append(b, byte(o.Batch>>shift))
	}
	b = append(b, o.Position[:]...)
	return value.OfBinary(string(append(b, byte(o.Nth>>8), byte(o.Nth))))
}

// OffsetFrom decodes what Value returned. It returns the zero Offset for anything else.
func OffsetFrom(v value.Value) (o Offset) {
	s := v.Text()
	if v.Kind() != value.Binary || len(s) != offsetBytes {
		return Offset{}
	}
	for _, c := range []byte(s[:6]) {
		o.Batch = o.Batch<<8 | int64(c)
	}
	copy(o.Position[:], s[6:])
	o.Nth = int(s[offsetBytes-2])<<8 | int(s[offsetBytes-1])
	return o
}

// MostShards is how many shards a batch may have records of.
const MostShards = 1 << 16
