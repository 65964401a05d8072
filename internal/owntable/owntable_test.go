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
	if owntable.JoinTexts([]string{long}) != short {
		t.Fatal("a long text is kept in another way: find out how, and who can type it")
	}
	if owntable.Claim("m", "e", "f", long).String() == owntable.Claim("m", "e", "f", short).String() || owntable.CommandResult("m", long).String() == owntable.CommandResult("m", short).String() ||
		owntable.SubscriberList("r", []string{long}) == owntable.SubscriberList("r", []string{short}) {
		t.Error("a short text has the key of a long one")
	}
	seen := map[string]string{}
	for _, texts := range [][]string{{"a"}, {"#a"}, {"%23a"}, {"##a"}, {"a#"}, {"a", "b"}, {"a|b"}, {"#"}, {"%23"}, {""}, {"", ""}, {long}, {short}, {"#" + owntable.Hash(short)}} {
		name, who := owntable.JoinTexts(texts), strings.Join(texts, "\x00")
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
		row(value.OfBinary("\x00|\xff:%"), value.OfBinary("")), row(value.OfString("B:x"), value.OfBinary("B:x")),
	} {
		got, ok := owntable.RowOf(owntable.RowText(r))
		if !ok || owntable.RowText(got) != owntable.RowText(r) || got.Key.Partition.Kind() != r.Key.Partition.Kind() || got.Key.Sort.Text() != r.Key.Sort.Text() {
			t.Errorf("%v becomes %v, %v", r, got, ok)
		}
	}
	for _, r := range []store.Ref{row(value.OfString(strings.Repeat("x", 800)), value.Value{}), row(value.OfBinary(strings.Repeat("\xff", 300)), value.Value{})} {
		if got, ok := owntable.RowOf(owntable.RowText(r)); ok {
			t.Errorf("%v becomes %v", r, got)
		}
	}
}

// TestLongRowOf: the text of a row with a long key tells the table and the ends of its key, whatever is in
// it, tells it from every other row, and is no longer than a key may be.
func TestLongRowOf(t *testing.T) {
	hostile := "A|*%" + elidedText + "é:\x00#|"
	long := func(begins, ends string) value.Value {
		return value.OfString(begins + strings.Repeat("|", 900) + ends)
	}
	texts := map[string]bool{}
	for _, c := range []struct {
		partition, sort value.Value
		is              owntable.Shape
	}{
		{long("ORG#1#TASK#", "#x"), value.OfString("METADATA"), owntable.Shape{Partition: "ORG#1#TASK#*#x", Sort: "METADATA"}},
		{long(hostile, hostile), long(hostile, ""), owntable.Shape{Partition: hostile + "*" + hostile, Sort: hostile + "*"}},
		{long("", ""), value.Value{}, owntable.Shape{Partition: "*"}},
		{long("", ""), value.OfInt(-12), owntable.Shape{Partition: "*", Sort: "-12"}},
		{value.OfBinary(strings.Repeat("\xff", 900)), long("N:", ":1"), owntable.Shape{Partition: "*", Sort: "N:*:1"}},
	} {
		text := owntable.RowText(store.Ref{Table: strings.Repeat("t", 255), Key: store.Key{Partition: c.partition, Sort: c.sort}})
		table, is, ok := owntable.LongRowOf(text)
		if !ok || table != strings.Repeat("t", 255) || !is.Overlaps(c.is) || !c.is.Overlaps(is) || is.Overlaps(owntable.Shape{Partition: "B*", Sort: "*"}) && c.is.Partition != "*" {
			t.Errorf("%s is %+v, %v", text, is, ok)
		}
		if len(text) > 1200 || texts[text] {
			t.Errorf("%d bytes, or the text of another: %s", len(text), text)
		}
		texts[text] = true
	}
	for _, text := range []string{"", "#", "#abc", "table|P|S", "#a|b|c|d|e"} {
		if _, _, ok := owntable.LongRowOf(text); ok {
			t.Errorf("%q is taken for a long row", text)
		}
	}
}

// elidedText is what stands for the middle of a long part; a key may have it too.
const elidedText = "%*"
