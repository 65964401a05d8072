package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// DeadKind says what could not be done, and so what a retry does. It is stored in each
// letter and printed; a retry of a kind that this version does not know fails (ErrNoRetry).
type DeadKind string

// The kinds of dead letters.
const (
	DeadParked       DeadKind = "parked"       // an effect that a ledger refused, with its amounts
	DeadPublish      DeadKind = "publish"      // a target row that refused the value that its ledger holds
	DeadNumber       DeadKind = "number"       // a distinct over its max, as long as it is
	DeadStatus       DeadKind = "status"       // a status with more rows or elements than its max, until it has fewer
	DeadRow          DeadKind = "row"          // a copy or a history row that its table refused
	DeadSet          DeadKind = "set"          // a row of a set that refused to show its part of the set
	DeadFollow       DeadKind = "follow"       // a row that refused the value that it follows
	DeadNotification DeadKind = "notification" // a notification that its table refused
	DeadDocument     DeadKind = "document"     // a search document that the index refused
	DeadImage        DeadKind = "image"        // an image that a derivation cannot use; it adds nothing
	DeadGap          DeadKind = "gap"          // records that the stream had deleted before weir read them
	DeadRecord       DeadKind = "record"       // a recorded change, or bytes, that a replay cannot use
)

// Dead is a dead letter: one thing that could not be applied, with all that a retry
// needs.
type Dead struct {
	// ID is the same for the same letter, so that keeping it twice keeps it once.
	ID     string
	Kind   DeadKind
	Target string // what it was for, in a form for people
	// Reason is the error, for people; programs go by Kind.
	Reason string
	// ShardKey and Position say which record it was. Neither is set if there was none.
	ShardKey string
	Position events.Position
	Time     time.Time         // of the record
	Row      store.Ref         // the target, if that is a row; of a DeadImage the row that cannot be used
	Adds     []projections.Add // the amounts that wait: field and amount
	Record   value.Item        // see owntable.RecordItem
	Raw      string            // of a DeadRecord that could not be decoded: its bytes
	// Of a DeadRecord: file, line and offset; of a DeadGap: where the records
	// are missing; of a DeadFollow: what is followed.
	Source string

	// Cut has the size and the hash of a record, bytes or amounts that were too large to keep; "" for none.
	Cut string

	parts int // how many rows besides the head hold the body
}

// identify sets the id of a dead letter. The same letter always gets the same id, so
// keeping it twice keeps it once. The id is hexadecimal, so that it is easy to type as an
// argument. The id of a DeadNumber, DeadStatus or DeadPublish depends only on its row, not on how
// the model describes the row.
func (d *Dead) identify() {
	target, row := d.Target, d.Row
	if _, is := lacks[d.Kind]; is {
		target = ""
	}
	if d.Kind == DeadDocument { // the target says it
		row = store.Ref{}
	}
	parts := []string{string(d.Kind), target, owntable.RowText(row), d.ShardKey, d.Position.String(), d.Source}
	if d.Kind == DeadParked { // of a letter that names no shard, records of two rows may have one position
		rec := owntable.RecordFrom(d.Record)
		parts = append(parts, rec.Table, string(value.AppendPlainItem(nil, rec.Keys)))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "|")))
	d.ID = hex.EncodeToString(sum[:8])
}

// RecordOf returns a change as a dead letter keeps it (owntable.RecordItem).
func RecordOf(c *projections.Change) value.Item {
	return owntable.RecordItem(&events.Record{Table: c.Table.Name, Keys: c.Table.Item(c.Row.Key), Old: c.Old, New: c.New})
}

// Unusable returns the letter of a change of a row from which a target cannot be derived.
func Unusable(c *projections.Change, shard, target, reason string) Dead {
	return Dead{Kind: DeadImage, Target: target, Reason: reason, Row: c.Row, ShardKey: shard, Position: c.Position, Record: RecordOf(c), Time: c.Time}
}

// keysOf returns a change without its images, for a letter that keeps amounts: one change of a
// large row may have many.
func keysOf(c *projections.Change) value.Item {
	return owntable.RecordItem(&events.Record{Table: c.Table.Name, Keys: c.Table.Item(c.Row.Key)})
}

// Shown returns the letter as it may leave weir: without what the model hides, and with commands that can be typed. If that may be in amounts or bytes, which
// cannot be told apart, they are left out whole.
func (d *Dead) Shown(m *model.Model) Dead {
	out := *d
	if out.Reason = m.Typed(d.Reason); !m.Hides() {
		return out
	}
	if d.Kind != DeadGap {
		out.Reason = m.ShownText(out.Reason)
	}
	if len(d.Record) > 0 {
		rec := owntable.RecordFrom(d.Record)
		rec.Old, rec.New = m.Shown(nil, rec.Old), m.Shown(nil, rec.New)
		out.Record = owntable.RecordItem(&rec)
	}
	out.Cut, _, _ = strings.Cut(d.Cut, ",") // the hash tells whether a guess is right
	if out.Adds = nil; d.Raw != "" {
		out.Raw = model.HiddenText
	}
	return out
}

// ChangeRecord returns the stream record that the dead letter keeps.
func (d *Dead) ChangeRecord() events.Record {
	rec := owntable.RecordFrom(d.Record)
	rec.Position, rec.Time = d.Position, d.Time
	return rec
}

// Describe names a row in a form for people.
func (r *Runner) Describe(ref store.Ref) string {
	t := r.Model.Table(ref.Table)
	if t == nil {
		return ref.Table
	}
	return ref.Table + " " + string(value.AppendPlainItem(nil, t.Item(ref.Key)))
}

// ShardGap is the letter of a gap of a shard: records behind a position are missing. Those behind one position are one letter,
// also of several programs and however often it is kept: what is missing grows while nothing is applied.
func ShardGap(table, shard string, behind events.Position, what string, now time.Time) Dead {
	return Dead{
		Kind: DeadGap, Target: fmt.Sprintf("shard %s of %s", shard, table), Position: behind, Time: now.UTC(),
		Source: fmt.Sprintf("after %v", behind),
		Reason: fmt.Sprintf("records are missing after %v: %s; what is derived from them may be wrong. Run projector verify, which says what is wrong (docs/guide/operations.md, After a gap)", behind, what),
	}
}
