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
