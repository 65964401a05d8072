package book

import (
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of check|MODEL|GROUP: how far a group of consumers has come in a shard, and
// what became of the records up to there. The group's consumer writes them; they go
// when the shard is over, which is checked each time that shards are listed. So a
// table has as many after a year as it has shards that its stream still lists, some
// 200 bytes each.
const (
	checkPlace   = Position  // of the last record that is applied; absent before the first
	checkHold    = "e"       // the hold that moved it last, or took it over; absent where shards are not shared
	checkDone    = "d"       // the shard is applied to its end
	checkMissing = "g"       // of a finished shard: since when the stream does not list it, in seconds
	countApplied = "applied" // this and the next two: records up to the place
	countSkipped = "skipped"
	countKept    = "kept"
)

// CheckpointRow is what a checkpoint says. The zero row stands for one that is not
// there.
type CheckpointRow struct {
	At      events.Position // zero before the first record
	Hold    int64           // 0 where shards are not shared
	Done    bool
	Missing time.Time // zero while the stream lists the shard, or nothing has noted that it does not
	Counts
}

// Counts are what became of records.
type Counts struct{ Applied, Skipped, Kept int }

const checkDo = "delete the row, and the shard is read again from the oldest record that its stream has, which changes nothing that is derived already; then run projector verify"

// DecodeCheckpoint reads the row of a checkpoint, nil for one that is not there.
func DecodeCheckpoint(row value.Item) (c CheckpointRow, err error) {
	if row == nil {
		return c, nil
	}
	if c.At, err = position(row, checkPlace, checkDo); err != nil {
		return CheckpointRow{}, err
	}
	if row.Has(checkHold) {
		if c.Hold, err = whole(row, checkHold, 1, checkDo); err != nil {
			return CheckpointRow{}, err
		}
	}
	if c.Done, err = flag(row, checkDone, checkDo); err != nil {
		return CheckpointRow{}, err
	}
	if row.Has(checkMissing) {
		since, err := whole(row, checkMissing, 0, checkDo)
		if err != nil {
			return CheckpointRow{}, err
		}
		c.Missing = time.Unix(since, 0)
	}
	if c.Counts, err = counts(row, checkDo); err != nil {
		return CheckpointRow{}, err
	}
	return c, nil
}

func counts(row value.Item, do string) (c Counts, err error) {
	for _, n := range []struct {
		attr string
		to   *int
	}{{countApplied, &c.Applied}, {countSkipped, &c.Skipped}, {countKept, &c.Kept}} {
		if !row.Has(n.attr) {
			continue
		}
		is, err := whole(row, n.attr, 0, do)
		if err != nil {
			return Counts{}, err
		}
		*n.to = int(is)
	}
	return c, nil
}

func (n Counts) ops() []store.Op {
	return []store.Op{plus(countApplied, int64(n.Applied)), plus(countSkipped, int64(n.Skipped)), plus(countKept, int64(n.Kept))}
}

// BeginCheckpoint takes a checkpoint over for a hold, on condition that no later one
// has it: the holds before cannot move it any more. It returns the row.
func BeginCheckpoint(at store.Ref, hold int64) store.Write {
	return store.Write{Ref: at, Return: true, If: store.Cond{noLater(hold)}, Ops: []store.Op{set(checkHold, value.OfInt(hold))}}
}

// noLater is the test that no hold after the one given has a checkpoint.
func noLater(hold int64) []store.Test {
	return []store.Test{{Attr: checkHold, Is: store.Absent}, {Attr: checkHold, Is: store.Le, Value: value.OfInt(hold)}}
}

// MoveCheckpoint moves a checkpoint from a place to another, and counts what is in
// between, on condition that it is still there and that no hold after the one given has
// it. Hold 0 is that of shards that are not shared.
func MoveCheckpoint(at store.Ref, hold int64, from, to events.Position, n Counts) store.Write {
	w := store.Write{Ref: at}
	if hold != 0 {
		w.If, w.Ops = store.Cond{noLater(hold)}, []store.Op{set(checkHold, value.OfInt(hold))}
	}
	w.If = append(w.If, []store.Test{atPlace(from)})
	w.Ops = append(append(w.Ops, set(checkPlace, to.Value())), n.ops()...)
	return w
}

// atPlace is the test that a checkpoint is where it was read; zero is nowhere.
func atPlace(p events.Position) store.Test {
	if p.IsZero() {
		return store.AsRead(checkPlace, value.Value{})
	}
	return store.AsRead(checkPlace, p.Value())
}

// EndCheckpoint says that a shard is applied to its end, on condition that no hold
// after the one given has it.
func EndCheckpoint(at store.Ref, hold int64) store.Write {
	return store.Write{Ref: at, If: store.Cond{noLater(hold)}, Ops: []store.Op{set(checkHold, value.OfInt(hold)), set(checkDone, value.OfBool(true))}}
}

// OvertakeCheckpoint moves a checkpoint to a place, on condition that it is before it.
// It counts nothing.
func OvertakeCheckpoint(at store.Ref, to events.Position) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{{Attr: checkPlace, Is: store.Absent}, {Attr: checkPlace, Is: store.Lt, Value: to.Value()}}},
		Ops: []store.Op{set(checkPlace, to.Value())},
	}
}

// MissCheckpoint says since when the stream does not list a finished shard, if nothing
// has said so before.
func MissCheckpoint(at store.Ref, since time.Time) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{isDone}, {{Attr: checkMissing, Is: store.Absent}}},
		Ops: []store.Op{set(checkMissing, value.OfInt(since.Unix()))},
	}
}

// FindCheckpoint says that the stream lists a finished shard again.
func FindCheckpoint(at store.Ref) store.Write {
	return store.Write{Ref: at, If: store.Cond{{isDone}}, Ops: []store.Op{{Kind: store.Remove, Attr: checkMissing}}}
}

var isDone = store.Test{Attr: checkDone, Is: store.Exists}

// Drop removes a checkpoint, on condition that its shard is done and that neither its
// place nor its hold has changed since it was read.
func (c CheckpointRow) Drop(at store.Ref) store.Write {
	var hold value.Value
	if c.Hold != 0 {
		hold = value.OfInt(c.Hold)
	}
	return store.Write{Ref: at, Delete: true, If: store.Cond{{isDone}, {atPlace(c.At)}, {store.AsRead(checkHold, hold)}}}
}

// The rows of past|MODEL: what became of the records of all shards that a group needs no
// checkpoint of any more, in the attributes of a checkpoint's counts. The transaction that
// removes a checkpoint writes them; nothing removes them. They are one for each group,
// of some 100 bytes, after any time.

const pastDo = "delete the row: nothing but the number of records that were ever applied is lost"

// DecodePast reads the counts of forgotten shards, nil for a row that is not there.
func DecodePast(row value.Item) (Counts, error) { return counts(row, pastDo) }

// AddPast adds the counts of a checkpoint that goes.
func AddPast(at store.Ref, n Counts) store.Write { return store.Write{Ref: at, Ops: n.ops()} }
