package owntable

import (
	"fmt"
	"time"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of lambda|MODEL record how Lambda functions read streams.
//
// The row s SHARDKEY exists where a function reads shard by shard. It records which
// records arrived last in that shard, so that the next event can be matched with them, and up to
// where the shard is done for good: see package lambda. Every invocation writes it, before and
// after it applies an event. It expires two days after the shard's last
// record, so the number of rows does not grow with time. It has about 1,000 bytes, or four
// for each record of an event where that is more, and 25 for each build.
const (
	readMarks  = "m"      // a mark of FunctionMark bytes for each of the latest records, in order
	readPlace  = Position // of the last of these records
	readDone   = "d"      // how many of these records, from the first, are applied
	readFront  = "f"      // the frontier; absent before the first record is applied
	readUntil  = "u"      // until when an invocation may be applying the rest, in Unix seconds
	readCount  = Count    // how often the row was written
	readExpiry = Expiry
)

// FunctionMark is the size in bytes of the mark of one record.
const FunctionMark = 4

// FunctionShard refers to the row that records how far a function has read the shard with a short key.
func FunctionShard(model, shardKey string) store.Ref { return Ref("lambda|"+model, shardKey) }

// FunctionShardRow records how far a function has read a shard. The zero FunctionShardRow stands for a row
// that does not exist.
type FunctionShardRow struct {
	// Marks has a checksum of each record of the event in progress, so that a repeated event is
	// recognised. Last is the event's last record, Done how many are applied.
	Marks string
	Last  events.Position
	Done  int
	// Until is when the invocation must have ended; before that, the next event of the shard is
	// refused if this one is not done.
	Until time.Time
	// Frontier is a position such that no record of the shard at or before it will be counted any
	// more: each is applied, or was given up. It never moves back.
	Frontier events.Position
	// Fence says which builds count which of the shard's records, as that of a checkpoint does. Its
	// floors are frontiers.
	Fence contribution.Fence
	count int64
	was   value.Value
}

const readDo = "if the event source mapping's parallelization factor is 1, delete the row, and the shard goes on with its next event; then run projector verify MODEL, because records that come again may count twice"

// DecodeFunctionShard decodes the row of a shard, nil if there is none. The error wraps ErrRow, and names
// the attribute that cannot be read: the row was written by another version, or by hand.
func DecodeFunctionShard(row value.Item) (l FunctionShardRow, err error) {
	if row == nil {
		return FunctionShardRow{Until: time.Unix(0, 0)}, nil
	}
	marks := row.Get(readMarks)
	if l.Marks = marks.Text(); marks.Kind() != value.Binary || len(l.Marks)%FunctionMark != 0 {
		return FunctionShardRow{}, unreadable(row, readMarks, fmt.Sprintf("binary of %d bytes for each mark", FunctionMark), readDo)
	}
	if l.Last, err = position(row, readPlace, readDo); err == nil && !row.Has(readPlace) {
		err = unreadable(row, readPlace, "a position of 17 bytes", readDo)
	}
	if err != nil {
		return FunctionShardRow{}, err
	}
	if l.Frontier, err = position(row, readFront, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	if l.Fence, err = fenceIn(row, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	done, err := whole(row, readDone, 0, readDo)
	if most := len(l.Marks) / FunctionMark; err == nil && done > int64(most) {
		err = unreadable(row, readDone, fmt.Sprintf("%d, the number of marks, at the most", most), readDo)
	}
	if err != nil {
		return FunctionShardRow{}, err
	}
	until, err := whole(row, readUntil, 0, readDo)
	if err != nil {
		return FunctionShardRow{}, err
	}
	if l.count, err = whole(row, readCount, 1, readDo); err != nil {
		return FunctionShardRow{}, err
	}
	l.Done, l.Until, l.was = int(done), time.Unix(until, 0), row.Get(readCount)
	return l, nil
}

// Becomes replaces the row by next, which expires at the given time, on condition that the
// row has not changed since it was read. The write returns the row.
func (l FunctionShardRow) Becomes(at store.Ref, next FunctionShardRow, expires time.Time) store.Write {
	own := Table()
	front := value.Value{}
	fence := fenceAttrs(next.Fence)
	if !next.Frontier.IsZero() {
		front = next.Frontier.Value()
	}
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(readCount, l.was)}}, Return: true,
		Put: own.Item(at.Key).With(fence...).With(
			value.Attr{Name: readFront, Value: front},
			value.Attr{Name: readMarks, Value: value.OfBinary(next.Marks)},
			value.Attr{Name: readPlace, Value: next.Last.Value()},
			value.Attr{Name: readDone, Value: value.OfInt(int64(next.Done))},
			value.Attr{Name: readUntil, Value: value.OfInt(next.Until.Unix())},
			value.Attr{Name: readCount, Value: value.OfInt(l.count + 1)},
			value.Attr{Name: readExpiry, Value: value.OfInt(expires.Unix())}),
	}
}
