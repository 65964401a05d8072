package owntable

import (
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of check|MODEL are checkpoints: how far a shard is applied, and the outcome of the records up to there. Processes and
// functions move the same row (FunctionShardRow). A process deletes the checkpoint of a shard that is closed and no longer listed; it looks
// for these whenever it lists shards. A row that a function moved last expires. So the number of checkpoints does not grow with
// time: there is one for each shard that the stream lists, about 200 bytes each. The sort key is the
// short key of the shard, under which ledgers keep its position.
const (
	checkPosition = Position // of the last applied record; absent before the first
	checkFrom     = "r"      // a process read all records behind it, up to checkTo
	checkTo       = "e"
	checkLast     = "l"    // the last record that a function was given
	checkMoves    = Count  // how often the row was written
	checkExpiry   = Expiry // of a row that a function moved last
	checkTable    = "t"    // whose stream has the shard
	checkShard    = "i"
	checkDone     = "d"       // the shard is applied to its end
	checkMissing  = "g"       // on a finished shard: when the stream ceased to list it, Unix seconds
	countApplied  = "applied" // this and the next two: number of records up to checkPosition
	countSkipped  = "skipped"
	countDead     = "dead"
)

// CheckpointRow is the content of a checkpoint. The zero CheckpointRow stands for a
// checkpoint that does not exist.
type CheckpointRow struct {
	Table   string          `row:"t"`
	Shard   string          `row:"i"`
	At      events.Position `row:"p"` // zero before the first record
	Done    bool            `row:"d"`
	Missing time.Time       `row:"g"` // zero while the stream lists the shard, or until its absence is noted
	// A process applied all records behind From, up to and with To, one page after the other. To is zero if none did.
	From    events.Position
	To      events.Position `row:"e"`
	Last    events.Position `row:"l"` // the last record that a function was given
	Expires bool            // a function moved it last
	Counts
}

// Counts says how many records were applied, skipped, and kept as dead letters.
type Counts struct {
	Applied int `row:"applied"`
	Skipped int `row:"skipped"`
	Dead    int `row:"dead"`
}

const checkDo = "delete the row, and the shard is read again from the oldest record that its stream has, which may count what was counted already; then run projector build MODEL --again"

// DecodeCheckpoint decodes the row of a checkpoint, nil if there is none. The error wraps
// ErrRow; one that cannot be read still names its shard, if it can.
func DecodeCheckpoint(row value.Item) (c CheckpointRow, err error) {
	if row == nil {
		return c, nil
	}
	err = readTagged(row, &c, checkDo)
	if err == nil && row.Get(checkFrom).Kind() != value.Null { // else from the beginning
		c.From, err = decodePosition(row, checkFrom, checkDo)
	}
	if err != nil {
		return CheckpointRow{Table: c.Table, Shard: c.Shard}, err
	}
	c.Expires = row.Has(checkExpiry)
	return c, nil
}

// ops add the counts in the write that moves the checkpoint, so each record is counted once.
func (n Counts) ops() []store.Op {
	return []store.Op{addTo(countApplied, int64(n.Applied)), addTo(countSkipped, int64(n.Skipped)), addTo(countDead, int64(n.Dead))}
}

// namingOps are the operations that name the shard of a checkpoint. Each write that may make the row has them.
func (at ShardRef) namingOps() []store.Op {
	return []store.Op{setAttr(checkTable, value.OfString(at.Of)), setAttr(checkShard, value.OfString(at.Shard))}
}

// BeginCheckpoint makes a checkpoint before the first record of its shard, if there is none. The write
// returns the row.
func BeginCheckpoint(at ShardRef) store.Write {
	return store.Write{Ref: at.Ref, Return: true, If: NotThere(), Ops: append(at.namingOps(), addTo(checkMoves, 1))}
}

// Move moves a checkpoint from one position to another and adds n, the counts of
// the records in between. Its condition is that the checkpoint is still at from, and that no function has begun an event since it
// was read. An event that a function has begun is its own to judge, so the stretch that processes read does not begin before that.
func (c CheckpointRow) Move(at ShardRef, from, to events.Position, n Counts) store.Write {
	ops := append(at.namingOps(), setAttr(checkPosition, to.Value()), setAttr(checkTo, to.Value()), addTo(checkMoves, 1), removeAttr(checkExpiry))
	if c.To != from || c.To.IsZero() || c.To.Compare(c.Last) < 0 {
		begin := from
		if c.Last.Compare(begin) > 0 {
			begin = c.Last
		}
		ops = append(ops, setAttr(checkFrom, placeOf(begin)))
	}
	last := value.Value{}
	if !c.Last.IsZero() {
		last = c.Last.Value()
	}
	return store.Write{Ref: at.Ref, If: store.Cond{{unmovedTest(from)}, {store.AsRead(checkLast, last)}}, Ops: append(ops, n.ops()...)}
}

// EndCheckpoint records that a shard is applied to its end, on condition that the
// checkpoint is where it was when that was seen.
func EndCheckpoint(at ShardRef, p events.Position) store.Write {
	return store.Write{Ref: at.Ref, If: store.Cond{{unmovedTest(p)}}, Ops: append(at.namingOps(), setAttr(checkDone, value.OfBool(true)), addTo(checkMoves, 1), removeAttr(checkExpiry))}
}

// OvertakeCheckpoint moves a checkpoint forward to a position, on condition that it is
// before that position. It counts no records.
func OvertakeCheckpoint(at ShardRef, to events.Position) store.Write {
	return store.Write{
		Ref: at.Ref, If: store.Cond{{{Attr: checkPosition, Is: store.Absent}, {Attr: checkPosition, Is: store.Lt, Value: to.Value()}}},
		Ops: append(at.namingOps(), setAttr(checkPosition, to.Value()), addTo(checkMoves, 1)),
	}
}

// MissCheckpoint records since when the stream no longer lists a finished shard, on
// condition that this is not recorded yet.
func MissCheckpoint(at ShardRef, since time.Time) store.Write {
	return store.Write{
		Ref: at.Ref, If: store.Cond{{isDone}, {{Attr: checkMissing, Is: store.Absent}}},
		Ops: []store.Op{setAttr(checkMissing, value.OfInt(since.Unix()))},
	}
}

// FindCheckpoint records that the stream lists a finished shard again.
func FindCheckpoint(at ShardRef) store.Write {
	return store.Write{Ref: at.Ref, If: store.Cond{{isDone}}, Ops: []store.Op{{Kind: store.Remove, Attr: checkMissing}}}
}

var isDone = store.Test{Attr: checkDone, Is: store.Exists}

// Drop deletes a checkpoint, on condition that its shard is done and that its
// position has not changed since it was read.
func (c CheckpointRow) Drop(at store.Ref) store.Write {
	return store.Write{Ref: at, Delete: true, If: store.Cond{{isDone}, {unmovedTest(c.At)}}}
}
