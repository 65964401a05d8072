package storetest

import (
	"errors"
	"fmt"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

func isCondition(err error) bool { return errors.Is(err, store.ErrCondition) }

// addFrom is an Add with a start.
func addFrom(name string, v, from any) store.Op {
	return store.Op{Kind: store.Add, Attr: name, Value: val(v), From: val(from)}
}

var updateCases = []testCase{
	{"adds to 298 attributes", func(f *fixture) {
		for range 2 {
			f.do(update(ref("a", "many"), manyOps(store.Add, 298)...))
		}
		rows, err := f.Get(f.ctx(), []store.Ref{ref("a", "many")})
		if err != nil || len(rows[0]) != 300 || !value.Equal(rows[0].Get("attribute-297"), value.OfInt(2)) {
			f.Errorf("%d attributes, %v", len(rows[0]), err)
		}
	}},
	{"sets 400 attributes", func(f *fixture) {
		f.do(update(ref("a", "many"), manyOps(store.Set, 400)...))
	}},
	{"set, add and remove", func(f *fixture) {
		r := ref("a", "b")
		f.do(put("a", "b", "keep", "k", "s", "old", "n", 1, "gone", true))
		f.do(update(r, set("s", "new"), set("l", value.OfList(val(1))), add("n", 41), add("m", 5), remove("gone"), remove("never")))
		f.is(r, item("PK", "a", "SK", "b", "keep", "k", "s", "new", "l", value.OfList(val(1)), "n", 42, "m", 5))
	}},
	{"make the row that is not there", func(f *fixture) {
		f.do(update(ref("a", "b"), set("s", "x"), add("n", -2)))
		f.is(ref("a", "b"), item("PK", "a", "SK", "b", "s", "x", "n", -2))
		r := store.Ref{Table: single, Key: key("a", nil)}
		f.do(update(r, add("n", 1)))
		f.is(r, item("PK", "a", "n", 1))
	}},
	{"leave it alone when the condition forbids it", func(f *fixture) {
		w := update(ref("a", "b"), add("n", 1))
		w.If = all(exists("PK"))
		f.fails(w, store.ErrCondition)
		f.is(w.Ref, nil)
	}},
	{"replace a value of another kind", func(f *fixture) {
		f.do(put("a", "b", "v", value.OfMap(item("x", 1))))
		f.do(update(ref("a", "b"), set("v", 7)))
		f.is(ref("a", "b"), item("PK", "a", "SK", "b", "v", 7))
	}},
	{"add from a start where nothing is", func(f *fixture) {
		r := ref("a", "b")
		f.do(update(r, addFrom("n", 1, 1000)))
		f.is(r, item("PK", "a", "SK", "b", "n", 1001))
		f.do(update(r, addFrom("n", 1, 5000), addFrom("m", -1, value.MustNumber("0.5"))))
		f.is(r, item("PK", "a", "SK", "b", "n", 1002, "m", value.MustNumber("-0.5")))
	}},
	{"add exactly", func(f *fixture) {
		n := value.MustNumber
		for i, c := range []struct{ a, b, sum string }{
			{"0.1", "0.2", "0.3"},
			{"9007199254740993", "1", "9007199254740994"},
			{"9223372036854775807", "1", "9223372036854775808"},
			{digits38, "-1", "12345678901234567890123456789012345677"},
			{"99999999999999999999999999999999999999", "1", "100000000000000000000000000000000000000"},
			{"1E+125", "-1E+125", "0"}, {"1E-130", "1E-130", "2E-130"},
			{"-0.00000000000000000000000000000000000001", "1", "0.99999999999999999999999999999999999999"},
		} {
			r := ref("exact", string(rune('a'+i)))
			f.do(update(r, set("n", n(c.a))), update(r, add("n", n(c.b))))
			if got := f.row(r).Get("n"); !value.Equal(got, n(c.sum)) {
				f.Errorf("%s + %s = %s, want %s", c.a, c.b, got.Text(), c.sum)
			}
		}
	}},
	{"refuse to add what does not fit", func(f *fixture) {
		n := value.MustNumber
		for i, c := range []struct{ a, b any }{
			{n("99999999999999999999999999999999999999"), n("0.1")},
			{n("9.9E+125"), n("9.9E+125")}, {n("-9.9E+125"), n("-9.9E+125")},
			{n("1E+100"), n("1E-100")},
			{"text", 1}, {nil, 1}, {true, 1}, {value.OfList(), 1},
		} {
			w := put("overflow", string(rune('a'+i)), "n", c.a)
			f.do(w)
			f.fails(update(w.Ref, add("n", c.b), set("other", 1)), store.ErrRefused)
			f.is(w.Ref, w.Put)
		}
	}},
	{"answer with the row", func(f *fixture) {
		w := update(ref("a", "b"), add("n", 2), set("s", "x"))
		w.Return = true
		f.same("made", f.try(w)[0].Row, item("PK", "a", "SK", "b", "n", 2, "s", "x"))
		f.same("changed", f.try(w)[0].Row, item("PK", "a", "SK", "b", "n", 4, "s", "x"))
		w.If = all(test("n", store.Eq, 0))
		out := f.try(w)[0]
		if !isCondition(out.Err) {
			f.Errorf("error %v", out.Err)
		}
		f.same("failed", out.Row, item("PK", "a", "SK", "b", "n", 4, "s", "x"))

		p := put("a", "c", "n", 1)
		p.Return = true
		f.same("put", f.try(p)[0].Row, p.Put)
		p.If = all(absent("PK"))
		f.same("put refused", f.try(p)[0].Row, p.Put)

		del := store.Write{Ref: p.Ref, Delete: true, Return: true}
		f.same("deleted", f.try(del)[0].Row, nil)
		del.If = all(exists("PK"))
		out = f.try(del)[0]
		f.same("nothing there", out.Row, nil)
		if !isCondition(out.Err) {
			f.Errorf("error %v", out.Err)
		}
	}},
	{"answer with nothing unless asked", func(f *fixture) {
		f.same("update", f.try(update(ref("a", "b"), add("n", 2)))[0].Row, nil)
	}},
}

// long is a string of n bytes.
func long(n int) string { return strings.Repeat("x", n) }

// refusals are writes that can never succeed. Each is tried on the existing row {PK: a,
// SK: b, n: 1}, and must not change it.
var refusals = []struct {
	name  string
	write store.Write
}{
	{"nothing to do", store.Write{Ref: ref("a", "b")}},
	{"put and delete", store.Write{Ref: ref("a", "b"), Put: put("a", "b").Put, Delete: true}},
	{"put and update", store.Write{Ref: ref("a", "b"), Put: put("a", "b").Put, Ops: []store.Op{set("n", 2)}}},
	{"delete and update", store.Write{Ref: ref("a", "b"), Delete: true, Ops: []store.Op{set("n", 2)}}},
	{"a put with another key", store.Write{Ref: ref("a", "b"), Put: put("a", "c").Put}},
	{"a put without a sort key", store.Write{Ref: ref("a", "b"), Put: item("PK", "a")}},
	{"a put with a number as key", store.Write{Ref: ref("a", "b"), Put: item("PK", "a", "SK", 1)}},
	{"an update of the partition key", update(ref("a", "b"), set("PK", "a"))},
	{"an update of the sort key", update(ref("a", "b"), set("SK", "c"))},
	{"removal of the sort key", update(ref("a", "b"), remove("SK"))},
	{"an attribute twice", update(ref("a", "b"), set("m", 1), add("m", 1))},
	{"a number as partition key", store.Write{Ref: store.Ref{Table: rows, Key: key(1, "b")}, Delete: true}},
	{"no sort key", store.Write{Ref: store.Ref{Table: rows, Key: key("a", nil)}, Delete: true}},
	{"a sort key too many", store.Write{Ref: store.Ref{Table: single, Key: key("a", "b")}, Delete: true}},
	{"an empty partition key", put("", "b")},
	{"an empty sort key", put("a", "")},
	{"an empty binary key", store.Write{Ref: store.Ref{Table: blobs, Key: key(value.OfBinary(""), value.OfBinary("x"))}, Ops: []store.Op{set("n", 1)}}},
	{"a long partition key", put(long(store.MaxPartitionBytes+1), "b")},
	{"a long sort key", put("a", long(store.MaxSortBytes+1))},
	{"an update of more than 4 KB", update(ref("a", "b"), manyOps(store.Remove, 1000)...)},
	{"an update of more than 300 operators", update(ref("a", "b"), manyOps(store.Add, 301)...)},
	{"a condition of more than 4 KB", onlyWhere(300)},
	{"a row too large", put("a", "b", "v", long(store.MaxItemBytes))},
	{"an update to a row too large", update(ref("a", "b"), set("v", long(store.MaxItemBytes)))},
	{"a row nested too deep", put("a", "b", "v", deep(value.MaxDepth+1))},
	{"an index key of another kind", put("a", "b", "kind", 1)},
	{"a null index key", put("a", "b", "kind", nil)},
	{"an index sort key of another kind", put("a", "b", "kind", "k", "at", 1)},
	{"an index sort key of another kind, alone", update(ref("a", "b"), set("at", 1))},
	{"a local index key of another kind", update(ref("a", "b"), set("size", "1"))},
	{"an empty index key", update(ref("a", "b"), set("kind", ""))},
	{"an empty index key in a put", put("a", "b", "kind", "k", "at", "")},
	{"a long index key", put("a", "b", "kind", long(store.MaxPartitionBytes+1), "at", "x")},
	{"a set to nothing", update(ref("a", "b"), store.Op{Kind: store.Set, Attr: "v"})},
	{"an addition of a string", update(ref("a", "b"), add("n", "1"))},
	{"a check outside a transaction", store.Write{Ref: ref("a", "b"), Check: true}},
}

var refusalCases = []testCase{
	{"say so and leave the row", func(f *fixture) {
		before := put("a", "b", "n", 1)
		f.do(before)
		for _, c := range refusals {
			w := c.write
			w.Return = true
			out := f.try(w)[0]
			if err := out.Err; !errors.Is(err, store.ErrRefused) || out.Row != nil {
				f.Errorf("%s: error %v, row %v", c.name, err, out.Row)
			} else if !strings.Contains(err.Error(), c.write.Table) {
				f.Errorf("%s: %q does not name the table", c.name, err)
			}
		}
		f.is(before.Ref, before.Put)
	}},
	{"do not keep other writes of the call from happening", func(f *fixture) {
		ws := []store.Write{put("a", "1")}
		for _, c := range refusals {
			ws = append(ws, c.write)
		}
		ws = append(ws, put("a", "2"))
		out := f.try(ws...)
		if out[0].Err != nil || out[len(out)-1].Err != nil {
			f.Errorf("%v, %v", out[0].Err, out[len(out)-1].Err)
		}
		f.is(ref("a", "1"), item("PK", "a", "SK", "1"))
		f.is(ref("a", "2"), item("PK", "a", "SK", "2"))
	}},
	{"name an unknown table", func(f *fixture) {
		f.fails(store.Write{Ref: store.Ref{Table: "storetest-none", Key: key("a", nil)}, Delete: true}, store.ErrNoTable)
	}},
	{"begin just past the limits", func(f *fixture) {
		pk, sk := long(store.MaxPartitionBytes), long(store.MaxSortBytes)
		f.do(put(pk, sk, "n", 1))
		f.is(ref(pk, sk), item("PK", pk, "SK", sk, "n", 1))
		w := put("a", "b")
		w.Put = w.Put.With(value.Attr{Name: "v", Value: val(long(store.MaxItemBytes - w.Put.Size() - 1))})
		if w.Put.Size() != store.MaxItemBytes {
			f.Fatalf("the row has %d bytes", w.Put.Size())
		}
		f.do(w)
		f.is(w.Ref, w.Put)
		f.fails(update(w.Ref, set("w", "")), store.ErrRefused)
		f.do(put("a", "n"))
		f.do(update(ref("a", "n"), manyOps(store.Add, store.MaxOperators)...))
		if n := len(f.row(ref("a", "n"))); n != 2+store.MaxOperators {
			f.Errorf("%d attributes after as many operators as an expression has", n)
		}
	}},
}

// manyOps are operations on so many attributes.
func manyOps(kind store.OpKind, n int) (ops []store.Op) {
	for i := range n {
		op := store.Op{Kind: kind, Attr: fmt.Sprintf("attribute-%d", i)}
		if kind != store.Remove {
			op.Value = value.OfInt(1)
		}
		ops = append(ops, op)
	}
	return ops
}

// onlyWhere is an update with a condition on so many attributes.
func onlyWhere(n int) store.Write {
	w := update(ref("a", "b"), set("v", 1))
	for i := range n {
		w.If = append(w.If, []store.Test{{Attr: fmt.Sprintf("attribute-%d", i), Is: store.Absent}})
	}
	return w
}
