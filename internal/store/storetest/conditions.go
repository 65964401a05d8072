package storetest

import (
	"fmt"

	"weir/internal/store"
	"weir/internal/value"
)

// comparisons are tests of the row {PK: a, SK: b, s: "m", n: 10, b: 0x7f, t: true,
// l: [1]} and whether they hold.
var comparisons = []struct {
	test store.Test
	want bool
}{
	{exists("s"), true}, {exists("none"), false}, {exists("PK"), true},
	{absent("s"), false}, {absent("none"), true}, {absent("PK"), false},
	{test("s", store.Eq, "m"), true}, {test("s", store.Eq, "n"), false}, {test("none", store.Eq, "m"), false},
	{test("n", store.Eq, 10), true}, {test("n", store.Eq, value.MustNumber("10.0")), true}, {test("n", store.Eq, "10"), false},
	{test("t", store.Eq, true), true}, {test("t", store.Eq, false), false},
	{test("l", store.Eq, value.OfList(val(1))), true}, {test("l", store.Eq, value.OfList(val(2))), false},
	{test("s", store.Ne, "m"), false}, {test("s", store.Ne, "n"), true},
	{test("none", store.Ne, "m"), true}, {test("n", store.Ne, "10"), true}, {test("n", store.Ne, 10), false},
	{test("s", store.Lt, "n"), true}, {test("s", store.Lt, "m"), false}, {test("s", store.Lt, "l"), false},
	{test("s", store.Lt, "ma"), true}, {test("s", store.Lt, "M"), false}, {test("none", store.Lt, "z"), false},
	{test("n", store.Lt, 9), false}, {test("n", store.Lt, 11), true}, {test("n", store.Lt, 100), true},
	{test("n", store.Lt, value.MustNumber("10.00000000000000000000000000000000001")), true},
	{test("n", store.Lt, "99"), false}, {test("n", store.Lt, -11), false},
	{test("b", store.Lt, value.OfBinary("\x80")), true}, {test("b", store.Lt, value.OfBinary("\x7f")), false},
	{test("s", store.Le, "m"), true}, {test("s", store.Le, "n"), true}, {test("s", store.Le, "l"), false},
	{test("n", store.Le, 10), true}, {test("n", store.Le, 9), false}, {test("none", store.Le, 10), false},
	{test("n", store.Le, "99"), false}, {test("b", store.Le, value.OfBinary("\x7f")), true}, {test("b", store.Le, value.OfBinary("\x7f\x00")), true},
}

var conditionRow = put("a", "b", "s", "m", "n", 10, "b", value.OfBinary("\x7f"), "t", true, "l", value.OfList(val(1)))

// holds writes under a condition to a copy of the row, and reports whether the
// condition held.
func (f *fixture) holds(name string, row value.Item, c store.Cond) bool {
	f.Helper()
	r := ref("cond", name)
	if row != nil {
		f.do(store.Write{Ref: r, Put: row.With(value.Attr{Name: "PK", Value: r.Key.Partition}, value.Attr{Name: "SK", Value: r.Key.Sort})})
	}
	before := f.row(r)
	w := update(r, set("mark", 1))
	w.If = c
	switch err := f.try(w)[0].Err; {
	case err == nil:
		return true
	case !isCondition(err):
		f.Errorf("%s: %v", name, err)
	}
	f.same(name+" after a condition failed", f.row(r), before)
	return false
}

var conditionCases = []testCase{
	{"compare attributes", func(f *fixture) {
		for i, c := range comparisons {
			name := fmt.Sprintf("%d %s %d %s", i, c.test.Attr, c.test.Is, text(item("v", c.test.Value)))
			if got := f.holds(name, conditionRow.Put, all(c.test)); got != c.want {
				f.Errorf("%s: holds %v, want %v", name, got, c.want)
			}
			if got := all(c.test).Holds(conditionRow.Put); got != c.want {
				f.Errorf("%s: Holds says %v, want %v", name, got, c.want)
			}
		}
	}},
	{"find no attributes where there is no row", func(f *fixture) {
		for i, c := range []struct {
			test store.Test
			want bool
		}{
			{exists("PK"), false}, {absent("PK"), true}, {exists("s"), false}, {absent("s"), true},
			{test("s", store.Eq, "m"), false}, {test("s", store.Ne, "m"), true}, {test("n", store.Lt, 1), false}, {test("n", store.Le, 1), false},
		} {
			if got := f.holds(fmt.Sprint("none", i), nil, all(c.test)); got != c.want {
				f.Errorf("%s %d: holds %v", c.test.Attr, c.test.Is, got)
			}
		}
	}},
	{"join clauses by and, tests by or", func(f *fixture) {
		yes, no := test("n", store.Eq, 10), test("n", store.Eq, 11)
		for i, c := range []struct {
			cond store.Cond
			want bool
		}{
			{nil, true}, {store.Cond{}, true},
			{store.Cond{{yes}}, true}, {store.Cond{{no}}, false},
			{store.Cond{{no, yes}}, true}, {store.Cond{{no, no}}, false}, {store.Cond{{yes, no, no}}, true},
			{store.Cond{{yes}, {yes}}, true}, {store.Cond{{yes}, {no}}, false}, {store.Cond{{no}, {yes}}, false},
			{store.Cond{{no, yes}, {yes, no}, {yes}}, true}, {store.Cond{{no, yes}, {no, no}, {yes}}, false},
		} {
			if got := f.holds(fmt.Sprint("cnf", i), conditionRow.Put, c.cond); got != c.want {
				f.Errorf("case %d: holds %v", i, got)
			}
		}
	}},
	{"guard puts and deletes too", func(f *fixture) {
		w := put("a", "b", "n", 1)
		w.If = all(absent("PK"))
		f.do(w)
		f.fails(w, store.ErrCondition)
		del := store.Write{Ref: w.Ref, Delete: true, If: all(test("n", store.Eq, 2))}
		f.fails(del, store.ErrCondition)
		f.is(w.Ref, w.Put)
		del.If = all(test("n", store.Eq, 1))
		f.do(del)
		f.is(w.Ref, nil)
		del.If = all(exists("PK"))
		f.fails(del, store.ErrCondition)
	}},
}
