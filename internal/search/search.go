// Package search is the contract of the search index. Every driver keeps it. It is in
// prose and code here, and as a test suite in searchtest. Index is the whole interface:
// there are no optional parts behind a type assertion.
//
// A document is the part of a row by which an index finds it: the row's words, the values of its
// filters and sorts, and the position of the change that made it. The row itself stays
// in the store. An answer is a list of ids, best first.
//
// The duties of every driver:
//
//   - Newest wins. Apply leaves a document alone if its position is above the position of
//     the change. (A change at the same position is the same change again, and may be
//     written again.) A deleted document stays deleted against older positions, for at
//     least 48 hours. The order in which changes arrive, and how often, makes no
//     difference to the hits.
//   - Words. Text is cut into words by Words, in documents and in queries, so that drivers
//     cannot differ in it.
//   - Best first. An answer without a sort is in the order of Score, and of ids where scores
//     are equal. A Score depends only on the query and the document. So a document that
//     matches throughout and does not change appears exactly once on the pages of an
//     answer, whatever else is written meanwhile.
//   - Durability. Every acknowledged change survives a crash, together with its position.
//   - Separate results. Each change has its own result; a refused change stops no other.
//   - One index for each definition. Schemas of one Name that differ in Version, Filters
//     or Sorts are different indexes at different places. A driver that is opened with one
//     of them neither reads nor changes the others, so programs with different definitions
//     may run side by side, and one may be filled while another answers. Drop deletes one.
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

// The kinds of error. They differ in the caller's next step. After every other
// error, the caller may try again.
var (
	// ErrRefused: this document can never be indexed as it is. Store it as a dead
	// letter.
	ErrRefused = errors.New("the document is refused")
	// ErrGone: the index is not there. If it was opened before, open it again, and fill it.
	ErrGone = errors.New("the index is not there")
	// ErrQuery: this query can never be answered. Return the error to the client.
	ErrQuery = errors.New("the query is wrong")
	// ErrCursor is an ErrQuery: After is not from an answer to this query.
	ErrCursor = fmt.Errorf("%w: the cursor is not one of this query", ErrQuery)
)

// Schema describes an index.
type Schema struct {
	Name    string   // in the driver's form, e.g. "gallery-albums"
	Filters []string // fields by which a query may filter
	Sorts   []string // fields by which a query may sort
	// Version stands for everything else that a document depends on.
	Version string
}

// Document is one change of one document: its newest state, or its deletion.
type Document struct {
	Index    string
	ID       string // unique in the index; up to MaxID bytes of UTF-8
	Position events.Position
	Deleted  bool
	Text     []string               // to be cut into words; all parts together
	Values   map[string]value.Value // filters and sorts: String, Number, Bool; a list or string set matches by any element
}

// Clone is a copy that shares no memory with the source of the document.
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

// Size is approximately the number of bytes that the document takes.
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

// Check checks the rules that every driver has for a document; its error wraps ErrRefused.
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

// Group sorts documents, by their places in docs, by the index of each, which a driver finds by its name. errs has why a
// document is in no group: there is no such index, or no index takes it.
func Group[I comparable](docs []Document, index func(name string) (I, error)) (groups map[I][]int, errs []error) {
	groups, errs = map[I][]int{}, make([]error, len(docs))
	for i := range docs {
		of, err := index(docs[i].Index)
		if err == nil {
			err = docs[i].Check()
		}
		if errs[i] = err; err == nil {
			groups[of] = append(groups[of], i)
		}
	}
	return groups, errs
}

// Query is a search request.
type Query struct {
	Index string
	// Text has the words as typed. Blank text matches every document; text without any
	// word, such as punctuation, matches none.
	Text    string
	Filters map[string]value.Value
	Sort    string // a field of Sorts, "" for the order of scores
	Reverse bool   // reverses the order of Sort; ids stay ascending
	Limit   int    // at least 1
	After   string
	// Fuzzy forgives one typo (a letter added, removed or replaced, or two swapped) in
	// each word that MayForgive. Without Fuzzy, words match only as whole words, the
	// last one also as a beginning.
	Fuzzy bool
}

// Hit is a document that was found. After continues the query behind it.
type Hit struct {
	ID    string
	After string
}

// Index is the interface that every driver implements as a whole. All methods may be
// called from many goroutines at the same time.
type Index interface {
	// Apply writes changes. They may come in any order, also several of one document.
	// The first result has an error or nil for each change; a change that came too late
	// is not an error. If the second result is an error, each change may have been
	// written or not.
	Apply(ctx context.Context, docs []Document) ([]error, error)
	// Search returns at most Limit hits. Equal hits are in the order of their ids.
	// Documents without the field of Sort come last.
	Search(ctx context.Context, q Query) ([]Hit, error)
	// Holds reports for each document whether the index has, under its id, a document
	// with the same text and values, at any position. It sees every acknowledged
	// change.
	Holds(ctx context.Context, docs []Document) ([]bool, error)
	// Fresh lists the indexes that may lack documents of rows older than the index:
	// they were made, or missed changes, and were not reported Filled since.
	Fresh() []string
	// Filled says that all rows that existed when the index was made are in it, or that
	// there were none. After a crash before Filled, the index is still fresh.
	Filled(name string) error
	// Instance identifies the content of an index: it changes whenever the index is made
	// again. The store remembers the instance that was filled, and gives it to the
	// driver that opens the index next. An index with another instance is fresh.
	Instance(name string) string
	// Look returns ErrGone if an index is not there, or is another one than when it was opened.
	Look(ctx context.Context) error
	// Place is where the driver keeps an index. It stands for the index's definition: it
	// is the same whenever a schema is opened, and another one for every other definition.
	Place(name string) string
	// Drop deletes the index at a place, which may have been made by another program for
	// another definition. A place of this driver's own schemas is an error. If nothing is
	// at the place, Drop does nothing.
	Drop(ctx context.Context, place string) error
	// Refresh makes Search find every change that Apply acknowledged before.
	Refresh(ctx context.Context) error
	// Close ends the index.
	Close() error
}
