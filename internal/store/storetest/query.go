package storetest

import (
	"errors"
	"fmt"
	"slices"

	"weir/internal/store"
	"weir/internal/value"
)

// letters puts rows with the given sort keys into partition p, and others around them.
func (f *fixture) letters(sks ...string) {
	f.Helper()
	var ws []store.Write
	for _, sk := range sks {
		ws = append(ws, put("p", sk), put("o", sk), put("q", sk), put("p#", sk), put("pp", sk))
	}
	f.do(ws...)
}

var queryCases = []testCase{
	{"ranges", func(f *fixture) {
		f.letters("a", "b", "b#", "b#1", "b#2", "c", "d")
		v := val
		for _, c := range []struct {
			r    store.Range
			want []string
		}{
			{store.Range{}, []string{"a", "b", "b#", "b#1", "b#2", "c", "d"}},
			{store.Range{Equal: v("b")}, []string{"b"}},
			{store.Range{Equal: v("bb")}, nil},
			{store.Range{Prefix: v("b")}, []string{"b", "b#", "b#1", "b#2"}},
			{store.Range{Prefix: v("b#")}, []string{"b#", "b#1", "b#2"}},
			{store.Range{Prefix: v("x")}, nil},
			{store.Range{From: v("b#1")}, []string{"b#1", "b#2", "c", "d"}},
			{store.Range{From: v("b#11")}, []string{"b#2", "c", "d"}},
			{store.Range{From: v("e")}, nil},
			{store.Range{Below: v("b#")}, []string{"a", "b"}},
			{store.Range{Below: v("a")}, nil},
			{store.Range{From: v("b"), Below: v("c")}, []string{"b", "b#", "b#1", "b#2"}},
			{store.Range{From: v("b"), Below: v("b")}, nil},
		} {
			q := store.Query{Table: rows, Partition: v("p"), Sort: c.r}
			name := text(item("equal", c.r.Equal, "prefix", c.r.Prefix, "from", c.r.From, "below", c.r.Below))
			f.sameNames(name, f.pages(q), c.want)
			q.Limit = 2
			f.sameNames(name+" by two", f.pages(q), c.want)
			back := slices.Clone(c.want)
			slices.Reverse(back)
			q.Reverse = true
			f.sameNames(name+" backwards by two", f.pages(q), back)
			q.Limit = 0
			f.sameNames(name+" backwards", f.pages(q), back)
		}
	}},
	{"a range that ends before it begins is empty or refused", func(f *fixture) {
		f.letters("a", "b", "c")
		p, err := f.Query(f.ctx(), store.Query{Table: rows, Partition: val("p"), Sort: store.Range{From: val("c"), Below: val("a")}})
		if err == nil && len(p.Rows) > 0 {
			f.Errorf("%d rows", len(p.Rows))
		}
	}},
	{"a partition that is not there", func(f *fixture) {
		p := f.page(store.Query{Table: rows, Partition: val("none")})
		if len(p.Rows) != 0 || p.Next != nil {
			f.Errorf("%v", p)
		}
	}},
	{"a table without sort key", func(f *fixture) {
		r := func(pk string) store.Ref { return store.Ref{Table: single, Key: key(pk, nil)} }
		f.do(update(r("a"), set("n", 1)), update(r("b"), set("n", 2)))
		if got := f.pages(store.Query{Table: single, Partition: val("a")}); len(got) != 1 || got[0].Get("PK").Text() != "a" {
			f.Errorf("%v", got)
		}
	}},
	{"whole rows", func(f *fixture) {
		w := put("a", "b", "n", 1, "l", value.OfList(val("x")))
		f.do(w)
		f.same("row", f.page(store.Query{Table: rows, Partition: val("a")}).Rows[0], w.Put)
	}},
	{"scans everything once", func(f *fixture) {
		want := map[string]bool{}
		var ws []store.Write
		for i := range 60 {
			pk, sk := fmt.Sprint("p", i%7), fmt.Sprint("s", i)
			want[pk+sk] = true
			ws = append(ws, put(pk, sk))
		}
		f.do(append(ws, store.Write{Ref: store.Ref{Table: single, Key: key("other", nil)}, Put: item("PK", "other")})...)
		for _, limit := range []int{0, 1, 7, 100} {
			got := map[string]bool{}
			for _, it := range f.pages(store.Query{Table: rows, Limit: limit}) {
				id := it.Get("PK").Text() + it.Get("SK").Text()
				if got[id] || !want[id] {
					f.Errorf("limit %d: row %s", limit, id)
				}
				got[id] = true
			}
			if len(got) != len(want) {
				f.Errorf("limit %d: %d rows", limit, len(got))
			}
		}
	}},
	{"segments have each partition once, and whole", func(f *fixture) {
		const count = 90
		var ws []store.Write
		for i := range count {
			ws = append(ws, put(fmt.Sprint("p", i%30), fmt.Sprint("s", i)))
		}
		f.do(append(ws, store.Write{Ref: store.Ref{Table: single, Key: key("other", nil)}, Put: item("PK", "other")})...)
		for _, segments := range []int{1, 2, 7} {
			of, rowsOf := map[string]int{}, make([]int, segments)
			seen := map[string]bool{}
			for segment := range segments {
				for _, it := range f.pages(store.Query{Table: rows, Segment: segment, Segments: segments, Limit: 4}) {
					pk, id := it.Get("PK").Text(), it.Get("PK").Text()+"|"+it.Get("SK").Text()
					if at, met := of[pk]; met && at != segment || seen[id] {
						f.Errorf("%d segments: row %s is in segment %d, its partition in %d, seen before: %v", segments, id, segment, at, seen[id])
					}
					of[pk], seen[id] = segment, true
					rowsOf[segment]++
				}
			}
			if len(seen) != count {
				f.Errorf("%d segments: %d rows, want %d", segments, len(seen), count)
			}
			if segments == 2 && (rowsOf[0] == 0 || rowsOf[1] == 0) {
				f.Errorf("30 partitions are all in one of two segments: %v", rowsOf)
			}
		}
	}},
	{"scans a partition's rows in order", func(f *fixture) {
		for i := range 30 {
			f.do(put(fmt.Sprint("p", i%3), fmt.Sprintf("%02d", 29-i)))
		}
		last := map[string]string{}
		for _, it := range f.pages(store.Query{Table: rows, Limit: 4}) {
			pk, sk := it.Get("PK").Text(), it.Get("SK").Text()
			if sk <= last[pk] {
				f.Errorf("%s after %s", sk, last[pk])
			}
			last[pk] = sk
		}
	}},
	{"unknown tables and indexes", func(f *fixture) {
		for _, q := range []store.Query{{Table: "storetest-none"}, {Table: rows, Index: "none"}, {Table: "storetest-none", Index: byKind, Partition: val("k")}} {
			if _, err := f.Query(f.ctx(), q); !errors.Is(err, store.ErrNoTable) {
				f.Errorf("%s %s: %v", q.Table, q.Index, err)
			}
		}
	}},
	{"questions that make no sense", func(f *fixture) {
		f.letters("a")
		for name, q := range map[string]store.Query{
			"a segment of a partition":    {Table: rows, Partition: val("p"), Segments: 2},
			"a segment of an index":       {Table: rows, Index: byKind, Segments: 2},
			"a reversed segment":          {Table: rows, Reverse: true, Segments: 2},
			"a segment past the last":     {Table: rows, Segment: 2, Segments: 2},
			"a segment of none":           {Table: rows, Segment: 1},
			"a segment before the first":  {Table: rows, Segment: -1, Segments: 2},
			"too many segments":           {Table: rows, Segments: store.MaxSegments + 1},
			"a number for a string":       {Table: rows, Partition: val(1)},
			"a range of another kind":     {Table: rows, Partition: val("p"), Sort: store.Range{From: val(1)}},
			"a range without a sort key":  {Table: single, Partition: val("p"), Sort: store.Range{Equal: val("a")}},
			"the prefix of a number":      {Table: numbers, Partition: val(1), Sort: store.Range{Prefix: val(1)}},
			"equal and prefix":            {Table: rows, Partition: val("p"), Sort: store.Range{Equal: val("a"), Prefix: val("a")}},
			"prefix and bound":            {Table: rows, Partition: val("p"), Sort: store.Range{Prefix: val("a"), Below: val("b")}},
			"a cursor of another kind":    {Table: rows, Partition: val("p"), After: &store.Cursor{Key: key(1, 2)}},
			"a cursor without its entry":  {Table: rows, Index: byKind, Partition: val("p"), After: &store.Cursor{Key: key("p", "a")}},
			"a string for an index score": {Table: rows, Index: byScore, Partition: val("p"), Sort: store.Range{Equal: val("1")}},
		} {
			if _, err := f.Query(f.ctx(), q); err == nil {
				f.Errorf("%s: no error", name)
			}
		}
	}},
}

var pageCases = []testCase{
	{"end at the limit, and Next is nil at the end", func(f *fixture) {
		f.letters("a", "b", "c", "d")
		q := store.Query{Table: rows, Partition: val("p"), Limit: 3}
		p := f.page(q)
		f.sameNames("first", p.Rows, []string{"a", "b", "c"})
		if p.Next == nil {
			f.Fatal("no Next after three of four")
		}
		q.After = p.Next
		p = f.page(q)
		f.sameNames("second", p.Rows, []string{"d"})
		if p.Next != nil {
			f.Error("a Next after a page that is not full")
		}
		for _, limit := range []int{0, 5} {
			q := store.Query{Table: rows, Partition: val("p"), Limit: limit}
			if p := f.page(q); len(p.Rows) != 4 || p.Next != nil {
				f.Errorf("limit %d: %d rows, Next %v", limit, len(p.Rows), p.Next)
			}
		}
	}},
	{"end at their size", func(f *fixture) {
		const n, size = 30, 100 << 10
		for i := range n {
			f.do(put("large", fmt.Sprintf("%02d", i), "v", long(size)))
		}
		for _, reverse := range []bool{false, true} {
			q := store.Query{Table: rows, Partition: val("large"), Reverse: reverse}
			var got []value.Item
			for pages := 1; ; pages++ {
				p := f.page(q)
				sum := 0
				for _, it := range p.Rows {
					sum += it.Size()
				}
				if sum > store.MaxPageBytes+size+100 {
					f.Errorf("a page of %d bytes", sum)
				}
				got = append(got, p.Rows...)
				if q.After = p.Next; q.After == nil {
					if pages < 3 {
						f.Errorf("%d pages for 3 MB", pages)
					}
					break
				}
			}
			if len(got) != n {
				f.Errorf("%d rows", len(got))
			}
			if reverse {
				slices.Reverse(got)
			}
			for i, it := range got {
				if it.Get("SK").Text() != fmt.Sprintf("%02d", i) {
					f.Fatalf("row %d is %s", i, it.Get("SK").Text())
				}
			}
		}
	}},
	{"go on behind a row, whatever happens around it", func(f *fixture) {
		for _, reverse := range []bool{false, true} {
			f.letters("b", "d", "f", "h", "j")
			q := store.Query{Table: rows, Partition: val("p"), Limit: 2, Reverse: reverse}
			p := f.page(q)
			at := names(p.Rows)[1]
			q.After = p.Next
			// The cursor's row is deleted, and others are added and deleted on both
			// sides.
			f.do(store.Write{Ref: ref("p", at), Delete: true}, put("p", "a"), put("p", "c"), put("p", "e"), put("p", "g"), put("p", "i"), put("p", "k"))
			q.Limit = 0
			want := []string{"e", "f", "g", "h", "i", "j", "k"}
			if reverse {
				want = []string{"g", "f", "e", "d", "c", "b", "a"}
			}
			f.sameNames("after "+at, f.pages(q), want)
			for _, sk := range []string{"a", "c", "e", "g", "i", "k"} {
				f.do(store.Write{Ref: ref("p", sk), Delete: true})
			}
		}
	}},
	{"take a cursor to a row that never was", func(f *fixture) {
		f.letters("b", "d", "f")
		q := store.Query{Table: rows, Partition: val("p"), After: &store.Cursor{Key: key("p", "c")}}
		f.sameNames("forwards", f.pages(q), []string{"d", "f"})
		q.Reverse = true
		f.sameNames("backwards", f.pages(q), []string{"b"})
	}},
	{"show each row once while others write", func(f *fixture) {
		const n = 60
		for i := range n {
			f.do(put("p", fmt.Sprintf("%03d", i*10)))
		}
		parallel(f, 2, func(w int) error {
			if w == 0 {
				for i := range n {
					ws := []store.Write{put("p", fmt.Sprintf("%03d", i*10+5)), update(ref("p", fmt.Sprintf("%03d", i*10)), set("n", i))}
					if _, err := f.Write(f.ctx(), ws); err != nil {
						return err
					}
				}
				return nil
			}
			old, last := 0, ""
			q := store.Query{Table: rows, Partition: val("p"), Limit: 3}
			for {
				p, err := f.Query(f.ctx(), q)
				if err != nil {
					return err
				}
				for _, sk := range names(p.Rows) {
					if sk <= last {
						return fmt.Errorf("%s after %s", sk, last)
					}
					if last = sk; sk[2] == '0' {
						old++
					}
				}
				if q.After = p.Next; q.After == nil {
					break
				}
			}
			if old != n {
				return fmt.Errorf("%d of %d rows that were there all the time", old, n)
			}
			return nil
		})
	}},
}
