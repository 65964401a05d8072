// Package search is where documents live: the contract that every driver keeps, in prose
// and code here and as a suite in searchtest. An Index is all of it: there are no optional
// parts that a user finds by a type assertion.
//
// A document is what an index needs to find a row: the row's words, the values of
// its filters and sorts, and the position of the change that made it. The row
// itself stays in the store; an answer is a list of ids, best first.
//
// What every driver owes:
//
//   - Newest wins. Apply leaves a document alone whose position is above the one
//     given (one at the same position is that change again, and may be written
//     again), and a document that was deleted stays deleted against older positions,
//     for 48 hours at the least. The order in which changes arrive, and how often,
//     makes no difference to what is found.
//   - Words. Text is cut into words by Words, on both sides, so that drivers cannot
//     differ in it.
//   - Best first. An answer without a sort is in the order of Score, equal ones by id. A
//     Score depends on the query and the document alone, so that what matches throughout,
//     and is not itself changed, comes exactly once on the pages of an answer, whatever
//     else is written meanwhile.
//   - Durability. What Apply acknowledged survives a crash, together with its
//     position.
//   - Each change is answered on its own: one that is refused stops no other.
package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/events"
	"weir/internal/value"
)

// The kinds of error, by what the caller does next. Every other error is worth
// another try.
var (
	// ErrRefused: this document can never be indexed as it is. Park it.
	ErrRefused = errors.New("the document is refused")
	// ErrQuery: this query can never be answered. Tell who asked.
	ErrQuery = errors.New("the query is wrong")
	// ErrCursor is an ErrQuery: After did not come from an answer to this query.
	ErrCursor = fmt.Errorf("%w: the cursor is not one of this query", ErrQuery)
)

// Schema describes an index.
type Schema struct {
	Name    string   // as the driver names it, e.g. "gallery-albums"
	Filters []string // fields that a query may fix to a value
	Sorts   []string // fields that a query may order by
	// Version stands for all else that a document depends on. Where it, Filters or
	// Sorts differ from what an index was made with, the index is made anew.
	Version string
}

// Document is one change of one document: the newest state of it, or its end.
type Document struct {
	Index    string
	ID       string // unique in the index; up to MaxID bytes of UTF-8
	Position events.Position
	Deleted  bool
	Text     []string               // to be cut into words; all fields together
	Values   map[string]value.Value // filters and sorts: String, Number, Bool; a list or string set matches by any element
}

// Clone is a copy that shares no memory with what the document was made from.
func (d Document) Clone() Document {
	d.ID = strings.Clone(d.ID)
	d.Text = slices.Clone(d.Text)
	for i, t := range d.Text {
		d.Text[i] = strings.Clone(t)
	}
	values := d.Values
	d.Values = make(map[string]value.Value, len(values))
	for name, v := range values {
		d.Values[name] = v.Clone()
	}
	return d
}

// Size is about how many bytes the document takes.
func (d *Document) Size() int {
	n := len(d.ID)
	for _, t := range d.Text {
		n += len(t)
	}
	for name, v := range d.Values {
		n += value.Item{{Name: name, Value: v}}.Size()
	}
	return n
}

// Check is what every driver asks of a document; its error is an ErrRefused.
func (d *Document) Check() error {
	switch {
	case d.ID == "":
		return fmt.Errorf("%w: it has no id", ErrRefused)
	case len(d.ID) > MaxID:
		return fmt.Errorf("%w: its id has %d bytes, at most %d are possible: %.40q…", ErrRefused, len(d.ID), MaxID, d.ID)
	case !utf8.ValidString(d.ID):
		return fmt.Errorf("%w: its id is not UTF-8: %q", ErrRefused, d.ID)
	}
	return nil
}

// Query is what a person asked for.
type Query struct {
	Index string
	// Text is words as typed. Blank text matches every document; text in which
	// there is no word matches none.
	Text    string
	Filters map[string]value.Value
	Sort    string // a field of Sorts, "" for best first
	Reverse bool   // the order of Sort backwards; ids stay ascending
	Limit   int    // at least 1
	After   string
	// Fuzzy forgives a typo (one inserted, lost, wrong or swapped letter) in words
	// that MayForgive; otherwise words match whole, the last also as a beginning.
	Fuzzy bool
}

// Hit is a document found. After continues a query behind it.
type Hit struct {
	ID    string
	After string
}

// Index is what every driver is, whole. All methods may be called from many goroutines.
type Index interface {
	// Apply takes changes in any order, several to one document too. The answer has
	// an error (or nil) for each; a change that came too late is not an error. The
	// second result is for what no single answer can say: then any may have happened.
	Apply(ctx context.Context, docs []Document) ([]error, error)
	// Search returns at most Limit hits. Equal ones are in the order of their ids.
	// Documents without the field of Sort come last.
	Search(ctx context.Context, q Query) ([]Hit, error)
	// Holds reports for each document whether the index has one under its id of the
	// same text and values, at whatever position. It sees what Apply acknowledged.
	Holds(ctx context.Context, docs []Document) ([]bool, error)
	// Positions are those of what the index holds under the documents' ids, which may
	// be the end of a document; zero for nothing. It sees what Apply acknowledged.
	Positions(ctx context.Context, docs []Document) ([]events.Position, error)
	// Fresh lists the indexes that lack documents of rows that are older than they: they
	// were made, or missed changes, and were not reported Filled since.
	Fresh() []string
	// Filled says that the rows that existed when the index was made are in it, or that
	// there were none. A crash before leaves it fresh.
	Filled(name string) error
	// Instance identifies what an index holds: it is another one whenever the index is
	// made again. The store remembers the instance that was filled, and gives it
	// to the driver that opens the index next. An index that is not the one noted is fresh.
	Instance(name string) string
	// Refresh has Search find all that Apply acknowledged before.
	Refresh(ctx context.Context) error
	// Close ends the index.
	Close() error
}
