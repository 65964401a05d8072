// Package deadletter keeps changes that could not be applied, whole, in our own table: one letter for each. A letter has all that a
// retry needs. The retry itself belongs to the engine and to the kinds of projection; this package lists, keeps and deletes.
//
// A letter is kept before its cause is acknowledged, or in the same transaction. A crash in between leaves the record to be
// applied again, and the letter that is then kept has the same id.
package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Kind says which step could not be done, and so how a retry goes. It is stored in each
// letter and printed; a retry of a kind that this version does not know fails (ErrNoRetry).
type Kind string

// The kinds of dead letters.
const (
	Parked       Kind = "parked"       // an effect that a ledger refused, with its amounts
	Publish      Kind = "publish"      // a target row that refused the value that its ledger holds
	Number       Kind = "number"       // a distinct over its max, as long as it is
	Status       Kind = "status"       // a status with more rows or elements than its max, until it has fewer
	Row          Kind = "row"          // a copy or a history row that its table refused
	Set          Kind = "set"          // a row of a set that refused to show its part of the set
	Follow       Kind = "follow"       // a row that refused the value that it follows
	Notification Kind = "notification" // a notification that its table refused
	Document     Kind = "document"     // a search document that the index refused
	Image        Kind = "image"        // an image that a derivation cannot use; it adds nothing
	Gap          Kind = "gap"          // records that the stream had deleted before weir read them
	Record       Kind = "record"       // a recorded change, or bytes, that a replay cannot use
)

// Letter is a dead letter: one thing that could not be applied, with all that a retry
// needs.
type Letter struct {
	// ID is the same for the same letter, so that keeping it twice keeps it once.
	ID     string
	Kind   Kind
	Target string // its purpose, in a form for people
	// Reason is the error, for people; programs go by Kind.
	Reason string
	// ShardKey and Position say which record it was. Neither is set if there was none.
	ShardKey string
	Position events.Position
	Time     time.Time         // of the record
	Row      store.Ref         // the target, if that is a row; of a Image the row that cannot be used
	Adds     []projections.Add // the amounts that wait: field and amount
	Record   value.Item        // see owntable.RecordItem
	Raw      string            // of a Record that could not be decoded: its bytes
	// Of a Record: file, line and offset; of a Gap: where the records
	// are missing; of a Follow: the row that is followed.
	Source string

	// Cut has the size and the hash of a record, bytes or amounts that were too large to keep; "" for none.
	Cut string
	// Until is when TTL deletes the record or bytes, zero for never. Expired says that they are gone by now.
	Until   time.Time
	Expired bool

	parts int // how many rows besides the head hold the body
}

// ofRow are the kinds of letters about values that a row does not show.
var ofRow = []Kind{Number, Status, Publish}

// ID returns the id of the letter about a value that a row does not show.
func ID(kind Kind, row store.Ref) string {
	d := Letter{Kind: kind, Row: row}
	d.setID()
	return d.ID
}

// setID sets the id of a dead letter. The same letter always gets the same id, so
// keeping it twice keeps it once. The id is hexadecimal, so that it is easy to type as an
// argument. The id of a letter about a value that a row does not show (ofRow) depends only on the row, not on how
// the model describes it.
func (d *Letter) setID() {
	target, row := d.Target, d.Row
	if slices.Contains(ofRow, d.Kind) {
		target = ""
	}
	if d.Kind == Document { // the target says it
		row = store.Ref{}
	}
	parts := []string{string(d.Kind), target, owntable.RowText(row), d.ShardKey, d.Position.String(), d.Source}
	if d.Kind == Parked { // of a letter that names no shard, records of two rows may have one position
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
func Unusable(c *projections.Change, shard, target, reason string) Letter {
	return Letter{Kind: Image, Target: target, Reason: reason, Row: c.Row, ShardKey: shard, Position: c.Position, Record: RecordOf(c), Time: c.Time}
}

// KeysOf returns a change without its images, for a letter that keeps amounts: one change of a
// large row may have many.
func KeysOf(c *projections.Change) value.Item {
	return owntable.RecordItem(&events.Record{Table: c.Table.Name, Keys: c.Table.Item(c.Row.Key)})
}

// Shown returns the letter as it may leave weir: without hidden values, and with commands that can be typed. If that may be in amounts or
// bytes, which cannot be told apart, they are left out whole.
func (d *Letter) Shown(m *model.Model) Letter {
	out := *d
	if out.Reason = m.Typed(d.Reason); !m.Hides() {
		return out
	}
	if d.Kind != Gap {
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
func (d *Letter) ChangeRecord() events.Record {
	rec := owntable.RecordFrom(d.Record)
	rec.Position, rec.Time = d.Position, d.Time
	return rec
}

// ShardGap is the letter of a gap of a shard: records behind a position are missing. Those behind one position are one letter,
// also of several programs and however often it is kept: the backlog grows while nothing is applied.
func ShardGap(table, shard string, behind events.Position, what string, now time.Time) Letter {
	return Letter{
		Kind: Gap, Target: fmt.Sprintf("shard %s of %s", shard, table), Position: behind, Time: now.UTC(),
		Source: fmt.Sprintf("after %v", behind),
		Reason: fmt.Sprintf("records are missing after %v: %s; what is derived from them may be wrong. Run projector verify, which says what is wrong (docs/guide/operations.md, After a gap)", behind, what),
	}
}

// ErrNoRetry says that another attempt cannot have another result.
var ErrNoRetry = errors.New("a retry would end the same way; correct what it came from, then discard this")

// Whole returns an error that wraps ErrNoRetry if a record, bytes or amounts that a retry needs were cut, or have expired.
func (d *Letter) Whole() error {
	if d.Expired {
		return fmt.Errorf("%s: its record expired at %s (--letter-ttl); replay the file again, or run projector build MODEL --again: %w", d.ID, d.Until.Format(time.RFC3339), ErrNoRetry)
	}
	if d.Cut == "" {
		return nil
	}
	return fmt.Errorf("%s: %s, were too large to keep; replay the file again, or run projector build MODEL --again: %w", d.ID, d.Cut, ErrNoRetry)
}

// Change returns the change that the letter keeps. The error wraps ErrNoRetry if the
// model has no such rows any more.
func (d *Letter) Change(m *model.Model) (projections.Change, error) {
	rec := d.ChangeRecord()
	t := m.Table(rec.Table)
	if t == nil {
		return projections.Change{}, fmt.Errorf("%s: the record is of no table of the model any more: %w", d.ID, ErrNoRetry)
	}
	c, ok := projections.NewChange(t, &rec)
	if !ok || c.Is == nil && c.Was == nil {
		return c, fmt.Errorf("%s: the record is of none of the model's entities any more: %w", d.ID, ErrNoRetry)
	}
	return c, nil
}
