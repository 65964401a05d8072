package model

import (
	"slices"
	"testing"

	"weir/internal/failtest"
	"weir/internal/value"
)

func loaded(t *testing.T, name string) *Model {
	t.Helper()
	m, err := Load(name)
	failtest.On(t, err)
	return m
}

// row makes an item of strings: name, value, name, value.
func row(pairs ...string) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}

func TestClassify(t *testing.T) {
	table := loaded(t, "gallery").Table("gallery")
	for _, c := range []struct {
		row  value.Item
		want string
	}{
		{row("PK", "ALBUM#1", "SK", "METADATA", "EntityType", "Album"), "Album"},
		{row("PK", "ALBUM#1", "SK", "MEDIA#2", "EntityType", "AlbumMedia"), "AlbumMedia"},
		{row("PK", "ALBUM#1", "SK", "MEDIA#2", "EntityType", "AlbumMedia", "filename", "a.jpg"), "AlbumMedia"},
		{row("PK", "ALBUM#1", "SK", "MEDIA#2", "EntityType", "Media", "filename", "a.jpg"), "OldMedia"},
		{row("PK", "ALBUM#1", "SK", "MEDIA#2", "filename", "a.jpg"), "OldMedia"},
		{row("PK", "ALBUM#1", "SK", "MEDIA#2"), ""},
		{row("PK", "ALBUM#1", "SK", "MEDIA#2").With(value.Attr{Name: "filename", Value: value.OfNull()}), ""},
		{row("PK", "MEDIA#1", "SK", "METADATA", "EntityType", "Album"), ""},
		{row("PK", "ALBUM#", "SK", "METADATA", "EntityType", "Album"), ""},
		{row("PK", "ALBUM#1", "SK", "METADATA2", "EntityType", "Album"), ""},
		{row("PK", "ALBUM#1", "EntityType", "Album"), ""},
		{value.NewItem(value.Attr{Name: "PK", Value: value.OfInt(1)}, value.Attr{Name: "SK", Value: value.OfString("METADATA")}), ""},
		{value.Item{}, ""},
		{nil, ""},
	} {
		got := ""
		if e := table.Classify(c.row); e != nil {
			got = e.Name
		}
		if got != c.want {
			t.Errorf("%v is %q, want %q", c.row, got, c.want)
		}
	}
}

// TestClassifyByKind: looking at a table's kind first makes it faster, and nothing else,
// whatever stands there.
func TestClassifyByKind(t *testing.T) {
	seen := 0
	for _, name := range append(Builtin(), "testdata/told.yaml") {
		for _, table := range loaded(t, name).Tables {
			kinds := []value.Value{{}, value.OfNull(), value.OfInt(1), value.OfBool(true), value.OfString("true"), value.OfString("")}
			for _, e := range table.Entities {
				for _, w := range e.Where {
					kinds = append(kinds, w.Constants()...)
				}
			}
			for _, e := range table.Entities {
				for _, kind := range kinds {
					row := rowLike(e, kind)
					var want *Entity
					if i := slices.IndexFunc(table.Entities, func(e *Entity) bool { return e.Match(row) }); i >= 0 {
						want, seen = table.Entities[i], seen+1
					}
					if got := table.Classify(row); got != want {
						t.Errorf("%s: %v is %v, want %v", name, row, got, want)
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no row is of any entity")
	}
}

// rowLike is a row with an entity's key and every field that it tests, all with one value.
func rowLike(e *Entity, v value.Value) value.Item {
	var attrs []value.Attr
	for _, w := range e.Where {
		attrs = append(attrs, value.Attr{Name: w.Field.Attr, Value: v})
	}
	it := value.NewItem()
	for _, k := range e.PrimaryKey() {
		text, _ := k.Template.Build(func(string) string { return "x" })
		attrs = append(attrs, value.Attr{Name: k.Attr.Name, Value: value.OfString(text)})
	}
	for _, a := range attrs {
		it = it.With(a)
	}
	return it
}

func TestFieldGet(t *testing.T) {
	gallery, wardrobe := loaded(t, "gallery"), loaded(t, "wardrobe")
	interaction := row("PK", "USER#u#1", "SK", "INTERACTION#like#m#2", "userId", "other", "createdAt", "now")
	item := row("PK", "USER#u", "SK", "ITEM#i", "GSI1PK", "USER#u#SEASON#fall", "GSI1SK", "ITEM#2026", "Name", "Hat")
	for _, c := range []struct {
		e     *Entity
		field string
		row   value.Item
		want  value.Value
		typed bool
	}{
		{gallery.Entity("UserInteraction"), "userId", interaction, value.OfString("u#1"), false},
		{gallery.Entity("UserInteraction"), "interactionType", interaction, value.OfString("like"), false},
		{gallery.Entity("UserInteraction"), "mediaId", interaction, value.OfString("m#2"), false},
		{gallery.Entity("UserInteraction"), "createdAt", interaction, value.OfString("now"), true},
		{gallery.Entity("UserInteraction"), "nothing", interaction, value.Value{}, true},
		{gallery.Entity("UserInteraction"), "userId", row("PK", "ALBUM#1"), value.Value{}, false},
		{gallery.Entity("UserInteraction"), "userId", row(), value.Value{}, false},
		{wardrobe.Entity("UserItem"), "Name", item, value.OfString("Hat"), true},
		{wardrobe.Entity("UserItem"), "CreatedAt", item, value.OfString("2026"), false}, // only its index's key has it
		{wardrobe.Entity("UserItem"), "Season", item, value.Value{}, true},              // declared: the attribute
	} {
		f := c.e.Field(c.field)
		if got := f.Get(c.row); !value.Equal(got, c.want) || f.Typed() != c.typed {
			t.Errorf("%s.%s: %v (typed %v), want %v", c.e.Name, c.field, got, f.Typed(), c.want)
		}
	}
}

// A key attribute that is a number stays one, whether the key is the name itself
// or the name stands for it.
func TestFieldOfWholeKeys(t *testing.T) {
	m := loaded(t, "testdata/good/tables.yaml")
	f := m.Entity("Suggestion").Field("tmdb_movie_id")
	r := row("round_id", "r").With(value.Attr{Name: "tmdb_movie_id", Value: value.OfInt(7)})
	if got := f.Get(r); !value.Equal(got, value.OfInt(7)) || f.Type != TypeNumber {
		t.Errorf("%v, a %s", got, f.Type)
	}
	if f := m.Entity("Cached").Field("cache_key"); f.Type != TypeString || f.Attr != "cache_key" || !f.Typed() {
		t.Errorf("%+v", f)
	}
}

func TestKey(t *testing.T) {
	m := loaded(t, "testdata/good/tables.yaml")
	get := func(values ...value.Attr) func(string) value.Value {
		return value.NewItem(values...).Get
	}
	round := value.Attr{Name: "round_id", Value: value.OfString("r")}
	movie := func(v value.Value) value.Attr { return value.Attr{Name: "tmdb_movie_id", Value: v} }
	suggestion, vote := m.Entity("Suggestion"), m.Entity("Vote")

	for _, v := range []value.Value{value.OfInt(7), value.OfString("7"), value.OfString("7.0")} {
		k, ok := suggestion.Key(get(round, movie(v)))
		if !ok || !value.Equal(k.Partition, value.OfString("r")) || !value.Equal(k.Sort, value.OfInt(7)) {
			t.Errorf("%v: %v, %v", v, k, ok)
		}
	}
	for _, v := range []value.Value{{}, value.OfString("x"), value.OfString(""), value.OfBool(true), value.OfNull()} {
		if k, ok := suggestion.Key(get(round, movie(v))); ok {
			t.Errorf("%v makes the key %v", v, k)
		}
	}
	k, ok := vote.Key(get(round, movie(value.OfInt(7)), value.Attr{Name: "member_id", Value: value.OfString("m")}))
	if !ok || k.Sort.Text() != "7#m" {
		t.Errorf("%v, %v", k, ok)
	}
	if _, ok := vote.Key(get(round, movie(value.OfInt(7)))); ok {
		t.Error("a key without one of its names")
	}
	if _, ok := m.Entity("User").Key(get(value.Attr{Name: "user_id", Value: value.OfString("")})); ok {
		t.Error("an empty key")
	}
}

func TestBuildOfIndexKeys(t *testing.T) {
	album := loaded(t, "gallery").Entity("Album")
	r := row("PK", "ALBUM#1", "SK", "METADATA", "isPublic", "true", "createdAt", "2026")
	get := func(name string) value.Value { return album.Field(name).Get(r) }
	for attr, want := range map[string]string{"PK": "ALBUM#1", "SK": "METADATA", "GSI1PK": "ALBUM", "GSI1SK": "2026#1", "GSI4SK": "", "isPublic": "true", "createdAt": "2026"} {
		v, ok := album.KeyTemplate(attr).Build(get)
		if ok != (want != "") || ok && v.Text() != want {
			t.Errorf("%s: %v, %v, want %q", attr, v, ok, want)
		}
	}
	if album.KeyTemplate("GSI2PK") != nil {
		t.Error("albums are not in GSI2")
	}
}

// TestHolds: all tests must hold, each for its own field.
func TestHolds(t *testing.T) {
	f := func(name string) *Field { return &Field{Name: name, Attr: name, Type: TypeAny} }
	is := func(name, v string) Test {
		return Test{f(name), value.Condition{{Op: value.In, Values: []value.Value{value.OfString(v)}}}}
	}
	if !Holds(nil, nil) {
		t.Error("no test holds always")
	}
	for _, c := range []struct {
		tests []Test
		want  bool
	}{{[]Test{is("x", "a")}, true}, {[]Test{is("x", "b")}, false}, {[]Test{is("x", "a"), is("y", "a")}, false}, {[]Test{is("y", "a")}, false}} {
		if got := Holds(c.tests, row("x", "a")); got != c.want {
			t.Errorf("%+v: %v", c.tests, got)
		}
	}
}
