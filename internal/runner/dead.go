package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// DeadKind says what could not be done, and so what a retry does.
type DeadKind string

// The kinds of what is kept.
const (
	DeadParked   DeadKind = "parked"   // an effect on a target that waits in order behind one that was refused
	DeadPublish  DeadKind = "publish"  // a target's row refused the value its book holds
	DeadNumber   DeadKind = "number"   // a sum or a mean that no number can hold; it goes by itself when one can
	DeadRow      DeadKind = "row"      // a row of ours that the table refused
	DeadSet      DeadKind = "set"      // a row that refused to show its part of a set
	DeadFollow   DeadKind = "follow"   // a row of ours that refused the value of what it follows
	DeadTold     DeadKind = "told"     // a row for a follower that the table refused
	DeadDocument DeadKind = "document" // a document that the index refused
	DeadImage    DeadKind = "image"    // an image that a derivation cannot use, and that counts nothing there
	DeadGap      DeadKind = "gap"      // records of a stream that were gone before they were read
	DeadRecord   DeadKind = "record"   // a recorded change, or bytes, that a replay cannot use
)

// Dead is one thing that could not be applied, kept whole.
type Dead struct {
	ID       string
	Kind     DeadKind
	Target   string // what it was for, as people read it
	Reason   string
	Lane     string
	Position events.Position
	Time     time.Time         // of the record
	Row      store.Ref         // of the target, where it is a row
	Adds     []projections.Add // the amounts that wait: field and amount
	Record   value.Item        // "table", "keys", "old", "new", "expired": see RecordItem
	Raw      string            // of a DeadRecord that could not be read: the bytes
	Source   string            // of a DeadRecord: file, line and offset; of a DeadGap: from where to where; of a DeadFollow: what is followed

	parts int  // how many rows hold the record, beside its head
	more  bool // the body has Adds that the head has no room for
}

// identify names a thing that is kept so that the same one, kept twice, is one.
// The id is hexadecimal, so that it can be typed as an argument. That of a DeadNumber
// comes of its row alone, however a model describes it.
func (d *Dead) identify() {
	target := d.Target
	if d.Kind == DeadNumber {
		target = ""
	}
	parts := []string{string(d.Kind), target, book.RowText(d.Row), d.Lane, d.Position.String(), d.Source}
	sum := sha256.Sum256([]byte(strings.Join(parts, "|")))
	d.ID = hex.EncodeToString(sum[:8])
}

func recordJSON(c *projections.Change) value.Item {
	return RecordItem(&events.Record{Table: c.Table.Name, Keys: c.Table.Item(c.Row.Key), Old: c.Old, New: c.New})
}

// RecordItem is a record as it is kept: its table, keys and images, and whether
// TTL removed the row. Position and time stand beside it.
func RecordItem(rec *events.Record) value.Item {
	image := func(it value.Item) value.Value {
		if it == nil {
			return value.Value{}
		}
		return value.OfMap(it)
	}
	var expired value.Value
	if rec.Expired {
		expired = value.OfBool(true)
	}
	var table value.Value
	if rec.Table != "" {
		table = value.OfString(rec.Table)
	}
	return value.NewItem(attr("table", table), attr("keys", image(rec.Keys)), attr("old", image(rec.Old)), attr("new", image(rec.New)), attr("expired", expired))
}

// ChangeRecord is the record that was kept.
func (d *Dead) ChangeRecord() events.Record {
	image := func(name string) value.Item {
		if v := d.Record.Get(name); !v.IsMissing() {
			return v.Item()
		}
		return nil
	}
	return events.Record{
		Table: d.Record.Get("table").Text(), Keys: image("keys"), Old: image("old"), New: image("new"),
		Expired: !d.Record.Get("expired").IsMissing(), Position: d.Position, Time: d.Time,
	}
}

// describe names a row as people know it.
func (r *Runner) describe(ref store.Ref) string {
	t := r.Model.Table(ref.Table)
	if t == nil {
		return ref.Table
	}
	return ref.Table + " " + string(value.AppendPlainItem(nil, t.Item(ref.Key)))
}
