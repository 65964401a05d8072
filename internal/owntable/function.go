package owntable

import (
	"fmt"
	"time"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// A function keeps in the checkpoint of a shard also which
// records arrived last in that shard, so that the next event can be matched with them: see package lambda. Every invocation writes it, before and
// after it applies an event. It expires two days after the shard's last
// record, so the number of rows does not grow with time. It has about 1,000 bytes,
// and 25 for each build.
const (
	readMarks  = "m" // a mark of FunctionMark bytes for each of the latest records, in order
	readBehind = "f" // the position behind which these records are: that of the last one before
	readDone   = "a" // how many of these records, from the first, are applied; below 0 if some before are not
	readVoid   = "v" // the first record behind those that were given up last; absent for none
	readUntil  = "u" // until when an invocation may be applying the rest, in Unix seconds
)

// FunctionMark is the size in bytes of the mark of one record.
const FunctionMark = 4

// FunctionShardRow is a checkpoint of the group of rows as a function uses it. The zero FunctionShardRow stands for a row
// that does not exist.
type FunctionShardRow struct {
	// CheckpointRow.At is the frontier: no record of the shard at or before it will be counted any
	// more: each is applied, or was given up. It never moves back.
	CheckpointRow
	// Marks has a checksum of each of the latest records behind Behind, so that a repeated event is
	// recognised; those of earlier ones are in rows of their own (TailRow). CheckpointRow.Last is the last of these records,
	// AppliedMarks how many are applied, below 0 if earlier ones are not.
	Marks        string
	AppliedMarks int
	Behind       events.Position
	// Void is the first record behind those that were given up last. Nothing is known of those before; zero for none.
	Void events.Position
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
	if _, err = decodeInt(row, checkMoves, 1, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	l.was = row.Get(checkMoves)
	if n, ok := row.Get(checkExpiry).Int64(); ok {
		l.Expiry = time.Unix(n, 0)
	}
	if l.Until = time.Unix(0, 0); !row.Has(checkLast) { // no function has read the shard
		return l, nil
	}
	if l.Marks, err = decodeMarks(row, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	if l.Behind, err = decodePosition(row, readBehind, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	if l.Void, err = decodePosition(row, readVoid, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	applied, err := decodeInt(row, readDone, -mostEarlier, readDo)
	if most := len(l.Marks) / FunctionMark; err == nil && applied > int64(most) {
		err = unreadableError(row, readDone, fmt.Sprintf("%d, the number of marks, at the most", most), readDo)
	}
	if err != nil {
		return FunctionShardRow{}, err
	}
	until, err := decodeInt(row, readUntil, 0, readDo)
	if err != nil {
		return FunctionShardRow{}, err
	}
	l.AppliedMarks, l.Until = int(applied), time.Unix(until, 0)
	return l, nil
}

// mostEarlier is how many records may wait to be applied again whose marks the row has no room for: no event has more records.
const mostEarlier = 10_000

// decodeMarks decodes the marks of a row.
func decodeMarks(row value.Item, do string) (string, error) {
	is := row.Get(readMarks)
	if is.Kind() != value.Binary || len(is.Text())%FunctionMark != 0 {
		return "", unreadableError(row, readMarks, fmt.Sprintf("binary of %d bytes for each mark", FunctionMark), do)
	}
	return is.Text(), nil
}

// Becomes changes the row to next, which expires at the given time, on condition that the
// row has not changed since it was read. The write returns the row.
func (l FunctionShardRow) Becomes(at ShardRef, next FunctionShardRow, expires time.Time) store.Write {
	w := store.Write{
		Ref: at.Ref, If: store.Cond{{store.AsRead(checkMoves, l.was)}}, Return: true,
		Ops: append(at.namingOps(),
			setAttr(readMarks, value.OfBinary(next.Marks)),
			setAttr(checkLast, next.Last.Value()),
			setAttr(readDone, value.OfInt(int64(next.AppliedMarks))),
			setAttr(readUntil, value.OfInt(next.Until.Unix())),
			addTo(checkMoves, 1),
			setAttr(checkExpiry, value.OfInt(expires.Unix()))),
	}
	for _, is := range []struct {
		attr string
		at   events.Position
	}{{checkPosition, next.At}, {readBehind, next.Behind}, {readVoid, next.Void}} {
		if !is.at.IsZero() {
			w.Ops = append(w.Ops, setAttr(is.attr, is.at.Value()))
		}
	}
	if !next.Fence.Same(l.Fence) {
		w.Ops = append(w.Ops, fenceOps(l.Fence, next.Fence)...)
	}
	return w
}
