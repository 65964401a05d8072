// Package projections is the pure core: it folds a change of one row into what
// that change adds to derived data. It does no I/O, reads no clock and draws no
// number; the runner does what it asks for.
//
// Everything follows one rule: a change contributes f(new) − f(old), where f is
// what a row contributes by itself. Insert, edit, removal, expiry and a move from
// one parent to another are then one case, and a kind of projection is one short
// file: tally.go, row.go, follow.go, steps.go, document.go.
package projections

import (
	"fmt"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Change is a stream record made ready to fold: whose row it is, what it was and
// what it became.
type Change struct {
	Table    *model.Table
	Row      store.Ref
	Was, Is  *model.Entity // the entity of each image; nil where there is no image or it is none of the model's
	Old, New value.Item
	Position events.Position // in the stream it was read from: orders the changes of one row
	Origin   events.Position // as first recorded, which history shows
	Time     time.Time
	Record   *events.Record
}

// NewChange decodes a record of one of the model's tables. ok is false when the
// record's keys are not the table's.
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

// Planned is the change that a write makes of a row, the nth of several: the stream has
// no record of it yet, so it has no time, and no position but among those.
func Planned(t *model.Table, ref store.Ref, old, new value.Item, nth int) Change {
	return Change{
		Table: t, Row: ref, Old: old, New: new, Was: t.Classify(old), Is: t.Classify(new),
		Origin: events.PositionOf(uint64(nth) + 1),
	}
}

// Effects is what a change asks for. There are three kinds and no more: a search
// document is a Put into an index, a Fact and a Join are Puts into our own table,
// and a Tell is a Put for each follower in a list.
type Effects struct {
	Adds    []Add
	Puts    []Put
	Spreads []Spread
	Facts   []Fact
	Joins   []Join
	Tells   []Tell
	Faults  []Fault
	// Unfollows are followers that may be on a list for the last time.
	Unfollows []Unfollow

	had  []Fault      // of the old image
	adds []value.Attr // room for what one row adds
}

// Empty reports whether the change asks for nothing.
func (e *Effects) Empty() bool {
	return len(e.Adds)+len(e.Puts)+len(e.Spreads)+len(e.Unfollows)+len(e.Facts)+len(e.Joins)+len(e.Tells)+len(e.Faults) == 0
}

// Add adds an amount to an accumulator in the book of a target row.
type Add struct {
	Target store.Ref
	Entity *model.Entity // of the target
	Field  string        // the accumulator's name in the book
	Amount value.Value   // a Number, never 0
}

// Put makes a row of ours what Image says, as of Position; a nil Image removes it.
type Put struct {
	Row      store.Ref
	Rule     *model.RowRule
	Image    value.Item // whole but for what it follows
	Position events.Position
	Follows  []Following
	Existed  bool // the same row was there before this change
	Joined   bool // and followed the same
}

// Following says that an attribute of a row follows a field of another.
type Following struct {
	*model.Follow
	Of store.Ref
}

// Unfollow says that an attribute of a row followed a field of another, and that it does
// so no longer, unless a newer change says otherwise.
type Unfollow struct {
	Row store.Ref
	Following
}

// Spread gives a field's value to every row that follows it, as of Position. A
// Missing Value takes the attribute away. Gone says that there is no such row any more:
// Value is then the last one, for those who keep it.
type Spread struct {
	Source   store.Ref
	Entity   *model.Entity
	Field    string
	Value    value.Value
	Gone     bool
	Position events.Position
}

// Fault says that an image cannot be used by a derivation: it contributes nothing
// there, and the record is kept, unless the image before it had the same fault.
type Fault struct {
	Derivation string
	Reason     string
}

// fault notes that the new image, or with old the one before, cannot be used.
func (e *Effects) fault(derivation, reason string, old bool) {
	if f := (Fault{derivation, reason}); old {
		e.had = append(e.had, f)
	} else {
		e.Faults = append(e.Faults, f)
	}
}

// reachable reports whether a row of the table can have the key that an image leads
// to, and notes a fault where none can.
func (e *Effects) reachable(derivation string, t *model.Table, k store.Key, old bool) bool {
	fault := t.KeyFault(k)
	if fault != "" {
		e.fault(derivation, fault, old)
	}
	return fault == ""
}

// maxHeld is how much of a row another row of weir's own may hold, in bytes: its
// bookkeeping has room beside it.
const maxHeld = 380 << 10

// holds reports whether a row of weir's own can hold what an image asks for, and
// notes a fault where none can.
func (e *Effects) holds(derivation, what string, size int, old bool) bool {
	if size > maxHeld {
		e.fault(derivation, fmt.Sprintf("%s has %d bytes, the limit is %d", what, size, maxHeld), old)
	}
	return size <= maxHeld
}

// Fold is what a change asks for, over all kinds of projection but search, which
// is consumed apart (see Documents).
func Fold(c *Change) Effects {
	var e Effects
	foldTallies(c, &e)
	foldRows(c, &e)
	foldFollows(c, &e)
	foldUnfollows(c, &e)
	foldFacts(c, &e)
	foldJoins(c, &e)
	e.Faults = slices.DeleteFunc(e.Faults, func(f Fault) bool { return slices.Contains(e.had, f) })
	return e
}
