package sim

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/search"
	"weir/internal/value"
)

// index is the simulated search index: the newest change of a document wins, and
// what was deleted is remembered.
type index struct {
	docs map[string]search.Document
}

func newIndex() *index { return &index{docs: map[string]search.Document{}} }

func docName(d *search.Document) string { return d.Index + "\x00" + d.ID }

func (x *index) apply(docs []search.Document) []error {
	errs := make([]error, len(docs))
	for i := range docs {
		d := docs[i]
		if errs[i] = d.Check(); errs[i] != nil {
			continue
		}
		if was, ok := x.docs[docName(&d)]; !ok || was.Position.Compare(d.Position) <= 0 {
			x.docs[docName(&d)] = d
		}
	}
	return errs
}

// Apply takes changes.
func (x *index) Apply(_ context.Context, docs []search.Document) ([]error, error) {
	return x.apply(docs), nil
}

// Holds compares documents with those that are kept.
func (x *index) Holds(_ context.Context, docs []search.Document) ([]bool, error) {
	out := make([]bool, len(docs))
	for i := range docs {
		d, is := x.docs[docName(&docs[i])]
		out[i] = is && !d.Deleted && slices.Equal(d.Text, docs[i].Text) && maps.EqualFunc(d.Values, docs[i].Values, value.Equal)
	}
	return out, nil
}

// Positions are those of what is kept.
func (x *index) Positions(_ context.Context, docs []search.Document) ([]events.Position, error) {
	out := make([]events.Position, len(docs))
	for i := range docs {
		out[i] = x.docs[docName(&docs[i])].Position
	}
	return out, nil
}

// Search finds documents that have all the words asked for, whole.
func (x *index) Search(_ context.Context, q search.Query) ([]search.Hit, error) {
	var out []search.Hit
	want := search.Words(q.Text)
	for _, d := range x.docs {
		if d.Index != q.Index || d.Deleted {
			continue
		}
		have := map[string]bool{}
		for _, w := range search.Words(strings.Join(d.Text, " ")) {
			have[w] = true
		}
		if !slices.ContainsFunc(want, func(w string) bool { return !have[w] }) {
			out = append(out, search.Hit{ID: d.ID})
		}
	}
	slices.SortFunc(out, func(a, b search.Hit) int { return strings.Compare(a.ID, b.ID) })
	return out[:min(len(out), max(q.Limit, 1))], nil
}

// Close does nothing.
func (x *index) Close() error { return nil }
