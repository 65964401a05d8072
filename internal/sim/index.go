package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"weir/internal/events"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/value"
)

// index is the simulated search index. The newest change of a document wins, and deletions
// are remembered.
type index struct {
	mu      sync.Mutex // for the methods of search.Index; a run has one goroutine at a time
	closed  bool
	schemas map[string]*search.Schema
	fresh   map[string]bool
	docs    map[string]search.Document
}

var _ search.Index = (*index)(nil)

// newIndex makes an empty index for each schema.
func newIndex(schemas []search.Schema) *index {
	x := &index{docs: map[string]search.Document{}, schemas: map[string]*search.Schema{}, fresh: map[string]bool{}}
	for i := range schemas {
		x.schemas[schemas[i].Name], x.fresh[schemas[i].Name] = &schemas[i], true
	}
	return x
}

// begin begins a call, of one index if name is not empty. If err is nil, the caller unlocks
// x.mu.
func (x *index) begin(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.mu.Lock()
	var err error
	if name != "" {
		err = x.has(name)
	}
	if x.closed {
		err = errors.New("the search index is closed")
	}
	if err != nil {
		x.mu.Unlock()
	}
	return err
}

// has returns an error if there is no search index of that name.
func (x *index) has(name string) error {
	if x.schemas[name] == nil {
		return fmt.Errorf("there is no search index %q", name)
	}
	return nil
}

// docName is the key of a document over all indexes.
func docName(d *search.Document) string { return d.Index + "\x00" + d.ID }

// apply applies changes, each with an error of its own. The caller holds x.mu, or is the
// only goroutine that uses the index.
func (x *index) apply(docs []search.Document) []error {
	errs := make([]error, len(docs))
	for i := range docs {
		d := docs[i]
		if errs[i] = x.has(d.Index); errs[i] == nil {
			errs[i] = d.Check()
		}
		if errs[i] != nil {
			continue
		}
		if was, ok := x.docs[docName(&d)]; !ok || was.Position.Compare(d.Position) <= 0 {
			x.docs[docName(&d)] = d
		}
	}
	return errs
}

// Apply applies changes.
func (x *index) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	if err := x.begin(ctx, ""); err != nil {
		return nil, err
	}
	defer x.mu.Unlock()
	return x.apply(docs), nil
}

// Holds compares documents with the stored ones.
func (x *index) Holds(ctx context.Context, docs []search.Document) ([]bool, error) {
	if err := x.begin(ctx, ""); err != nil {
		return nil, err
	}
	defer x.mu.Unlock()
	out := make([]bool, len(docs))
	for i := range docs {
		if err := x.has(docs[i].Index); err != nil {
			return nil, err
		}
		d, is := x.docs[docName(&docs[i])]
		out[i] = is && !d.Deleted && slices.Equal(d.Text, docs[i].Text) && maps.EqualFunc(d.Values, docs[i].Values, value.Equal)
	}
	return out, nil
}

// Positions are the positions of the stored documents.
func (x *index) Positions(ctx context.Context, docs []search.Document) ([]events.Position, error) {
	if err := x.begin(ctx, ""); err != nil {
		return nil, err
	}
	defer x.mu.Unlock()
	out := make([]events.Position, len(docs))
	for i := range docs {
		if err := x.has(docs[i].Index); err != nil {
			return nil, err
		}
		out[i] = x.docs[docName(&docs[i])].Position
	}
	return out, nil
}

// Search finds documents by the plan of the query.
func (x *index) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if err := x.begin(ctx, q.Index); err != nil {
		return nil, err
	}
	defer x.mu.Unlock()
	plan, err := x.schemas[q.Index].Plan(q)
	if err != nil || plan.Nothing {
		return nil, err
	}
	var found []search.Place
	for _, d := range x.docs {
		if d.Index != q.Index || d.Deleted || !passesFilters(&d, &plan) {
			continue
		}
		at, ok := placeOf(&d, &plan)
		if ok && (plan.After == nil || plan.Compare(at, *plan.After) > 0) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, plan.Compare)
	var hits []search.Hit
	for _, at := range found[:min(len(found), plan.Limit)] {
		hits = append(hits, search.Hit{ID: at.ID, After: at.String()})
	}
	return hits, nil
}

// passesFilters reports whether a document has all terms that the plan filters by.
func passesFilters(d *search.Document, p *search.Plan) bool {
	return !slices.ContainsFunc(p.Filters, func(f search.FieldTerm) bool {
		return !slices.Contains(search.Terms(d.Values[f.Field]), f.Term)
	})
}

// placeOf is the place of a document in the answer; ok is false if its words do not match.
func placeOf(d *search.Document, p *search.Plan) (search.Place, bool) {
	words := seq.Flat(d.Text, search.Words)
	var score search.Score
	matches := func(w string, last bool) bool {
		return countWords(&score, words, w, last, p.Fuzzy && search.MayForgive(w))
	}
	if slices.ContainsFunc(p.Words, func(w string) bool { return !matches(w, false) }) || !p.Every() && !matches(p.Last, true) {
		return search.Place{}, false
	}
	if p.Sort == "" {
		return search.PlaceByScore(score.Value(), d.ID), true
	}
	if key, ok := search.SortKey(d.Values[p.Sort]); ok {
		return search.PlaceByKey(key, d.ID), true
	}
	return search.PlaceLast(d.ID), true
}

// countWords counts how words match a wanted one, and reports whether any does.
func countWords(s *search.Score, words []string, want string, last, fuzzy bool) bool {
	whole := 0
	for _, w := range words {
		if w == want {
			whole++
		}
	}
	if whole > 0 {
		s.Whole(math.Sqrt(float64(whole) / float64(len(words))))
		return true
	}
	if last && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, want) }) {
		s.Beginning()
		return true
	}
	if fuzzy && slices.ContainsFunc(words, func(w string) bool { return oneEdit([]rune(w), []rune(want)) }) {
		s.Typo()
		return true
	}
	return false
}

// oneEdit reports whether one word becomes the other if a letter is inserted, lost, changed
// or swapped with the next.
func oneEdit(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		swapped := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && slices.Equal(a[i+2:], b[i+2:])
		return swapped || i < len(a) && slices.Equal(a[i+1:], b[i+1:])
	case 1:
		return slices.Equal(a[i:], b[i+1:])
	}
	return false
}

// Fresh are the indexes that were never filled.
func (x *index) Fresh() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Keys(x.fresh))
}

// Filled marks an index as complete.
func (x *index) Filled(name string) error {
	if err := x.begin(context.Background(), name); err != nil {
		return err
	}
	defer x.mu.Unlock()
	delete(x.fresh, name)
	return nil
}

// Instance is always the same: no index is ever created again.
func (x *index) Instance(string) string { return "simulated" }

// Place is the index itself: the simulated index has one definition.
func (x *index) Place(name string) string { return name }

// Look implements search.Index: nothing takes it away.
func (*index) Look(context.Context) error { return nil }

// Drop is never called: there are no other definitions.
func (x *index) Drop(context.Context, string) error { return errors.New("nothing else is here") }

// Refresh does nothing: changes are found as soon as they are applied.
func (x *index) Refresh(ctx context.Context) error { return ctx.Err() }

// Close closes the index.
func (x *index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return nil
}
