package owntable

import (
	"fmt"
	"time"

	"weir/internal/contribution"
	"weir/internal/store"
	"weir/internal/value"
)

// A function keeps in the checkpoint of a shard also which
// records arrived last in that shard, so that the next event can be matched with them: see package lambda. Every invocation writes it, before and
// after it applies an event. It expires two days after the shard's last
// record, so the number of rows does not grow with time. It has about 1,000 bytes, or four
// for each record of an event where that is more, and 25 for each build.
const (
	readMarks = "m" // a mark of FunctionMark bytes for each of the latest records, in order
	readDone  = "a" // how many of these records, from the first, are applied
	readUntil = "u" // until when an invocation may be applying the rest, in Unix seconds
)

// FunctionMark is the size in bytes of the mark of one record.
const FunctionMark = 4

// FunctionShardRow is a checkpoint of the group of rows as a function uses it. The zero FunctionShardRow stands for a row
// that does not exist.
type FunctionShardRow struct {
	// CheckpointRow.At is the frontier: no record of the shard at or before it will be counted any
	// more: each is applied, or was given up. It never moves back.
	CheckpointRow
	// Marks has a checksum of each record of the event in progress, so that a repeated event is
	// recognised. CheckpointRow.Last is the last of these records, AppliedMarks how many are applied.
	Marks        string
	AppliedMarks int
	// Until is when the invocation must have ended; before that, the next event of the shard is
	// refused if this one is not done.
	Until time.Time
	// Fence says which builds count which of the shard's records.
	Fence contribution.Fence
	// Expiry is when the row expires, zero if a process moved it last.
	Expiry time.Time
	was    value.Value // how often it was written
}

const readDo = "if the event source mapping's parallelization factor is 1, delete the row and run projector run MODEL, which reads the shard again, and then the function goes on; then run projector verify MODEL, because records that come again may count twice"

// DecodeFunctionShard decodes the checkpoint of a shard, nil if there is none. The error wraps ErrRow, and names
// the attribute that cannot be read: the row was written by another version, or by hand.
func DecodeFunctionShard(row value.Item) (l FunctionShardRow, err error) {
	if row == nil {
		return FunctionShardRow{Until: time.Unix(0, 0)}, nil
	}
	if l.CheckpointRow, err = DecodeCheckpoint(row); err != nil {
		return FunctionShardRow{}, err
	}
	if l.Fence, err = fenceIn(row, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	if _, err = whole(row, checkMoves, 1, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	l.was = row.Get(checkMoves)
	if n, ok := row.Get(checkExpiry).Int64(); ok {
		l.Expiry = time.Unix(n, 0)
	}
	if l.Until = time.Unix(0, 0); !row.Has(checkLast) { // no function has read the shard
		return l, nil
	}
	marks := row.Get(readMarks)
	if l.Marks = marks.Text(); marks.Kind() != value.Binary || len(l.Marks)%FunctionMark != 0 {
		return FunctionShardRow{}, unreadable(row, readMarks, fmt.Sprintf("binary of %d bytes for each mark", FunctionMark), readDo)
	}
	applied, err := whole(row, readDone, 0, readDo)
	if most := len(l.Marks) / FunctionMark; err == nil && applied > int64(most) {
		err = unreadable(row, readDone, fmt.Sprintf("%d, the number of marks, at the most", most), readDo)
	}
	if err != nil {
		return FunctionShardRow{}, err
	}
	until, err := whole(row, readUntil, 0, readDo)
	if err != nil {
		return FunctionShardRow{}, err
	}
	l.AppliedMarks, l.Until = int(applied), time.Unix(until, 0)
	return l, nil
}

// Becomes changes the row to next, which expires at the given time, on condition that the
// row has not changed since it was read. The write returns the row.
func (l FunctionShardRow) Becomes(at ShardRef, next FunctionShardRow, expires time.Time) store.Write {
	w := store.Write{
		Ref: at.Ref, If: store.Cond{{store.AsRead(checkMoves, l.was)}}, Return: true,
		Ops: append(at.named(),
			set(readMarks, value.OfBinary(next.Marks)),
			set(checkLast, next.Last.Value()),
			set(readDone, value.OfInt(int64(next.AppliedMarks))),
			set(readUntil, value.OfInt(next.Until.Unix())),
			plus(checkMoves, 1),
			set(checkExpiry, value.OfInt(expires.Unix()))),
	}
	if !next.At.IsZero() {
		w.Ops = append(w.Ops, set(checkPosition, next.At.Value()))
	}
	if !next.Fence.Same(l.Fence) {
		w.Ops = append(w.Ops, fenceOps(l.Fence, next.Fence)...)
	}
	return w
}
