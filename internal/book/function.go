package book

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
// The row s TABLE holds the order in which the table's stream is read. The first event of
// the stream creates it; nothing deletes it. It has about 60 bytes and does not grow.
//
// The row s TABLE|SHARD exists where a function reads shard by shard. It records which
// records arrived last in that shard, so that the next event can be matched with them: see
// package lambda. Every invocation writes it. It expires two days after the shard's last
// record, so the number of rows does not grow with time. It has about 1,000 bytes, or four
// for each record of an event where that is more.
const (
	orderName = "o" // on a table's row

	laneMarks  = "m"      // a mark of LaneMark bytes for each of the latest records, in order
	lanePlace  = Position // of the last of these records
	laneDone   = "d"      // how many of these records, from the first, are applied
	laneUntil  = "u"      // until when an invocation may be applying the rest, in Unix seconds
	laneCount  = Count    // how often the row was written
	laneExpiry = Expiry
)

// LaneMark is the size in bytes of the mark of one record.
const LaneMark = 4

// Functions returns the partition key of the rows of a model's functions.
func Functions(model string) string { return "lambda|" + model }

// FunctionOrder refers to the row that holds the order in which a function reads a table's
// stream.
func FunctionOrder(model, table string) store.Ref { return Ref(Functions(model), table) }

// FunctionLane refers to the row that records how far a function has read a shard.
func FunctionLane(model, table, shard string) store.Ref {
	return Ref(Functions(model), table+"|"+shard)
}

const orderDo = "when nothing of the stream is left to come again (an iterator age of 0 and no failures), delete the row, and the next event makes it again"

// DecodeOrder decodes the order in which a stream is read from the row of its table. The
// error wraps ErrRow; a row without an order is an error too.
func DecodeOrder(row value.Item) (string, error) {
	order, err := text(row, orderName, orderDo)
	if err == nil && order == "" {
		err = unreadable(row, orderName, "a text", orderDo)
	}
	return order, err
}

// SetOrder records the order in which a stream is read. Its condition is that no order is
// recorded yet, or the same one, or one of others. The write returns the row.
func SetOrder(at store.Ref, order string, others ...string) store.Write {
	own := Table()
	test := []store.Test{{Attr: orderName, Is: store.Absent}}
	for _, o := range append([]string{order}, others...) {
		test = append(test, store.Test{Attr: orderName, Is: store.Eq, Value: value.OfString(o)})
	}
	return store.Write{
		Ref: at, If: store.Cond{test}, Return: true,
		Put: own.Item(at.Key).With(value.Attr{Name: orderName, Value: value.OfString(order)}),
	}
}

// LaneRow records how far a function has read a shard. The zero LaneRow stands for a row
// that does not exist.
type LaneRow struct {
	Marks string
	Last  events.Position
	Done  int
	Until time.Time
	count int64
	was   value.Value
}

const laneDo = "if the event source mapping's parallelization factor is 1, delete the row, and the shard goes on with its next event"

// DecodeLane decodes the row of a shard, nil if there is none. The error wraps ErrRow.
func DecodeLane(row value.Item) (l LaneRow, err error) {
	if row == nil {
		return LaneRow{Until: time.Unix(0, 0)}, nil
	}
	marks := row.Get(laneMarks)
	if l.Marks = marks.Text(); marks.Kind() != value.Binary || len(l.Marks)%LaneMark != 0 {
		return LaneRow{}, unreadable(row, laneMarks, fmt.Sprintf("binary of %d bytes for each mark", LaneMark), laneDo)
	}
	if l.Last, err = position(row, lanePlace, laneDo); err == nil && !row.Has(lanePlace) {
		err = unreadable(row, lanePlace, "a position of 17 bytes", laneDo)
	}
	if err != nil {
		return LaneRow{}, err
	}
	done, err := whole(row, laneDone, 0, laneDo)
	if most := len(l.Marks) / LaneMark; err == nil && done > int64(most) {
		err = unreadable(row, laneDone, fmt.Sprintf("%d, the number of marks, at the most", most), laneDo)
	}
	if err != nil {
		return LaneRow{}, err
	}
	until, err := whole(row, laneUntil, 0, laneDo)
	if err != nil {
		return LaneRow{}, err
	}
	if l.count, err = whole(row, laneCount, 1, laneDo); err != nil {
		return LaneRow{}, err
	}
	l.Done, l.Until, l.was = int(done), time.Unix(until, 0), row.Get(laneCount)
	return l, nil
}

// Becomes replaces the row by next, which expires at the given time, on condition that the
// row has not changed since it was read. The write returns the row.
func (l LaneRow) Becomes(at store.Ref, next LaneRow, expires time.Time) store.Write {
	own := Table()
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(laneCount, l.was)}}, Return: true,
		Put: own.Item(at.Key).With(
			value.Attr{Name: laneMarks, Value: value.OfBinary(next.Marks)},
			value.Attr{Name: lanePlace, Value: next.Last.Value()},
			value.Attr{Name: laneDone, Value: value.OfInt(int64(next.Done))},
			value.Attr{Name: laneUntil, Value: value.OfInt(next.Until.Unix())},
			value.Attr{Name: laneCount, Value: value.OfInt(l.count + 1)},
			value.Attr{Name: laneExpiry, Value: value.OfInt(expires.Unix())}),
	}
}

// The row of lanes|MODEL lists the lanes from which records may still arrive, for streams
// that functions read shard by shard. Functions write it. A lane is removed a day after its
// shard disappears; nothing deletes the row. It has about 30 bytes for each lane in it.
const (
	lanesLane   = "l:" // and a lane: when the stream ceased to list its shard (Unix seconds), or 0
	lanesListed = "t"  // when the shards of all streams were last listed, in Unix seconds
	lanesLists  = "c"  // how often they were listed, at least; absent means never
	lanesCount  = Count
)

// LanesRow lists the lanes from which records may still arrive. The zero LanesRow stands
// for a row that does not exist.
type LanesRow struct {
	Missing map[string]int64 // by lane: when the stream ceased to list its shard, or 0
	Listed  int64
	Lists   int64
	count   int64
	was     value.Value
}

const lanesDo = "set the attribute to the number 0"

// DecodeLanes decodes the row of lanes, nil if there is none. With an error, which wraps
// ErrRow, it returns a row that is safe to use: it declares no lane closed.
func DecodeLanes(row value.Item) (l LanesRow, err error) {
	l.Missing, l.was = map[string]int64{}, row.Get(lanesCount)
	number := func(attr string) (n int64) {
		if row.Has(attr) && err == nil {
			n, err = whole(row, attr, 0, lanesDo)
		}
		return n
	}
	for _, a := range row {
		if lane, is := strings.CutPrefix(a.Name, lanesLane); is {
			l.Missing[lane] = number(a.Name)
		}
	}
	l.Listed, l.Lists, l.count = number(lanesListed), number(lanesLists), number(lanesCount)
	if err != nil {
		l.Lists = 0
	}
	return l, err
}

// EnterLane adds a lane to the row. The write returns the row.
func EnterLane(at store.Ref, lane string) store.Write {
	return store.Write{Ref: at, Return: true, Ops: []store.Op{plus(lanesCount, 1), set(lanesLane+lane, value.OfInt(0))}}
}

// DoubtLanes records that the row lacks a lane, so that no earlier listing of shards
// counts. The write returns the row.
func DoubtLanes(at store.Ref) store.Write {
	return store.Write{Ref: at, Return: true, Ops: []store.Op{plus(lanesCount, 1), {Kind: store.Remove, Attr: lanesLists}}}
}

// Becomes replaces the row by next, on condition that it has not changed since it was
// read.
func (l LanesRow) Becomes(at store.Ref, next LanesRow) store.Write {
	own := Table()
	attrs := []value.Attr{
		{Name: lanesListed, Value: value.OfInt(next.Listed)}, {Name: lanesLists, Value: value.OfInt(next.Lists)},
		{Name: lanesCount, Value: value.OfInt(l.count + 1)},
	}
	for lane, since := range next.Missing {
		attrs = append(attrs, value.Attr{Name: lanesLane + lane, Value: value.OfInt(since)})
	}
	return store.Write{Ref: at, If: store.Cond{{store.AsRead(lanesCount, l.was)}}, Put: value.NewItem(append(own.Item(at.Key), attrs...)...)}
}
