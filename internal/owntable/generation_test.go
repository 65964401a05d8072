package owntable_test

import (
	"reflect"
	"testing"
	"time"

	"weir/internal/owntable"
	"weir/internal/value"
)

func TestGenerationRow(t *testing.T) {
	o, at := ownTable(t), owntable.Generation("gallery", "h1")
	read := func() owntable.GenerationRow {
		t.Helper()
		g, err := owntable.DecodeGeneration(o.row(at))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	none := read()
	if none.Exists() {
		t.Error("there is a row")
	}
	whole := owntable.GenerationRow{
		Driver: "kind 1", Base: "none x", Filled: true, Reached: true, Part: "gallery-media", Rows: 7, Owner: "me",
		Indexes: map[string]owntable.GenerationIndex{"gallery-media": {Hash: "a", Place: "b", Instance: "c", Base: "d"}},
		Cursor:  value.NewItem(value.Attr{Name: "PK", Value: value.OfString("p")}),
		Until:   time.Unix(1, 0).UTC(), Since: time.Unix(4, 0).UTC(),
	}
	if !o.writes(none.Becomes(at, whole)) || o.writes(none.Becomes(at, whole)) {
		t.Error("a row is written once by what was read")
	}
	is := read()
	back, want := is.Clone(), whole
	if again := (owntable.GenerationRow{}); !o.writes(is.Becomes(at, again)) || read().Filled {
		t.Error("a row becomes what is written")
	}
	if back.Noted("gallery-media") != "c" || again(back).Noted("gallery-media") != "d" || again(back).Noted("other") != "none x" {
		t.Error("what is noted")
	}
	if !is.Exists() || !reflect.DeepEqual([]any{back.Driver, back.Base, back.Filled, back.Reached, back.Part, back.Rows, back.Owner, back.Indexes, value.EqualItems(back.Cursor, want.Cursor), back.Until, back.Since},
		[]any{want.Driver, want.Base, want.Filled, want.Reached, want.Part, want.Rows, want.Owner, want.Indexes, true, want.Until, want.Since}) {
		t.Errorf("%+v, want %+v", back, want)
	}
	for _, attr := range []string{"d", "f", "e", "z", "u", "i", "c", "n", "r"} {
		_, err := owntable.DecodeGeneration(o.row(at).With(value.Attr{Name: attr, Value: value.OfList()}))
		o.unread(err, attr)
	}
	if o.writes(is.Drop(at)) || !o.writes(read().Drop(at)) || read().Exists() {
		t.Error("a row is dropped as it was read, and no other")
	}
}

func again(g owntable.GenerationRow) owntable.GenerationRow { g.Filled = false; return g }
