package owntable_test

import (
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLongTextsAreNotForged: a long text is kept by its hash, and nobody can type what
// that is; not for a claim, an idempotency key or a list of followers.
func TestLongTextsAreNotForged(t *testing.T) {
	long := strings.Repeat("k", 900)
	short := "#" + owntable.Hash(long)
	if owntable.Texts([]string{long}) != short {
		t.Fatal("a long text is kept in another way: find out how, and who can type it")
	}
	if owntable.Claim("m", "e", "f", long).String() == owntable.Claim("m", "e", "f", short).String() || owntable.Once("m", long).String() == owntable.Once("m", short).String() ||
		owntable.SubscriberList("r", []string{long}) == owntable.SubscriberList("r", []string{short}) {
		t.Error("a short text has the key of a long one")
	}
	seen := map[string]string{}
	for _, texts := range [][]string{{"a"}, {"#a"}, {"%23a"}, {"##a"}, {"a#"}, {"a", "b"}, {"a|b"}, {"#"}, {"%23"}, {""}, {"", ""}, {long}, {short}, {"#" + owntable.Hash(short)}} {
		name, who := owntable.Texts(texts), strings.Join(texts, "\x00")
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q are both %s", other, who, name)
		}
		seen[name] = who
	}
}

// TestRowOf: a text tells the row that it was made of, or that it does not.
func TestRowOf(t *testing.T) {
	row := func(partition, sort value.Value) store.Ref {
		return store.Ref{Table: "a.b-c", Key: store.Key{Partition: partition, Sort: sort}}
	}
	for _, r := range []store.Ref{
		row(value.OfString("A#1"), value.OfString("x|y:z%7C é")), row(value.OfString(""), value.Value{}), row(value.OfInt(-12), value.OfString("N:1")),
	} {
		got, ok := owntable.RowOf(owntable.RowText(r))
		if !ok || owntable.RowText(got) != owntable.RowText(r) || got.Key.Partition.Kind() != r.Key.Partition.Kind() || got.Key.Sort.Text() != r.Key.Sort.Text() {
			t.Errorf("%v becomes %v, %v", r, got, ok)
		}
	}
	for _, r := range []store.Ref{row(value.OfString(strings.Repeat("x", 800)), value.Value{}), row(value.OfBinary("b"), value.Value{})} {
		if got, ok := owntable.RowOf(owntable.RowText(r)); ok {
			t.Errorf("%v becomes %v", r, got)
		}
	}
}
