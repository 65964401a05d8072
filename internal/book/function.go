package book

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of lambda|MODEL: how functions read streams.
//
// One for each table, s TABLE, has the order in which its stream is read. The first
// event of the stream makes it; nothing removes it. It has some 60 bytes, after any time.
//
// One for each shard that is read by shard, s TABLE|SHARD, has what its events may go on
// from: see package lambda. Each invocation writes it. It expires two days after the
// shard's last record, so that a table has as many after a year as after two days. It has some
// 1,000 bytes, or four for each record of an event where that is more.
const (
	orderName = "o" // of a table's row

	laneMarks  = "m"      // of each record that came last, LaneMark bytes, in order
	lanePlace  = Position // of the last of them
	laneDone   = "d"      // how many of the first of them are applied
	laneUntil  = "u"      // until when an invocation may be applying the rest, in seconds
	laneCount  = Count    // how often the row was written
	laneExpiry = Expiry
)

// LaneMark is the size of a mark in bytes.
const LaneMark = 4

// Functions is the partition of the rows of a model's functions.
func Functions(model string) string { return "lambda|" + model }

// FunctionOrder is where the order stands in which a function reads a table's stream.
func FunctionOrder(model, table string) store.Ref { return Ref(Functions(model), table) }

// FunctionLane is where it stands what the events of a shard may go on from.
func FunctionLane(model, table, shard string) store.Ref {
	return Ref(Functions(model), table+"|"+shard)
}

const orderDo = "when nothing of the stream is left to come again (an iterator age of 0 and no failures), delete the row, and the next event makes it again"

// DecodeOrder reads in which order a stream is read, of the row of a table.
func DecodeOrder(row value.Item) (string, error) {
	order, err := text(row, orderName, orderDo)
	if err == nil && order == "" {
		err = unreadable(row, orderName, "a text", orderDo)
	}
	return order, err
}

// SetOrder says in which order a stream is read, on condition that nothing said another
// one, or one of those given. It returns the row.
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

// LaneRow is what the events of a shard may go on from. The zero row stands for one that
// is not there.
type LaneRow struct {
	Marks string
	Last  events.Position
	Done  int
	Until time.Time
	count int64
	was   value.Value
}

const laneDo = "if the event source mapping's parallelization factor is 1, delete the row, and the shard goes on with its next event"

// DecodeLane reads the row of a shard, nil for one that is not there.
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

// Becomes writes another row, which expires, on condition that the lane is still as it
// was read. It returns the row.
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

// The row of lanes|MODEL: the lanes of streams that are read by shard from which something
// may still come. Functions write it. A lane goes out of it a day after its shard; nothing
// removes the row. It has some 30 bytes for each lane that is left, after any time.
const (
	lanesLane   = "l:" // and a lane: since when its shard is missing from its stream's list, in seconds; 0 while it is there
	lanesListed = "t"  // when the shards of all streams were listed last, in seconds
	lanesLists  = "c"  // how often they were, at least; absent is not at all
	lanesCount  = Count
)

// LanesRow is what is known of lanes. The zero row stands for one that is not there.
type LanesRow struct {
	Missing map[string]int64 // of each lane
	Listed  int64
	Lists   int64
	count   int64
	was     value.Value
}

const lanesDo = "set the attribute to the number 0"

// DecodeLanes reads the row of lanes, nil for one that is not there. The row that comes
// with an error is one by which no lane is over.
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

// EnterLane enters a lane, and returns the row.
func EnterLane(at store.Ref, lane string) store.Write {
	return store.Write{Ref: at, Return: true, Ops: []store.Op{plus(lanesCount, 1), set(lanesLane+lane, value.OfInt(0))}}
}

// DoubtLanes says that a lane is not in the row: no list counts any more. It returns the
// row.
func DoubtLanes(at store.Ref) store.Write {
	return store.Write{Ref: at, Return: true, Ops: []store.Op{plus(lanesCount, 1), {Kind: store.Remove, Attr: lanesLists}}}
}

// Becomes writes another row, on condition that this one is still as it was read.
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
