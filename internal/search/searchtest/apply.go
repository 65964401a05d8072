package searchtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/value"
)

// testReplaced: the older state of a document is not found.
func testReplaced(t *testing.T, b *bench) {
	b.apply(with(b.doc("a", "old words here"), map[string]value.Value{"group": value.OfString("x"), "n": value.OfInt(1)}))
	b.apply(with(b.doc("a", "new words"), map[string]value.Value{"group": value.OfString("y")}))
	b.apply(with(b.doc("b", "other"), map[string]value.Value{"n": value.OfInt(9)}))
	b.settle()
	b.found(search.Query{Text: "old"})
	b.found(search.Query{Text: "here"})
	b.found(search.Query{Text: "words"}, "a")
	b.found(search.Query{Filters: map[string]value.Value{"group": value.OfString("x")}})
	b.found(search.Query{Filters: map[string]value.Value{"group": value.OfString("y")}}, "a")
	b.ordered(search.Query{Sort: "n"}, "b", "a")
}

// testRefused: a document that cannot be indexed is refused, and no other.
func testRefused(t *testing.T, b *bench) {
	docs := []search.Document{
		b.doc("good", "one"), b.doc("", "two"), b.doc(strings.Repeat("x", search.MaxID+1), "three"),
		b.doc("\xff\xfe", "four"), b.doc("fine", "five"),
	}
	errs, err := b.ix.Apply(t.Context(), docs)
	failtest.On(t, err)
	for i, want := range []bool{false, true, true, true, false} {
		if got := errors.Is(errs[i], search.ErrRefused); got != want || !want && errs[i] != nil {
			t.Errorf("document %d (%.10q): %v", i, docs[i].ID, errs[i])
		}
	}
	b.found(search.Query{}, "good", "fine")

	errs, err = b.ix.Apply(t.Context(), []search.Document{{Index: "no-such-index", ID: "a"}, b.doc("more", "six")})
	if err != nil || errs[0] == nil || errors.Is(errs[0], search.ErrRefused) || errs[1] != nil {
		t.Errorf("an unknown index: %v, %v", errs, err)
	}
	if errs, err := b.ix.Apply(t.Context(), nil); len(errs) != 0 || err != nil {
		t.Errorf("nothing: %v, %v", errs, err)
	}
}

// testSeveralIndexes: an index does not find documents of another.
func testSeveralIndexes(t *testing.T, b *bench) {
	here, there := b.doc("same", "here"), b.doc("same", "there")
	there.Index = others
	b.apply(here, there)
	b.found(search.Query{}, "same")
	b.found(search.Query{Text: "there"})
	b.found(search.Query{Index: others, Text: "there"}, "same")
	gone := b.gone("same")
	gone.Index = others
	b.apply(gone)
	b.found(search.Query{Index: others})
	b.found(search.Query{Text: "here"}, "same")
}

// testFilled: a new index is fresh until it is reported filled, and only then may its
// instance be saved.
func testFilled(t *testing.T, b *bench) {
	fresh := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(slices.Values(b.ix.Fresh())); !slices.Equal(got, want) {
			t.Errorf("fresh are %q, want %q", got, want)
		}
	}
	fresh(items, others)
	b.put("a", "text") // a change does not fill the index
	fresh(items, others)
	for _, name := range []string{items, others} {
		if b.ix.Instance(name) == "" {
			t.Errorf("%s has no instance to remember", name)
		}
	}
	failtest.On(t, b.ix.Filled(items))
	fresh(others)
	if err := b.ix.Filled("no-such-index"); err == nil {
		t.Error("an index that is not there is filled")
	}
	fresh(others)
}

// testRefreshed: after Refresh, every change that was applied before is found.
func testRefreshed(t *testing.T, b *bench) {
	for i := range 5 {
		id := fmt.Sprint(i)
		b.put(id, "word"+id)
		failtest.On(t, b.ix.Refresh(t.Context()))
		hits, err := b.ix.Search(t.Context(), search.Query{Index: items, Text: "word" + id, Limit: 2})
		if err != nil || !slices.Equal(ids(hits), []string{id}) {
			t.Errorf("after a refresh %q is found as %q, %v", id, ids(hits), err)
		}
	}
}

// testClosed: every call of a closed index returns an error.
func testClosed(t *testing.T, b *bench) {
	b.put("a", "text")
	failtest.On(t, b.ix.Close())
	if err := apply(t.Context(), b.ix, []search.Document{b.doc("b", "text")}); err == nil {
		t.Error("Apply works after Close")
	}
	if _, err := b.ix.Search(t.Context(), search.Query{Index: items, Limit: 1}); err == nil {
		t.Error("Search works after Close")
	}
	if _, err := b.ix.Holds(t.Context(), []search.Document{b.doc("a", "text")}); err == nil {
		t.Error("Holds works after Close")
	}
}
