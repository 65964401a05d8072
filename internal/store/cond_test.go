package store

import (
	"errors"
	"strings"
	"testing"

	"weir/internal/value"
)

// The suite in storetest says what conditions, updates and refusals mean; here is
// what it cannot see from outside.

var album = Table{
	Name: "album",
	Key: KeySchema{
		Partition: KeyAttr{Name: "PK", Type: value.String},
		Sort:      KeyAttr{Name: "SK", Type: value.Number},
	},
	Indexes: []Index{{Name: "by-owner", Key: KeySchema{
		Partition: KeyAttr{Name: "owner", Type: value.String},
		Sort:      KeyAttr{Name: "at", Type: value.Binary},
	}}},
}

var albumRef = Ref{Table: "album", Key: Key{Partition: value.OfString("a\n"), Sort: value.OfInt(7)}}

// TestAsRead: the test holds for the row that was read, and for one with anything else
// in the attribute's place, or with nothing, it does not.
func TestAsRead(t *testing.T) {
	rows := []value.Item{
		nil, value.NewItem(value.Attr{Name: "other", Value: value.OfInt(1)}),
		value.NewItem(value.Attr{Name: "n", Value: value.OfInt(1)}), value.NewItem(value.Attr{Name: "n", Value: value.OfString("1")}),
		value.NewItem(value.Attr{Name: "n", Value: value.OfInt(0)}), value.NewItem(value.Attr{Name: "n", Value: value.OfNull()}),
	}
	for _, read := range rows {
		w := Write{Ref: albumRef, Delete: true, If: Cond{{AsRead("n", read.Get("n"))}}}
		if err := album.Validate(&w); err != nil {
			t.Error(err)
		}
		for _, now := range rows {
			if is := value.Equal(read.Get("n"), now.Get("n")); w.If.Holds(now) != is {
				t.Errorf("read %v, now %v: %v", read, now, !is)
			}
		}
	}
}

func TestFailedNamesTheWrite(t *testing.T) {
	for _, c := range []struct {
		w    Write
		want string
	}{
		{Write{Ref: albumRef, Put: value.Item{}}, `put album "a\n", 7: the condition does not hold`},
		{Write{Ref: albumRef, Delete: true}, `delete album "a\n", 7: the condition does not hold`},
		{Write{Ref: albumRef, Check: true}, `check album "a\n", 7: the condition does not hold`},
		{Write{Ref: Ref{Table: "t", Key: Key{Partition: value.OfInt(1)}}, Ops: []Op{{}}}, `update t 1: the condition does not hold`},
	} {
		err := c.w.Failed(ErrCondition)
		if err.Error() != c.want || !errors.Is(err, ErrCondition) {
			t.Errorf("got %q, want %q", err, c.want)
		}
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	set := func(attr string, v value.Value) []Op { return []Op{{Kind: Set, Attr: attr, Value: v}} }
	one := value.OfInt(1)
	for _, c := range []struct {
		w    Write
		want string
	}{
		{Write{}, "0 of put, ops, delete and check"},
		{Write{Put: value.Item{}, Check: true}, "2 of put, ops, delete and check"},
		{Write{Ops: set("SK", one)}, "changes key attribute SK"},
		{Write{Ops: append(set("x", one), set("x", one)...)}, "names attribute x twice"},
		{Write{Ops: set("", one)}, `names an attribute ""`},
		{Write{Ops: set("x", value.Value{})}, "sets x to nothing"},
		{Write{Ops: []Op{{Kind: Set, Attr: "x", Value: one, From: one}}}, "update of x starts from a number"},
		{Write{Ops: []Op{{Kind: Add, Attr: "x", Value: one, From: value.OfString("1")}}}, "update of x starts from a string"},
		{Write{Ops: []Op{{Kind: Add, Attr: "x", Value: value.OfString("1")}}}, "adds a string to x"},
		{Write{Ops: []Op{{Kind: 9, Attr: "x"}}}, "does 9 to x"},
		{Write{Ops: set("x", value.Value{}), If: Cond{{{Attr: "y", Is: Eq}}}}, "compares y with nothing"},
		{Write{Delete: true, If: Cond{{{Attr: "y", Is: Lt, Value: value.OfBool(true)}}}}, "orders y by a boolean"},
		{Write{Delete: true, If: Cond{{{Attr: "y", Is: 17}}}}, "asks y for comparison 17"},
		{Write{Ops: set("x", value.OfMap(value.Item{{Name: "b", Value: one}, {Name: "a", Value: one}}))}, "attribute a comes twice or out of order"},
		{Write{Ops: set("x", value.OfList(value.Value{}))}, "attribute x has no value"},
		{Write{Ops: set("x", value.OfStrings(nil))}, "attribute x is an empty set"},
		{Write{Put: value.Item{{Name: "", Value: one}, {Name: "PK", Value: albumRef.Key.Partition}, {Name: "SK", Value: albumRef.Key.Sort}}}, "an attribute has no name"},
	} {
		c.w.Ref = albumRef
		err := album.Validate(&c.w)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestIndexEntry(t *testing.T) {
	ix := &album.Indexes[0]
	s, b := value.OfString, value.OfBinary
	row := func(owner, at value.Value) value.Item {
		return value.NewItem(value.Attr{Name: "owner", Value: owner}, value.Attr{Name: "at", Value: at})
	}
	none := value.Value{}
	for _, c := range []struct {
		row     value.Item
		ok      bool
		refused string
	}{
		{row(s("o"), b("x")), true, ""},
		{row(s("o"), none), false, ""},
		{row(none, b("x")), false, ""},
		{row(none, none), false, ""},
		{nil, false, ""},
		{row(value.OfInt(1), b("x")), false, "index by-owner: the write is refused: key attribute owner is a number, it must be a string"},
		{row(s("o"), s("x")), false, "index by-owner: the write is refused: key attribute at is a string, it must be a binary"},
		{row(none, b("")), false, "at is empty"},
		{row(s(strings.Repeat("x", MaxPartitionBytes+1)), none), false, "owner has 2049 bytes"},
		{row(value.OfNull(), none), false, "owner is a null"},
	} {
		k, ok, err := IndexEntry(ix, c.row)
		if ok != c.ok || (err != nil) != (c.refused != "") || err != nil && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%v: %v, %v", c.row, ok, err)
		}
		if ok && (k.Partition.Text() != "o" || k.Sort.Text() != "x") {
			t.Errorf("entry %v", k)
		}
	}
}

// TestApplyLeavesTheRow: rows are shared, so an update makes a new one.
func TestApplyLeavesTheRow(t *testing.T) {
	row := value.NewItem(value.Attr{Name: "PK", Value: albumRef.Key.Partition}, value.Attr{Name: "SK", Value: albumRef.Key.Sort},
		value.Attr{Name: "a", Value: value.OfInt(1)}, value.Attr{Name: "z", Value: value.OfInt(2)})
	before := row.Clone()
	w := Write{Ref: albumRef, Ops: []Op{{Kind: Remove, Attr: "a"}, {Kind: Set, Attr: "m", Value: value.OfInt(3)}, {Kind: Add, Attr: "z", Value: value.OfInt(1)}}}
	next, err := album.Apply(&w, row)
	if err != nil || !value.EqualItems(row, before) {
		t.Fatalf("the row became %v, %v", row, err)
	}
	if got := string(value.AppendPlainItem(nil, next)); got != `{"PK":"a\n","SK":7,"m":3,"z":3}` {
		t.Errorf("got %s", got)
	}
}

// TestDifference: the update makes the one row of the other, and writes no attribute
// that both have alike.
func TestDifference(t *testing.T) {
	key := []value.Attr{{Name: "PK", Value: albumRef.Key.Partition}, {Name: "SK", Value: albumRef.Key.Sort}}
	row := func(attrs ...string) (it value.Item) {
		it = value.NewItem(key...)
		for _, a := range attrs {
			it = it.With(value.Attr{Name: a[:1], Value: value.OfString(a[1:])})
		}
		return it
	}
	for _, c := range []struct {
		from, to value.Item
		ops      int
	}{
		{row("a1", "c1"), row("a1", "c1"), 0},
		{row(), row("a1", "z1"), 2},
		{row("a1", "z1"), row(), 2},
		{row("a1", "c1", "z1"), row("b1", "c2", "z1"), 3},
	} {
		ops := Difference(c.from, c.to)
		if len(ops) != c.ops {
			t.Errorf("%v to %v: %d operations, want %d", c.from, c.to, len(ops), c.ops)
		}
		got, err := album.Apply(&Write{Ref: albumRef, Ops: ops}, c.from)
		if err != nil || !value.EqualItems(got, c.to) {
			t.Errorf("%v to %v: %v, %v", c.from, c.to, got, err)
		}
	}
}
