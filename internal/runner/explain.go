package runner

import (
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Asked names the value that is explained: an attribute of a row. The row need not exist;
// Entity is what its key says that it is.
type Asked struct {
	Row    store.Ref
	Entity *model.Entity
	Attr   string
}

// Explanation is one kind's part in explaining a value (package why). It does no I/O. The
// changes of a recording come twice, each time in their order: first to Made and Parts,
// all of them; then those of the rows behind the value to Parts and, if any kind had a
// part, to Value. A kind that has nothing to do for a method embeds BaseExplanation.
type Explanation interface {
	// Made returns the images that a change gives to a row with the asked row's key.
	Made(c *projections.Change) []value.Item
	// Parts says, for people, what a change adds to the value.
	Parts(c *projections.Change) []string
	// Behind reports whether a row, by its text, may contribute to the value though no
	// change of it had a part in the first pass.
	Behind(row string) bool
	// Value returns the value after a change, "" if the changes so far do not determine it.
	Value(c *projections.Change) string
	// MadeOf names something derived that the value is made of, "" for nothing. A recording has
	// its changes only if weir wrote the table that was recorded.
	MadeOf() string
}

// BaseExplanation explains nothing.
type BaseExplanation struct{}

// Made returns nothing.
func (BaseExplanation) Made(*projections.Change) []value.Item { return nil }

// Parts returns nothing.
func (BaseExplanation) Parts(*projections.Change) []string { return nil }

// Behind returns false.
func (BaseExplanation) Behind(string) bool { return false }

// Value returns "".
func (BaseExplanation) Value(*projections.Change) string { return "" }

// MadeOf returns "".
func (BaseExplanation) MadeOf() string { return "" }
