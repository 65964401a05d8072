package searchtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/search"
	"weir/internal/value"
)

func fields(pairs ...any) map[string]value.Value {
	m := map[string]value.Value{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1].(value.Value)
	}
	return m
}

func testFilters(t *testing.T, b *bench) {
	str, num := value.OfString, value.MustNumber
	long := strings.Repeat("ü", 20000)
	b.apply(
		with(b.doc("a", "red apple"), fields("group", str("x"), "n", num("1"), "tags", value.OfStrings([]string{"t1", "t2"}))),
		with(b.doc("b", "red pear"), fields("group", str("y"), "n", str("1"), "tags", value.OfList(str("t2"), num("3"), value.OfBool(true), value.OfNull()))),
		with(b.doc("c", "green apple"), fields("group", str("X"), "n", num("1.50"), "tags", str("t2"))),
		with(b.doc("d", "green pear"), fields("n", value.OfBool(true), "undeclared", str("x"))),
		with(b.doc("e", "blue"), fields("group", str(long), "n", value.OfBool(false))),
		with(b.doc("f", "blue"), fields("group", str(long+"!"), "n", str("true"), "tags", value.OfList())),
		with(b.doc("g", "blue"), fields("group", str(""), "n", value.OfNull())),
		with(b.doc("h", "blue"), fields("group", str("x y*"), "n", num("-1"))),
		with(b.doc("i", "blue"), fields("n", num("12345678901234567890123456789012345678"), "tags", value.OfList(value.OfList(str("t1"))))),
		with(b.doc("j", "blue"), fields("n", num("12345678901234567890123456789012345679"))),
	)
	b.settle()
	ns, _ := value.OfElements(value.NumberSet, []value.Attr{{Value: num("7")}, {Value: num("3")}})
	b.apply(with(b.doc("k", "blue"), fields("tags", ns)))
	b.settle()
	for _, c := range []struct {
		text   string
		filter map[string]value.Value
		want   string
	}{
		{"", fields("group", str("x")), "a"},
		{"", fields("group", str("X")), "c"},
		{"", fields("group", str("x y*")), "h"},
		{"", fields("group", str("*")), ""},
		{"", fields("group", str("")), "g"},
		{"", fields("group", str(long)), "e"},
		{"", fields("group", str(long+"!")), "f"},
		{"", fields("n", num("1")), "a"},
		{"", fields("n", num("1.0")), "a"},
		{"", fields("n", str("1")), "b"},
		{"", fields("n", num("1.5")), "c"},
		{"", fields("n", num("-1")), "h"},
		{"", fields("n", value.OfBool(true)), "d"},
		{"", fields("n", value.OfBool(false)), "e"},
		{"", fields("n", str("true")), "f"},
		{"", fields("n", num("12345678901234567890123456789012345678")), "i"},
		{"", fields("tags", str("t1")), "a"},
		{"", fields("tags", str("t2")), "a b c"},
		{"", fields("tags", num("3")), "b k"},
		{"", fields("tags", num("7")), "k"},
		{"", fields("tags", value.OfBool(true)), "b"},
		{"", fields("tags", str("t1 t2")), ""},
		{"", fields("tags", str("t2"), "group", str("y")), "b"},
		{"", fields("tags", str("t2"), "group", str("z")), ""},
		{"red", fields("tags", str("t2")), "a b"},
		{"apple", fields("tags", str("t2"), "n", num("1")), "a"},
		{"blue", fields("tags", str("t2")), ""},
		{"+", fields("tags", str("t2")), ""},
	} {
		b.found(search.Query{Text: c.text, Filters: c.filter}, strings.Fields(c.want)...)
	}
	// A typo is forgiven if nothing among the documents that pass the filters matches
	// as typed.
	b.put("l", "appel")
	b.settle()
	b.wait(search.Query{Text: "appel", Filters: fields("group", str("x"))}, []string{"a"}, true, find)
}

func testHostileFields(t *testing.T, b *bench) {
	names := []string{"a.assetId", "#", "with space", `"quoted"`, "ünï"}
	for i, name := range names {
		b.apply(with(b.doc(fmt.Sprint(i), "text"), fields(name, value.OfString("v"), "group", value.OfString("v"))))
	}
	b.apply(with(b.doc("5", "text"), fields("a", value.OfString("v"), "assetId", value.OfString("v"))))
	b.settle()
	for i, name := range names {
		b.found(search.Query{Filters: fields(name, value.OfString("v"))}, fmt.Sprint(i))
	}
	b.ordered(search.Query{Sort: "a.assetId"}, "0", "1", "2", "3", "4", "5")
	b.ordered(search.Query{Sort: "#"}, "1", "0", "2", "3", "4", "5")
}

func testSorts(t *testing.T, b *bench) {
	ascending := []value.Value{}
	for _, n := range []string{
		"-9.9E+125", "-12345678901234567890123456789012345679", "-12345678901234567890123456789012345678", "-9223372036854775808", "-9223372036854775807",
		"-100", "-99.9", "-10", "-9.5", "-9", "-1.01", "-1", "-0.5", "-0.05", "-1E-130", "0", "1E-130", "0.05", "0.5", "0.51", "1", "1.01", "9", "9.5", "10",
		"99.9", "100", "9007199254740992", "9007199254740993", "9223372036854775807", "12345678901234567890123456789012345678", "12345678901234567890123456789012345679", "9.9E+125",
	} {
		ascending = append(ascending, value.MustNumber(n))
	}
	for _, s := range []string{"", " ", "!", "10", "9", "A", "Z", "a", "a ", "aa", "ab", "b", "z", "~", "é", "ü", "я", "中", "\uFFFD", "😀"} {
		ascending = append(ascending, value.OfString(s))
	}
	values := append([]value.Value{value.OfBool(false), value.OfBool(true)}, ascending...)
	var docs []search.Document
	var up []string
	for i, v := range values {
		id := fmt.Sprintf("%03d", (i*37)%101) // ids in another order than the values
		docs = append(docs, with(b.doc(id, "some text"), fields("at", v)))
		up = append(up, id)
	}
	missing := []string{"m1", "m2", "m3"}
	docs = append(docs, b.doc("m2", "some text"), with(b.doc("m1", "some text"), fields("at", value.OfNull())), with(b.doc("m3", "more text"), fields("at", value.OfList())))
	slices.Reverse(docs)
	b.apply(docs...)
	b.settle()
	down := slices.Clone(up)
	slices.Reverse(down)
	b.ordered(search.Query{Sort: "at"}, append(slices.Clone(up), missing...)...)
	b.ordered(search.Query{Sort: "at", Reverse: true}, append(slices.Clone(down), missing...)...)
	b.ordered(search.Query{Text: "some tex", Sort: "at"}, append(slices.Clone(up), missing[:2]...)...)
	for _, n := range []int{1, 2, 7, 200} {
		for _, reverse := range []bool{false, true} {
			want := append(slices.Clone(up), missing...)
			if reverse {
				want = append(slices.Clone(down), missing...)
			}
			if got := b.pages(search.Query{Sort: "at", Reverse: reverse}, n, search.Index.Search); !slices.Equal(got, want) {
				t.Errorf("by %d, backwards %v:\n%v\n%v", n, reverse, got, want)
			}
		}
	}
	// Strings that are equal in their first 256 bytes are all returned, in a stable
	// order.
	long := strings.Repeat("x", 1000)
	b.apply(with(b.doc("l2", "long"), fields("at", value.OfString(long+"a"))), with(b.doc("l1", "long"), fields("at", value.OfString(long+"b"))))
	b.settle()
	b.found(search.Query{Text: "long", Sort: "at"}, "l1", "l2")
	if got := b.pages(search.Query{Text: "long", Sort: "at"}, 1, search.Index.Search); len(got) != 2 {
		t.Error(got)
	}
}
