package searchtest

import (
	"slices"
	"testing"

	"weir/internal/failtest"
	"weir/internal/search"
)

// RunDefinitions tests what the contract says of indexes with different definitions. Each
// call of place returns a function that opens indexes beside the others that it opened; the
// indexes are closed by the test.
func RunDefinitions(t *testing.T, place func(t *testing.T) (open func(schemas []search.Schema) search.Index)) {
	first := search.Schema{Name: items, Filters: []string{"a", "b"}, Version: "1"}
	others := map[string]search.Schema{
		"version": {Name: items, Filters: []string{"a", "b"}, Version: "2"},
		"filters": {Name: items, Filters: []string{"a"}, Version: "1"},
		"sorts":   {Name: items, Filters: []string{"a", "b"}, Sorts: []string{"a"}, Version: "1"},
	}
	for name, second := range others {
		t.Run(name, func(t *testing.T) { testDefinitions(t, place(t), first, second) })
	}
}

func testDefinitions(t *testing.T, open func([]search.Schema) search.Index, first, second search.Schema) {
	one, two := &bench{t: t, ix: open([]search.Schema{first})}, &bench{t: t, ix: open([]search.Schema{second})}
	here, there := one.ix.Place(items), two.ix.Place(items)
	if here == "" || here == there || one.ix.Place("no-such-index") != "" {
		t.Fatalf("the places are %q and %q", here, there)
	}
	one.put("a", "old")
	two.put("b", "new")
	failtest.On(t, one.ix.Filled(items))
	instance := one.ix.Instance(items)
	one.found(search.Query{}, "a")
	two.found(search.Query{}, "b")
	if got := two.ix.Fresh(); !slices.Equal(got, []string{items}) {
		t.Errorf("the other definition is filled: fresh are %q", got)
	}
	for _, wrong := range []string{here, "", "*", "../" + there, there + ",*"} {
		if err := one.ix.Drop(t.Context(), wrong); err == nil {
			t.Errorf("%q is dropped", wrong)
		}
	}
	one.found(search.Query{}, "a")
	closes(t, two.ix)
	for range 2 {
		if err := one.ix.Drop(t.Context(), there); err != nil {
			t.Error(err)
		}
	}
	again := &bench{t: t, ix: open([]search.Schema{second})}
	again.found(search.Query{})
	if got := again.ix.Place(items); got != there {
		t.Errorf("the place was %q and is %q", there, got)
	}
	one.found(search.Query{}, "a")
	if one.ix.Instance(items) != instance {
		t.Error("another definition changes the instance")
	}
	closes(t, again.ix)
	closes(t, one.ix)
}

func closes(t *testing.T, ix search.Index) {
	t.Helper()
	failtest.On(t, ix.Close())
}
