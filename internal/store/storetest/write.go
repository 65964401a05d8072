package storetest

import (
	"errors"
	"fmt"
	"strings"

	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

var writeCases = []testCase{
	{"of nothing is nothing", func(f *fixture) {
		if out := f.try(); len(out) != 0 {
			f.Errorf("%d outcomes", len(out))
		}
	}},
	{"puts and replaces whole rows", func(f *fixture) {
		f.do(put("a", "b", "x", 1, "y", 2))
		f.do(put("a", "b", "y", 3))
		f.is(ref("a", "b"), item("PK", "a", "SK", "b", "y", 3))
	}},
	{"deletes, and again", func(f *fixture) {
		f.do(put("a", "b"), put("a", "c"))
		del := store.Write{Ref: ref("a", "b"), Delete: true}
		f.do(del, del)
		f.is(ref("a", "b"), nil)
		f.is(ref("a", "c"), item("PK", "a", "SK", "c"))
		f.do(put("a", "b", "again", true))
		f.is(ref("a", "b"), item("PK", "a", "SK", "b", "again", true))
	}},
	{"keeps the order of writes to one key", func(f *fixture) {
		r := ref("a", "b")
		step := func(from, to int) store.Write {
			w := update(r, set("n", to))
			w.If = all(test("n", store.Eq, from))
			w.Return = true
			return w
		}
		out := f.try(put("a", "b", "n", 0), step(0, 1), put("x", "y"), step(1, 2), step(1, 7), step(2, 3),
			store.Write{Ref: r, Delete: true, If: all(test("n", store.Eq, 3))},
			update(r, add("n", 10)), update(r, add("n", 5)))
		for i, o := range out {
			if (o.Err != nil) != (i == 4) {
				f.Errorf("write %d: %v", i, o.Err)
			}
		}
		if !isCondition(out[4].Err) {
			f.Errorf("write 4: %v", out[4].Err)
		}
		f.same("row seen by the failed write", out[4].Row, item("PK", "a", "SK", "b", "n", 2))
		f.same("row after write 5", out[5].Row, item("PK", "a", "SK", "b", "n", 3))
		f.is(r, item("PK", "a", "SK", "b", "n", 15))
	}},
	{"answers for each, good and bad", func(f *fixture) {
		bad := put("a", "2")
		bad.If = all(exists("PK"))
		out := f.try(put("a", "1"), bad, put("", "3"), store.Write{Ref: store.Ref{Table: "storetest-none", Key: key("x", nil)}, Delete: true}, put("a", "4"))
		for i, want := range []error{nil, store.ErrCondition, store.ErrRefused, store.ErrNoTable, nil} {
			if !errors.Is(out[i].Err, want) {
				f.Errorf("write %d: %v, want %v", i, out[i].Err, want)
			}
		}
		f.is(ref("a", "1"), item("PK", "a", "SK", "1"))
		f.is(ref("a", "4"), item("PK", "a", "SK", "4"))
	}},
	{"refuses text that is not UTF-8, and takes it as binary", func(f *fixture) {
		const bad = "a\xffb"
		kept := put("utf8", "kept", "n", 1)
		f.do(kept)
		for what, w := range map[string]store.Write{
			"key attribute PK is not UTF-8":               put(bad, "1"),
			"key attribute SK is not UTF-8":               put("a", bad),
			"attribute v is not UTF-8":                    put("utf8", "kept", "v", bad),
			"an element of attribute s is not UTF-8":      put("utf8", "kept", "s", value.OfStrings([]string{"a", bad})),
			"attribute l is not UTF-8":                    put("utf8", "kept", "l", value.OfList(value.OfList(val(bad)))),
			"attribute inner is not UTF-8":                put("utf8", "kept", "m", value.OfMap(item("inner", bad))),
			`the name of attribute "a\xffb" is not UTF-8`: put("utf8", "kept", bad, 1),
			`the name of attribute "b\xfe" is not UTF-8`:  put("utf8", "kept", "m", value.OfMap(item("b\xfe", 1))),
			"attribute set is not UTF-8":                  update(kept.Ref, set("set", bad)),
			`the name of attribute "c\xff" is not UTF-8`:  update(kept.Ref, set("c\xff", 1)),
			`the name of attribute "d\xff" is not UTF-8`:  update(kept.Ref, add("d\xff", 1)),
		} {
			err := f.try(w)[0].Err
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), what) {
				f.Errorf("%s: %v", what, err)
			}
			if err := f.transact(put("utf8", "other"), w); !errors.Is(err, store.ErrRefused) {
				f.Errorf("%s, in a transaction: %v", what, err)
			}
		}
		f.is(kept.Ref, kept.Put)
		f.is(ref("utf8", "other"), nil)
		f.is(ref(bad, "1"), nil)
		f.is(ref("a", bad), nil)
		binary := put("utf8", "binary", "v", value.OfBinary(bad), "l", value.OfList(value.OfBinary(bad)))
		f.do(binary)
		f.is(binary.Ref, binary.Put)
	}},
	{"takes many writes to many tables", func(f *fixture) {
		var ws []store.Write
		for i := range 600 {
			id := fmt.Sprintf("%03d", i%300)
			ws = append(ws, update(ref("p"+id[2:], id), add("n", 1)),
				update(store.Ref{Table: single, Key: key(id, nil)}, add("n", i)))
		}
		f.do(ws...)
		for i := range 300 {
			id := fmt.Sprintf("%03d", i)
			f.is(ref("p"+id[2:], id), item("PK", "p"+id[2:], "SK", id, "n", 2))
			f.is(store.Ref{Table: single, Key: key(id, nil)}, item("PK", id, "n", 2*i+300))
		}
	}},
	{"takes large rows, many at once", func(f *fixture) {
		var ws []store.Write
		for i := range 30 {
			ws = append(ws, put("large", fmt.Sprintf("%02d", i), "v", long(300<<10)))
		}
		f.do(ws...)
		for i := range ws {
			ws[i] = update(ws[i].Ref, set("n", i))
		}
		f.do(ws...)
		for i := range ws {
			if got := f.row(ws[i].Ref); len(got) != 4 || !value.Equal(got.Get("n"), val(i)) {
				f.Fatalf("row %d has %d attributes", i, len(got))
			}
		}
	}},
	{"answers with rows that stay", func(f *fixture) {
		var ws []store.Write
		for i := range 50 {
			w := put("a", fmt.Sprint(i), "n", i, "v", long(100+i))
			w.Return = true
			ws = append(ws, w)
		}
		out := f.try(ws...)
		got, err := f.Get(f.ctx(), []store.Ref{ws[3].Ref, ws[4].Ref})
		failtest.On(f, err)
		page := f.page(store.Query{Table: rows, Partition: val("a"), Sort: store.Range{Equal: val("5")}})
		record := f.records(50)[0]
		image := record.New.Clone()
		for round := range 3 {
			for i := range ws {
				ws[i] = put("a", fmt.Sprint(i), "n", -i, "w", long(100+i+round))
			}
			f.do(ws...)
		}
		for i := range out {
			f.same("outcome", out[i].Row, put("a", fmt.Sprint(i), "n", i, "v", long(100+i)).Put)
		}
		f.same("row got", got[1], put("a", "4", "n", 4, "v", long(104)).Put)
		f.same("row found", page.Rows[0], put("a", "5", "n", 5, "v", long(105)).Put)
		f.same("image read", record.New, image)
	}},
	{"keeps no slice of the caller's", func(f *fixture) {
		ops := []store.Op{{Kind: store.Set, Attr: "v", Value: val("value")}}
		tests := []store.Test{{Attr: "none", Is: store.Exists}}
		ws := []store.Write{
			put("a", "b", "kind", "indexed", "at", "value"),
			{Ref: ref("a", "b"), Ops: ops, Return: true},
			{Ref: ref("a", "b"), If: store.Cond{tests}, Delete: true, Return: true},
		}
		out := f.try(ws...)
		want := item("PK", "a", "SK", "b", "kind", "indexed", "at", "value", "v", "value")
		message := out[2].Err
		clear(ws)
		clear(ops)
		clear(tests)
		f.same("update's row", out[1].Row, want)
		f.same("failed delete's row", out[2].Row, want)
		if message == nil || message.Error() != f.try(store.Write{Ref: ref("a", "b"), If: all(exists("none")), Delete: true})[0].Err.Error() {
			f.Errorf("error %v", message)
		}
		f.is(ref("a", "b"), want)
		f.finds(store.Query{Table: rows, Index: byKind, Partition: val("indexed")}, "b")
		f.same("stream", f.records(2)[1].New, want)
	}},
}
