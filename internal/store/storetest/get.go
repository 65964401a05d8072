package storetest

import (
	"errors"
	"fmt"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

var getCases = []testCase{
	{"answers each ref in its place", func(f *fixture) {
		f.do(put("a", "1", "n", 1), put("a", "2", "n", 2), put("b", "1", "n", 3),
			store.Write{Ref: store.Ref{Table: single, Key: key("a", nil)}, Put: item("PK", "a", "n", 4)})
		got, err := f.Get(f.ctx(), []store.Ref{
			ref("b", "1"), ref("a", "none"), {Table: single, Key: key("a", nil)}, ref("a", "2"), ref("none", "1"), ref("a", "1"),
		})
		if err != nil || len(got) != 6 {
			f.Fatalf("%d rows, %v", len(got), err)
		}
		f.same("b 1", got[0], item("PK", "b", "SK", "1", "n", 3))
		f.same("a none", got[1], nil)
		f.same("single a", got[2], item("PK", "a", "n", 4))
		f.same("a 2", got[3], item("PK", "a", "SK", "2", "n", 2))
		f.same("none 1", got[4], nil)
		f.same("a 1", got[5], item("PK", "a", "SK", "1", "n", 1))
	}},
	{"of nothing is nothing", func(f *fixture) {
		if got, err := f.Get(f.ctx(), nil); err != nil || len(got) != 0 {
			f.Errorf("%v, %v", got, err)
		}
	}},
	{"takes many refs, and the same one twice", func(f *fixture) {
		var ws []store.Write
		var refs []store.Ref
		for i := range 250 {
			id := fmt.Sprintf("%03d", i)
			ws = append(ws, put("many", id, "n", i))
			refs = append(refs, ref("many", id))
		}
		f.do(ws...)
		refs = append(refs, refs[7])
		got, err := f.Get(f.ctx(), refs)
		if err != nil || len(got) != len(refs) {
			f.Fatalf("%d rows, %v", len(got), err)
		}
		for i, it := range got {
			want := i
			if i == 250 {
				want = 7
			}
			f.same(refs[i].String(), it, ws[want].Put)
		}
	}},
	{"sees a write that was answered", func(f *fixture) {
		for i := range 50 {
			f.do(update(ref("a", "b"), set("n", i)))
			if got := f.row(ref("a", "b")).Get("n"); !value.Equal(got, val(i)) {
				f.Fatalf("after writing %d it reads %s", i, got.Text())
			}
		}
	}},
	{"of an unknown table", func(f *fixture) {
		if _, err := f.Get(f.ctx(), []store.Ref{{Table: "storetest-none", Key: key("a", nil)}}); !errors.Is(err, store.ErrNoTable) {
			f.Errorf("error %v", err)
		}
	}},
	{"of a key that no row can have", func(f *fixture) {
		f.do(put("a", "b"))
		keys := []store.Key{key("", "b"), key("a", ""), key(strings.Repeat("p", store.MaxPartitionBytes+1), "b"), key("a", strings.Repeat("s", store.MaxSortBytes+1))}
		refs := []store.Ref{ref("a", "b")}
		for _, k := range keys {
			refs = append(refs, store.Ref{Table: rows, Key: k})
		}
		got, err := f.Get(f.ctx(), refs)
		if err != nil || len(got) != len(refs) || got[0] == nil {
			f.Fatalf("%v, %v", got, err)
		}
		for i, row := range got[1:] {
			if row != nil {
				f.Errorf("key %d: %v", i, row)
			}
		}
	}},
	{"of a key of another type", func(f *fixture) {
		for _, k := range []store.Key{key(1, "a"), key("a", nil), key("a", 1)} {
			if _, err := f.Get(f.ctx(), []store.Ref{{Table: rows, Key: k}}); err == nil {
				f.Errorf("no error for %v", k)
			}
		}
	}},
}

// deep is a value of n nested lists and maps.
func deep(n int) value.Value {
	v := value.OfString("bottom")
	for i := range n {
		if i%2 == 0 {
			v = value.OfList(v)
		} else {
			v = value.OfMap(item("m", v))
		}
	}
	return v
}

func set2(kind value.Kind, vs ...value.Value) value.Value {
	var elems []value.Attr
	for _, v := range vs {
		elems = append(elems, value.Attr{Value: v})
	}
	out, ok := value.OfElements(kind, elems)
	if !ok {
		panic("storetest: not a set")
	}
	return out
}

var digits38 = strings.Repeat("1234567890", 4)[:38]

// everything is an item with a value of each kind and of each special size.
func everything() value.Item {
	n := value.MustNumber
	return item("PK", "every", "SK", "thing",
		"string", "text", "empty", "", "unicode", "naïve 日本語 🎬 \u0000 \u2028 e\u0301",
		"html", "<a href=\"x\">&'\\</a>\r\n\t",
		"int", 42, "zero", 0, "negative", -7, "digits", n(digits38), "fraction", n("-0."+digits38),
		"large", n("9.9999999999999999999999999999999999999E+125"), "small", n("1E-130"), "least", n("-9.9999999999999999999999999999999999999E+125"),
		"yes", true, "no", false, "null", nil,
		"binary", value.OfBinary("\x00\x01\xfe\xff"), "emptyBinary", value.OfBinary(""),
		"list", value.OfList(val("a"), val(1), val(nil), value.OfList(), val("")), "emptyList", value.OfList(),
		"map", value.OfMap(item("a", 1, "b", value.OfMap(item()))), "emptyMap", value.OfMap(item()),
		"strings", set2(value.StringSet, val("b"), val("a"), val("ä")),
		"numbers", set2(value.NumberSet, val(10), val(9), n("-1.5")),
		"binaries", set2(value.BinarySet, value.OfBinary("\xff"), value.OfBinary("\x00")),
		"deep", deep(value.MaxDepth))
}

var valueCases = []testCase{
	{"of every kind come back as they were", func(f *fixture) {
		it := everything()
		r := ref("every", "thing")
		f.do(store.Write{Ref: r, Put: it})
		f.is(r, it)
		f.same("query", f.page(store.Query{Table: rows, Partition: val("every")}).Rows[0], it)
		f.same("stream", f.records(1)[0].New, it)
	}},
	{"set by an update come back as they were", func(f *fixture) {
		it := everything()
		var ops []store.Op
		for _, a := range it {
			if a.Name != "PK" && a.Name != "SK" {
				ops = append(ops, store.Op{Kind: store.Set, Attr: a.Name, Value: a.Value})
			}
		}
		f.do(update(ref("every", "thing"), ops...))
		f.is(ref("every", "thing"), it)
	}},
	{"keep names with any characters", func(f *fixture) {
		w := put("a", "b", "with space", 1, "dot.ted", 2, "#hash", 3, ":colon", 4, "日本", 5, "size", 6, "and", 7, "\"quoted\"", 8)
		f.do(w)
		f.is(w.Ref, w.Put)
		f.do(update(w.Ref, add("dot.ted", 10), remove("with space"), set("a[0]", "x")))
		f.is(w.Ref, item("PK", "a", "SK", "b", "dot.ted", 12, "#hash", 3, ":colon", 4, "日本", 5, "size", 6, "and", 7, "\"quoted\"", 8, "a[0]", "x"))
	}},
	{"a row may be its key alone", func(f *fixture) {
		f.do(put("a", "b"), store.Write{Ref: store.Ref{Table: single, Key: key("a", nil)}, Put: item("PK", "a")})
		f.is(ref("a", "b"), item("PK", "a", "SK", "b"))
		f.is(store.Ref{Table: single, Key: key("a", nil)}, item("PK", "a"))
	}},
}
