package owntable

import (
	"errors"
	"fmt"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// ErrRow is wrapped by the errors for a row of the own table that cannot be decoded. weir
// writes no such row: another program wrote it, or it was damaged. weir does not guess, so
// the work that needs the row stops.
var ErrRow = errors.New("a row of weir's own table cannot be read")

// unreadable returns an ErrRow that names the row, what is wrong with it, and what an
// operator can do.
func unreadable(row value.Item, attr, want, do string) error {
	return fmt.Errorf("%w: in table %s, row %s %s, attribute %s is %s, not %s: %s", ErrRow,
		TableName, quoted(row.Get(Partition)), quoted(row.Get(Sort)), attr, shown(row.Get(attr)), want, do)
}

// hidden is unreadable for an attribute whose value is a secret: the error does not show
// the value.
func hidden(row value.Item, attr, want, do string) error {
	return fmt.Errorf("%w: in table %s, row %s %s, attribute %s is not %s: %s", ErrRow,
		TableName, quoted(row.Get(Partition)), quoted(row.Get(Sort)), attr, want, do)
}

// quoted is a text for an error, so that blanks and control characters in it are seen.
func quoted(v value.Value) string { return fmt.Sprintf("%q", v.Text()) }

// shown is any value for an error, as JSON.
func shown(v value.Value) string {
	if v.IsMissing() {
		return "missing"
	}
	return string(value.AppendPlain(nil, v))
}

// whole returns an attribute that must be an integer of at least min.
func whole(row value.Item, attr string, min int64, do string) (int64, error) {
	n, ok := row.Get(attr).Int64()
	if !ok || n < min {
		return 0, unreadable(row, attr, fmt.Sprintf("a whole number from %d", min), do)
	}
	return n, nil
}

// text returns an attribute that must be a string, "" if the row does not have it.
func text(row value.Item, attr, do string) (string, error) {
	v := row.Get(attr)
	if !v.IsMissing() && v.Kind() != value.String {
		return "", unreadable(row, attr, "a text", do)
	}
	return v.Text(), nil
}

// position returns an attribute that must be a position, zero if the row does not have it.
func position(row value.Item, attr, do string) (events.Position, error) {
	v := row.Get(attr)
	p := events.PositionFrom(v)
	if p.IsZero() && !v.IsMissing() && !value.Equal(v, p.Value()) {
		return p, unreadable(row, attr, "a position of 17 bytes", do)
	}
	return p, nil
}

// flag reports whether a row has an attribute that is either true or absent.
func flag(row value.Item, attr, do string) (bool, error) {
	v := row.Get(attr)
	if !v.IsMissing() && !value.Equal(v, value.OfBool(true)) {
		return false, unreadable(row, attr, "true", do)
	}
	return !v.IsMissing(), nil
}

// set is an operation that gives an attribute a value.
func set(attr string, v value.Value) store.Op {
	return store.Op{Kind: store.Set, Attr: attr, Value: v}
}

// plus is an operation that adds to a number, which counts as 0 if it is absent.
func plus(attr string, n int64) store.Op {
	return store.Op{Kind: store.Add, Attr: attr, Value: value.OfInt(n)}
}

// equal holds if an attribute is this number; a missing one is not.
func equal(attr string, n int64) []store.Test {
	return []store.Test{{Attr: attr, Is: store.Eq, Value: value.OfInt(n)}}
}

// NotThere is the condition that a row of the own table does not exist.
func NotThere() store.Cond { return store.Cond{{{Attr: Partition, Is: store.Absent}}} }

// noted is what a row was when it was read: the attribute that every write of such a row
// changes. The zero noted stands for a row that does not exist.
type noted struct {
	there bool
	was   value.Value
}

// note remembers a row as it was read: whether it existed, and the attribute that says which state
// it had.
func note(row value.Item, attr string) noted { return noted{row != nil, row.Get(attr)} }

// same is the condition that the row has not changed since it was read.
func (n noted) same(attr string) store.Cond {
	if !n.there {
		return NotThere()
	}
	return store.Cond{{{Attr: Partition, Is: store.Exists}}, {store.AsRead(attr, n.was)}}
}

// unmoved is the test that a row is still at position p; for the zero Position, that it has
// no position yet.
func unmoved(p events.Position) store.Test {
	if p.IsZero() {
		return store.AsRead(Position, value.Value{})
	}
	return store.AsRead(Position, p.Value())
}
