package owntable_test

import (
	"testing"

	"weir/internal/owntable"
	"weir/internal/value"
)

func TestShownRow(t *testing.T) {
	o, at := ownTable(t), owntable.Shown("shop")
	read := func() owntable.ShownRow {
		t.Helper()
		is, err := owntable.DecodeShown(o.row(at))
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	one := []owntable.Shape{{Of: []string{"Customer.orders"}, Partition: "C#*", Sort: "METADATA", Is: map[string][]string{"kind": {"customer"}}}}
	first := read()
	w, differs := first.With(at, "shop", one)
	if !differs || !o.writes(w) || o.writes(w) {
		t.Error("it is written on condition that it is as it was read")
	}
	if _, differs := read().With(at, "shop", one); differs {
		t.Error("it says the same")
	}
	other, _ := read().With(at, "stats", one)
	if !o.writes(other) || len(read().Models) != 2 || read().Models["shop"][0].Partition != "C#*" {
		t.Errorf("%+v", read().Models)
	}
	gone, _ := read().With(at, "shop", nil)
	if !o.writes(gone) || len(read().Models) != 1 {
		t.Errorf("%+v", read().Models)
	}
	_, err := owntable.DecodeShown(o.row(at).With(value.Attr{Name: "m:stats", Value: value.OfString("no")}))
	o.unread(err, "m:stats")
}

func TestShapesMeet(t *testing.T) {
	shape := func(p, s string, kinds ...string) owntable.Shape {
		is := owntable.Shape{Partition: p, Sort: s}
		if len(kinds) > 0 {
			is.Is = map[string][]string{"kind": kinds}
		}
		return is
	}
	for _, c := range []struct {
		a, b owntable.Shape
		want bool
	}{
		{shape("C#*", "METADATA"), shape("C#*", "METADATA"), true},
		{shape("C#*", "METADATA"), shape("D#*", "METADATA"), false},
		{shape("C#*", "METADATA"), shape("*", "*"), true},
		{shape("C#*", "M#*"), shape("C#*", "*#1"), true},
		{shape("C#*", "M#*"), shape("C#*", "N"), false},
		{shape("*#A", ""), shape("A#*", ""), true},
		{shape("*", "METADATA", "a"), shape("*", "METADATA", "b", "c"), false},
		{shape("*", "METADATA", "a"), shape("*", "METADATA", "b", "a"), true},
		{shape("*", "METADATA", "a"), shape("*", "METADATA"), true},
	} {
		if c.a.Meets(c.b) != c.want || c.b.Meets(c.a) != c.want {
			t.Errorf("%+v and %+v: want %v", c.a, c.b, c.want)
		}
	}
}
