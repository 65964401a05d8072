package owntable

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of lambda|MODEL record how Lambda functions read streams.
//
// The row s TABLE|SHARD exists where a function reads shard by shard. It records which
// records arrived last in that shard, so that the next event can be matched with them: see
// package lambda. Every invocation writes it. It expires two days after the shard's last
// record, so the number of rows does not grow with time. It has about 1,000 bytes, or four
// for each record of an event where that is more.
const (
	readMarks  = "m"      // a mark of FunctionMark bytes for each of the latest records, in order
	readPlace  = Position // of the last of these records
	readDone   = "d"      // how many of these records, from the first, are applied
	readUntil  = "u"      // until when an invocation may be applying the rest, in Unix seconds
	readCount  = Count    // how often the row was written
	readExpiry = Expiry
)

// FunctionMark is the size in bytes of the mark of one record.
const FunctionMark = 4

// FunctionShard refers to the row that records how far a function has read a shard.
func FunctionShard(model, table, shard string) store.Ref {
	return Ref("lambda|"+model, table+"|"+shard)
}

// FunctionShardRow records how far a function has read a shard. The zero FunctionShardRow stands for a row
// that does not exist.
type FunctionShardRow struct {
	Marks string
	Last  events.Position
	Done  int
	Until time.Time
	count int64
	was   value.Value
}

const readDo = "if the event source mapping's parallelization factor is 1, delete the row, and the shard goes on with its next event"

// DecodeFunctionShard decodes the row of a shard, nil if there is none. The error wraps ErrRow.
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
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(readCount, l.was)}}, Return: true,
		Put: own.Item(at.Key).With(
			value.Attr{Name: readMarks, Value: value.OfBinary(next.Marks)},
			value.Attr{Name: readPlace, Value: next.Last.Value()},
			value.Attr{Name: readDone, Value: value.OfInt(int64(next.Done))},
			value.Attr{Name: readUntil, Value: value.OfInt(next.Until.Unix())},
			value.Attr{Name: readCount, Value: value.OfInt(l.count + 1)},
			value.Attr{Name: readExpiry, Value: value.OfInt(expires.Unix())}),
	}
}

// The row of shards|MODEL lists the shards from which records may still arrive, for streams
// that functions read shard by shard. Functions write it. A shard is removed a day after its
// shard disappears; nothing deletes the row. It has about 30 bytes for each shard in it.
const (
	openShard  = "l:" // and a shard: when the stream ceased to list its shard (Unix seconds), or 0
	openListed = "t"  // when the shards of all streams were last listed, in Unix seconds
	openLists  = "c"  // how often they were listed, at least; absent means never
	openCount  = Count
)

// OpenShardsRow lists the shards from which records may still arrive. The zero OpenShardsRow stands
// for a row that does not exist.
type OpenShardsRow struct {
	Missing map[string]int64 // by shard: when the stream ceased to list its shard, or 0
	Listed  int64
	Lists   int64
	count   int64
	was     value.Value
}

const openDo = "set the attribute to the number 0"

// DecodeOpenShards decodes the row of shards, nil if there is none. With an error, which wraps
// ErrRow, it returns a row that is safe to use: it declares no shard closed.
func DecodeOpenShards(row value.Item) (l OpenShardsRow, err error) {
	l.Missing, l.was = map[string]int64{}, row.Get(openCount)
	number := func(attr string) (n int64) {
		if row.Has(attr) && err == nil {
			n, err = whole(row, attr, 0, openDo)
		}
		return n
	}
	for _, a := range row {
		if key, is := strings.CutPrefix(a.Name, openShard); is {
			l.Missing[key] = number(a.Name)
		}
	}
	l.Listed, l.Lists, l.count = number(openListed), number(openLists), number(openCount)
	if err != nil {
		l.Lists = 0
	}
	return l, err
}

// EnterShard adds a shard to the row. The write returns the row.
func EnterShard(at store.Ref, key string) store.Write {
	return store.Write{Ref: at, Return: true, Ops: []store.Op{plus(openCount, 1), set(openShard+key, value.OfInt(0))}}
}

// DoubtOpenShards records that the row lacks a shard, so that no earlier listing of shards
// counts. The write returns the row.
func DoubtOpenShards(at store.Ref) store.Write {
	return store.Write{Ref: at, Return: true, Ops: []store.Op{plus(openCount, 1), {Kind: store.Remove, Attr: openLists}}}
}

// Becomes replaces the row by next, on condition that it has not changed since it was
// read.
func (l OpenShardsRow) Becomes(at store.Ref, next OpenShardsRow) store.Write {
	own := Table()
	attrs := []value.Attr{
		{Name: openListed, Value: value.OfInt(next.Listed)}, {Name: openLists, Value: value.OfInt(next.Lists)},
		{Name: openCount, Value: value.OfInt(l.count + 1)},
	}
	for key, since := range next.Missing {
		attrs = append(attrs, value.Attr{Name: openShard + key, Value: value.OfInt(since)})
	}
	return store.Write{Ref: at, If: store.Cond{{store.AsRead(openCount, l.was)}}, Put: value.NewItem(append(own.Item(at.Key), attrs...)...)}
}
