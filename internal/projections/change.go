// Package projections has the parts that the projection kinds share when they decide the effects of a change:
// a change of one row, a batch's work on target rows, the faults of images,
// and how a rule makes a row. Each kind is a package below this one. The package is pure:
// it does no I/O, reads no clock and draws no random number.
//
// Everything follows one rule: a change contributes f(new) − f(old), where f(row) is all that
// a row contributes by itself. Insert, update, deletion, expiry and a move from one
// parent to another are therefore one case.
//
// The input and output of a kind:
//
//   - change.go: a Change is a record with its entities, which the runner made from one record.
//   - gather.go, contribute.go: the kind notes in a Gathered which targets the change asks for,
//     and the amount there. Each fault names the derivation that could not use an image.
//   - make.go, migrate.go, own.go: a rule makes a row from fields; a row keeps its application's
//     values, beside those that weir shows over them.
//   - ledger.go, limits.go: values of a ledger that a row cannot show, and those that exceed a limit of the
//     store, known before anything is written.
//
// Slices and items that are handed out share memory with the change; a caller that keeps one
// longer than the batch clones it.
package projections

import (
	"fmt"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Change is a decoded stream record, ready to fold: the row's key, its old image and its
// new image.
type Change struct {
	// Table and Row are in the model's names.
	Table   *model.Table
	Row     store.Ref
	Was, Is *model.Entity // the entity of each image; nil without one, or if it is not the model's
	// Old and New are the images; nil of an insert, and of a removal. Folds must not change
	// them.
	Old, New value.Item
	Position events.Position // in the stream that was read; orders the changes of one row
	Origin   events.Position // in the stream that first recorded the change; history shows it
	// Event is the event of a history's entry if it is none of the record: model.Enter or model.Leave (KeptEntry).
	Event string
	// Time is that of the record, in whole seconds. It orders nothing.
	Time time.Time
	// Record is the decoded record; a dead letter keeps it.
	Record *events.Record
}

// NewChange decodes a record of one of the model's tables. ok is false if the record's
// keys do not match the table's key schema.
func NewChange(t *model.Table, r *events.Record) (c Change, ok bool) {
	key, ok := t.KeyOf(r.Keys)
	if !ok {
		return Change{}, false
	}
	c = Change{
		Table: t, Row: store.Ref{Table: t.Name, Key: key},
		Old: r.Old, New: r.New, Was: t.Classify(r.Old), Is: t.Classify(r.New),
		Position: r.Position, Origin: r.Origin, Time: r.Time, Record: r,
	}
	if c.Origin.IsZero() {
		c.Origin = c.Position
	}
	return c, true
}

// MayBe reports whether the row was of an entity, or may have been before: another program may have made it a row
// of another kind since, and weir's rows about it go by its key.
func (c *Change) MayBe(e *model.Entity) bool { return e == c.Was || e.CanBe(c.Row) }

// PlannedChange returns the change that a planned write will make to a row; nth counts the
// writes of one command from 0. The stream has no record of the change yet, so it has no
// time. Its position only orders it among the writes of the command.
func PlannedChange(t *model.Table, ref store.Ref, old, new value.Item, nth int) Change {
	return Change{
		Table: t, Row: ref, Old: old, New: new, Was: t.Classify(old), Is: t.Classify(new),
		Origin: events.PositionOf(uint64(nth) + 1),
	}
}

// Add adds an amount to an accumulator in the ledger of a target
// row.
type Add struct {
	Target store.Ref
	Entity *model.Entity // of the target
	Field  string        // the accumulator's name in the ledger
	Amount value.Value   // a Number, never 0
	Of     string        // the derivation; of amounts that wait in a dead letter it is not known
}

// Put writes Image to a row that weir makes, as of Position. A nil Image removes the row.
type Put struct {
	Row      store.Ref
	Rule     *model.RowRule
	Image    value.Item // the whole row, except for the attributes that follow other rows
	Position events.Position
	Source   store.Ref // the row that the change is of
	Follows  []Following
	// Unclear says why the row's key does not tell which rows it is made from, so that another
	// source may make the same row: no row is made then. "" if it does.
	Unclear string
	Existed bool // the same row existed before this change
	Entered bool // and it followed the same rows
	// Recorded says that the change comes from a recording, the positions of which say nothing about those
	// of the store's stream.
	Recorded bool
}

// Version returns the value under which a row is made. That of a recorded change is below those of all
// changes of the stream, and above those of recorded changes before it.
func (p *Put) Version() value.Value {
	if p.Recorded {
		return owntable.RecordedVersion(p.Position)
	}
	return p.Position.Value()
}

// Following links an attribute of a row to the field of another row that it follows: the
// attribute takes that field's value.
type Following struct {
	*model.Follow
	Of store.Ref
}

// Fault says that a derivation cannot use an image. The image contributes nothing to that
// derivation. The runner keeps the record as a dead letter, unless the old image had the
// same fault.
type Fault struct {
	Derivation string
	Reason     string
}

// Faults collects why derivations cannot use the images of one change.
type Faults struct {
	new, old []Fault // of the new image, and of the old one
}

// NoteFault notes that a derivation cannot use the new image or, if old is set, the old image. A
// nil Faults notes nothing.
func (f *Faults) NoteFault(derivation, reason string, old bool) {
	if f == nil {
		return
	}
	if fault := (Fault{derivation, reason}); old {
		f.old = append(f.old, fault)
	} else {
		f.new = append(f.new, fault)
	}
}

// NewFaults returns the faults of the new image that the old image did not have.
func (f *Faults) NewFaults() []Fault {
	if len(f.new) == 0 { // as nearly always
		return nil
	}
	old := f.old
	return slices.DeleteFunc(f.new, func(fault Fault) bool { return slices.Contains(old, fault) })
}

// IsUsable reports whether an image passes the tests of a derivation's fields, and can be used: every kind
// asks this before it reads a field, so one rule of types holds for all. If a field has another type than
// declared, it notes a fault.
func (f *Faults) IsUsable(in *model.Input, image value.Item, old bool) bool {
	ok, unfit := in.Take(image)
	if unfit != nil {
		f.NoteFault(in.Derivation, unfit.String(), old)
	}
	return ok
}

// IsReachableKey reports whether a row of the table can have this key, which an image leads
// to. If not, it notes a fault.
func (f *Faults) IsReachableKey(derivation string, t *model.Table, k store.Key, old bool) bool {
	fault := t.KeyFault(k)
	if fault != "" {
		f.NoteFault(derivation, fault, old)
	}
	return fault == ""
}

// MakeRow returns the row that a rule makes from an image, with the rows that the result follows. ok is false if the rule
// does not select the image, or can make no row of it: then it notes a fault, unless a part of the key is missing.
func (f *Faults) MakeRow(c *Change, rule *model.RowRule, image value.Item, old bool) (p Put, ok bool) {
	if !f.IsUsable(&rule.Input, image, old) {
		return Put{}, false
	}
	if p, ok = MakeRow(c, rule, image); !ok {
		return p, false
	}
	if p.Unclear != "" {
		f.NoteFault(rule.Name, p.Unclear, old)
		return p, false
	}
	return p, f.IsReachableKey(rule.Name, rule.Into.Table, p.Row.Key, old)
}

// MaxHeld is the largest part of a row, in bytes, that a row of our own table may hold.
// The rest of that row is left for its bookkeeping.
const MaxHeld = 380 << 10

// FitsOwnTable reports whether size fits into a row of our own table. If not, it notes a fault.
func (f *Faults) FitsOwnTable(derivation, what string, size int, old bool) bool {
	if size > MaxHeld {
		f.NoteFault(derivation, fmt.Sprintf("%s has %d bytes, the limit is %d", what, size, MaxHeld), old)
	}
	return size <= MaxHeld
}

// ScalarOf returns the value of an expression that is a field or a constant, as rows are found by it.
func ScalarOf(x *model.Expr, row value.Item) value.Value {
	if x.Field != nil {
		return x.Field.Stored(row)
	}
	return x.Const
}

// KeyedRowOf names a row of the model's tables in a row of our own table.
func KeyedRowOf(m *model.Model, row store.Ref) owntable.KeyedRow {
	return owntable.KeyedRow{Table: row.Table, Key: m.Table(row.Table).Item(row.Key)}
}

// RowOf returns the row that a row of our own table names. ok is false if it names none of
// the model's.
func RowOf(m *model.Model, k owntable.KeyedRow) (row store.Ref, ok bool) {
	t := m.Table(k.Table)
	if t == nil {
		return row, false
	}
	key, ok := t.KeyOf(k.Key)
	return store.Ref{Table: t.Name, Key: key}, ok
}

// SameRow reports whether two references name the same row.
func SameRow(a, b store.Ref) bool {
	return a.Table == b.Table && value.Equal(a.Key.Partition, b.Key.Partition) && value.Equal(a.Key.Sort, b.Key.Sort)
}
