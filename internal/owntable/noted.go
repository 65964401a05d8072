package owntable

import (
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// noted is what a row was when it was read: the attribute that every write of such a row
// changes. The zero noted stands for a row that does not exist.
type noted struct {
	there bool
	was   value.Value
}

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

// setOr returns the operation that sets an attribute, or removes it if the value is
// Missing.
func setOr(attr string, v value.Value) store.Op {
	if v.IsMissing() {
		return remove(attr)
	}
	return set(attr, v)
}

// below is the test that a row has no value in an attribute or a lower one.
func below(attr string, v value.Value) []store.Test {
	return []store.Test{{Attr: attr, Is: store.Absent}, {Attr: attr, Is: store.Lt, Value: v}}
}
