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

// unreadableError returns an ErrRow that names the row, its fault, and the step that an
// operator can take.
func unreadableError(row value.Item, attr, want, do string) error {
	return fmt.Errorf("%w: in table %s, row %s %s, attribute %s is %s, not %s: %s", ErrRow,
		TableName, quoteText(row.Get(Partition)), quoteText(row.Get(Sort)), attr, quoteValue(row.Get(attr)), want, do)
}

// hiddenError is unreadable for an attribute whose value is a secret: the error does not show
// the value.
func hiddenError(row value.Item, attr, want, do string) error {
	return fmt.Errorf("%w: in table %s, row %s %s, attribute %s is not %s: %s", ErrRow,
		TableName, quoteText(row.Get(Partition)), quoteText(row.Get(Sort)), attr, want, do)
}

// quoteText is a text for an error, so that blanks and control characters in it are seen.
func quoteText(v value.Value) string { return fmt.Sprintf("%q", v.Text()) }

// quoteValue is any value for an error, as JSON.
func quoteValue(v value.Value) string {
	if v.IsMissing() {
		return "missing"
	}
	return string(value.AppendPlain(nil, v))
}

// decodeInt returns an attribute that must be an integer of at least min.
func decodeInt(row value.Item, attr string, min int64, do string) (int64, error) {
	n, ok := row.Get(attr).Int64()
	if !ok || n < min {
		return 0, unreadableError(row, attr, fmt.Sprintf("a whole number from %d", min), do)
	}
	return n, nil
}

// decodeText returns an attribute that must be a string, "" if the row does not have it.
func decodeText(row value.Item, attr, do string) (string, error) {
	v := row.Get(attr)
	if !v.IsMissing() && v.Kind() != value.String {
		return "", unreadableError(row, attr, "a text", do)
	}
	return v.Text(), nil
}

// decodePosition returns an attribute that must be a position, zero if the row does not have it.
func decodePosition(row value.Item, attr, do string) (events.Position, error) {
	v := row.Get(attr)
	p := events.PositionFrom(v)
	if p.IsZero() && !v.IsMissing() && !value.Equal(v, p.Value()) {
		return p, unreadableError(row, attr, "a position of 17 bytes", do)
	}
	return p, nil
}

// decodeFlag reports whether a row has an attribute that is either true or absent.
func decodeFlag(row value.Item, attr, do string) (bool, error) {
	v := row.Get(attr)
	if !v.IsMissing() && !value.Equal(v, value.OfBool(true)) {
		return false, unreadableError(row, attr, "true", do)
	}
	return !v.IsMissing(), nil
}

// setAttr is an operation that gives an attribute a value.
func setAttr(attr string, v value.Value) store.Op {
	return store.Op{Kind: store.Set, Attr: attr, Value: v}
}

// addTo is an operation that adds to a number, which counts as 0 if it is absent.
func addTo(attr string, n int64) store.Op {
	return store.Op{Kind: store.Add, Attr: attr, Value: value.OfInt(n)}
}

// equalTest holds if an attribute is this number; a missing one is not.
func equalTest(attr string, n int64) []store.Test {
	return []store.Test{{Attr: attr, Is: store.Eq, Value: value.OfInt(n)}}
}

// NotThere is the condition that a row of the own table does not exist.
func NotThere() store.Cond { return store.Cond{{{Attr: Partition, Is: store.Absent}}} }

// noted is the state of a row when it was read: the attribute that every write of such a row
// changes. The zero noted stands for a row that does not exist.
type noted struct {
	there bool
	was   value.Value
}

// noteRead remembers a row as it was read: whether it existed, and the attribute that says which state
// it had.
func noteRead(row value.Item, attr string) noted { return noted{row != nil, row.Get(attr)} }

// sameCondition is the condition that the row has not changed since it was read.
func (n noted) sameCondition(attr string) store.Cond {
	if !n.there {
		return NotThere()
	}
	return store.Cond{{{Attr: Partition, Is: store.Exists}}, {store.AsRead(attr, n.was)}}
}

// unmovedTest is the test that a row is still at position p; for the zero Position, that it has
// no position yet.
func unmovedTest(p events.Position) store.Test {
	if p.IsZero() {
		return store.AsRead(Position, value.Value{})
	}
	return store.AsRead(Position, p.Value())
}
