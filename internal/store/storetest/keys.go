package storetest

import (
	"slices"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// hostile are strings that wrong encodings of keys and ranges get wrong, sorted
// bytewise.
var hostile = func() []string {
	ss := []string{
		"\u0000", "\u0000\u0000", "\u0000\u0001", "\u0000\u00ff", "\u0001", " ", "!", "#", "A", "A\u0000", "A\u0000\u0000", "A\u0000\u0001",
		"A\u0000B", "A\u0001", "AA", "A#", "A#1", "A#10", "A#2", "B", "Z", "a", "a\u007f", "a\u0080", "aé", "é", "ee\u0301", "z", "\u007f", "\u0080", "ÿ", "Ā",
		"日", "日本", "日本語", "\ud7ff", "\ue000", "\uffff", "\U0001F3AC", "\U0010FFFF", "\U0010FFFF\U0010FFFF", "\U0010FFFFa",
		strings.Repeat("k", 1000), strings.Repeat("k", 1001), strings.Repeat("\u0000", 900),
	}
	slices.Sort(ss)
	return ss
}()

// ordered are numbers in ascending order.
var ordered = []string{
	"-9.9999999999999999999999999999999999999E+125", "-1E+125", "-" + digits38, "-1E+20", "-1000", "-999.99", "-100", "-99", "-10.5", "-10", "-9",
	"-1.1", "-1.01", "-1", "-0.9", "-0.1", "-0.01", "-0.00" + digits38, "-1E-129", "-1E-130", "0", "1E-130", "1.1E-130", "1E-129",
	"0.00" + digits38, "0.01", "0.1", "0.9", "1", "1.0000000000000000000000000000000000001", "1.01", "1.1", "9", "10", "10.5", "11", "99", "100", "999.99", "1000",
	"1E+20", digits38, "12345678901234567890123456789012345679", "1E+125", "9.9999999999999999999999999999999999999E+125",
}

var keyCases = []testCase{
	{"of any characters name different rows", func(f *fixture) {
		var ws []store.Write
		for _, s := range hostile {
			ws = append(ws, put("h", s, "v", s), put(s, "h", "w", s))
		}
		f.do(ws...)
		for _, w := range ws {
			f.is(w.Ref, w.Put)
		}
	}},
	{"sort bytewise", func(f *fixture) {
		for i := range hostile {
			s := hostile[len(hostile)-1-i]
			f.do(put("h", s, "kind", "k", "at", s), put("h\u0000", s), put("h\u0000\u0001", s), put("g", s))
		}
		f.sameNames("ascending", f.pages(store.Query{Table: rows, Partition: val("h")}), hostile)
		back := slices.Clone(hostile)
		slices.Reverse(back)
		f.sameNames("descending", f.pages(store.Query{Table: rows, Partition: val("h"), Reverse: true}), back)
		f.sameNames("paged", f.pages(store.Query{Table: rows, Partition: val("h"), Limit: 3}), hostile)
		f.finds(store.Query{Table: rows, Index: byKind, Partition: val("k")}, hostile...)
		f.finds(store.Query{Table: rows, Index: byKind, Partition: val("k"), Limit: 5, Reverse: true}, back...)
	}},
	{"have the prefixes that strings have", func(f *fixture) {
		for _, s := range hostile {
			f.do(put("h", s, "kind", "k", "at", s))
		}
		for _, prefix := range hostile {
			var want []string
			for _, s := range hostile {
				if strings.HasPrefix(s, prefix) {
					want = append(want, s)
				}
			}
			r := store.Range{Prefix: val(prefix)}
			f.sameNames("prefix "+prefix, f.pages(store.Query{Table: rows, Partition: val("h"), Sort: r}), want)
			f.finds(store.Query{Table: rows, Index: byKind, Partition: val("k"), Sort: r}, want...)
		}
	}},
	{"have the ranges that strings have", func(f *fixture) {
		for _, s := range hostile {
			f.do(put("h", s))
		}
		for i, from := range hostile {
			for _, j := range []int{0, i, i + 1, len(hostile) - 1} {
				if j >= len(hostile) {
					continue
				}
				got := f.pages(store.Query{Table: rows, Partition: val("h"), Sort: store.Range{From: val(from), Below: val(hostile[j])}})
				f.sameNames("range", got, hostile[min(i, j):j])
			}
		}
	}},
	{"that are numbers sort by value", func(f *fixture) {
		r := func(n string) store.Ref {
			return store.Ref{Table: numbers, Key: key(value.MustNumber("1"), value.MustNumber(n))}
		}
		for i := range ordered {
			n := ordered[(i*7)%len(ordered)]
			f.do(store.Write{Ref: r(n), Put: item("PK", 1, "SK", value.MustNumber(n), "as", n)},
				put("n", n, "kind", "k", "score", value.MustNumber(n)))
		}
		q := store.Query{Table: numbers, Partition: val(1)}
		f.sameNumbers("all", f.pages(q), ordered)
		q.Limit = 4
		f.sameNumbers("paged", f.pages(q), ordered)
		q.Limit, q.Sort = 0, store.Range{From: val(-1), Below: val(10)}
		f.sameNumbers("from -1 below 10", f.pages(q), ordered[slices.Index(ordered, "-1"):slices.Index(ordered, "10")])
		for _, n := range ordered {
			q.Sort = store.Range{Equal: value.MustNumber(n)}
			f.sameNumbers("equal", f.pages(q), []string{n})
		}
		f.finds(store.Query{Table: rows, Index: byScore, Partition: val("k")}, ordered...)
	}},
	{"that are equal numbers are one key", func(f *fixture) {
		for i, n := range []string{"1.50", "1.5", "15E-1", "0.15E1"} {
			f.do(update(store.Ref{Table: numbers, Key: key(value.MustNumber("1E2"), value.MustNumber(n))}, add("n", i)))
		}
		if got := f.pages(store.Query{Table: numbers, Partition: val(100)}); len(got) != 1 || !value.Equal(got[0].Get("n"), val(6)) {
			f.Errorf("%d rows", len(got))
		}
	}},
	{"that are binary sort bytewise", func(f *fixture) {
		bs := []string{"\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "\x7f", "\x80", "\xc3\x28", "\xfe\xff", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff"}
		for i := range bs {
			b := value.OfBinary(bs[len(bs)-1-i])
			f.do(store.Write{Ref: store.Ref{Table: blobs, Key: key(value.OfBinary("\xff"), b)}, Put: item("PK", value.OfBinary("\xff"), "SK", b)},
				store.Write{Ref: store.Ref{Table: blobs, Key: key(b, b)}, Put: item("PK", b, "SK", b)})
		}
		q := store.Query{Table: blobs, Partition: value.OfBinary("\xff")}
		f.sameNames("all", f.pages(q), bs)
		q.Sort.Prefix = value.OfBinary("\xff")
		f.sameNames("prefix ff", f.pages(q), []string{"\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff"})
		q.Sort.Prefix = value.OfBinary("\x00")
		f.sameNames("prefix 00", f.pages(q), []string{"\x00", "\x00\x00", "\x00\x01", "\x00\xff"})
		q.Sort = store.Range{From: value.OfBinary("\x7f"), Below: value.OfBinary("\xff")}
		f.sameNames("7f to ff", f.pages(q), []string{"\x7f", "\x80", "\xc3\x28", "\xfe\xff"})
	}},
}

func (f *fixture) sameNames(what string, got []value.Item, want []string) {
	f.Helper()
	if g := names(got); !slices.Equal(g, want) {
		f.Errorf("%.60q: got %.400q, want %.400q", what, g, want)
	}
}

func (f *fixture) sameNumbers(what string, got []value.Item, want []string) {
	f.Helper()
	var g []string
	for _, it := range got {
		g = append(g, it.Get("as").Text())
	}
	if !slices.Equal(g, want) {
		f.Errorf("%s: got %v, want %v", what, g, want)
	}
}
