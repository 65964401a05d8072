package owntable

import (
	"encoding/hex"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of tail|MODEL|SHARD have marks of records of a shard for which its checkpoint has no room any more (FunctionShardRow).
// A row has those of the records behind the position in its sort key, up to its position, and the next row goes on there. The row that
// goes on where the checkpoint's marks begin does not count yet. A function writes them, one for at least half of the records that a
// checkpoint has marks of, and each expires after two days: one write unit for 250 records. For example,
//
//	k tail|gallery|gallery:7f3a…  s 00…64  p 00…c8  m 400 bytes
const (
	tailTo    = Position
	tailMarks = readMarks
)

// TailRow has marks of records, in order: of those behind From, up to To.
type TailRow struct {
	From, To events.Position
	Marks    string
}

// Tail returns the partition key of the marks of a shard, and TailAt the sort key of the row behind a position.
func Tail(model, shardKey string) string { return "tail|" + model + "|" + shardKey }

// TailAt returns the sort key of the row that begins behind a position. Keys have the order of positions.
func TailAt(p events.Position) string { return hex.EncodeToString(p[:]) }

const tailDo = "delete the row: events of that time that come again are refused then"

// DecodeTail decodes a row of Tail. The error wraps ErrRow.
func DecodeTail(row value.Item) (t TailRow, err error) {
	key, _ := hex.DecodeString(row.Get(Sort).Text())
	if copy(t.From[:], key) != len(t.From) {
		return t, unreadableError(row, Sort, "a position", tailDo)
	}
	if t.To, err = decodePosition(row, tailTo, tailDo); err != nil {
		return t, err
	}
	t.Marks, err = decodeMarks(row, tailDo)
	return t, err
}

// Put makes the row, unless there is one behind the same position. The write returns the row.
func (t TailRow) Put(model, shardKey string, expires time.Time) store.Write {
	at := Ref(Tail(model, shardKey), TailAt(t.From))
	return store.Write{Ref: at, If: NotThere(), Return: true, Put: RefItem(at).With(
		newAttr(tailTo, t.To.Value()), newAttr(tailMarks, value.OfBinary(t.Marks)), newAttr(Expiry, value.OfInt(expires.Unix())))}
}
