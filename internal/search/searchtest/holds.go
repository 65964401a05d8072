package searchtest

import (
	"slices"
	"testing"

	"weir/internal/search"
	"weir/internal/value"
)

// testHolds: an index reports whether it holds a document with this content, at any
// position.
func testHolds(t *testing.T, b *bench) {
	full := with(b.doc("full", "Crème brûlée"), fields("group", value.OfString("a"), "n", value.OfInt(5), "tags", value.OfList(value.OfString("x"), value.OfString("y"))))
	bare, ended, elsewhere := b.doc("bare", ""), b.doc("ended", "text"), b.doc("full", "Crème brûlée")
	bare.Text, elsewhere.Index = nil, others
	b.apply(full, bare, ended, elsewhere)
	b.apply(b.gone("ended"))

	again := full
	again.Position = b.next()
	words, value1, fewer, lost := again, again, again, again
	words.Text = []string{"Crème caramel"}
	value1.Values = fields("group", value.OfString("b"), "n", value.OfInt(5), "tags", full.Values["tags"])
	fewer.Values = fields("group", value.OfString("a"), "n", value.OfInt(5), "tags", value.OfList(value.OfString("x")))
	lost.Values = nil
	there := elsewhere
	there.Text = []string{"other"}
	for _, c := range []struct {
		doc  search.Document
		want bool
	}{
		{full, true}, {again, true}, {bare, true}, {elsewhere, true},
		{words, false}, {value1, false}, {fewer, false}, {lost, false}, {there, false},
		{ended, false}, {b.doc("never", "text"), false},
	} {
		got, err := b.ix.Holds(b.t.Context(), []search.Document{c.doc, again})
		if err != nil || !slices.Equal(got, []bool{c.want, true}) {
			t.Errorf("%v of %s %q %v: %v, %v, want %v and true", c.doc.ID, c.doc.Index, c.doc.Text, c.doc.Values, got, err, c.want)
		}
	}
	other := words // another content may be written at the same position
	other.Position = full.Position
	b.apply(other)
	if got, err := b.ix.Holds(b.t.Context(), []search.Document{other}); err != nil || !got[0] {
		t.Errorf("another document at the same position: %v, %v", got, err)
	}
	b.apply(words)
	if got, err := b.ix.Holds(b.t.Context(), []search.Document{words, full}); err != nil || !slices.Equal(got, []bool{true, false}) {
		t.Errorf("after another change: %v, %v", got, err)
	}
	if _, err := b.ix.Holds(b.t.Context(), []search.Document{{Index: "nowhere", ID: "a"}}); err == nil {
		t.Error("an index that is not there holds something")
	}
}
