package model

import (
	"reflect"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/failtest"
)

// TestDiffOfAPart takes each entry out of each model, alone. The difference is that part, and
// the derivations whose hash is another one; and the same, the other way round.
func TestDiffOfAPart(t *testing.T) {
	tried := map[string]int{}
	for name, text := range modelFiles(t) {
		m := mustParse(t, name, text)
		if d := DiffOf(m, m); len(d.Derivations)+len(d.Parts)+len(d.Tables) > 0 {
			t.Errorf("%s differs from itself: %+v", name, d)
		}
		doc := documentOf(m)
		for _, section := range []string{"derive", "queries", "migrate"} {
			for _, key := range keysOf(nodeAt(doc, []string{section})) {
				text, err := yaml.Marshal(setAt(doc, []string{section, key}, nil))
				failtest.On(t, err)
				less, err := Parse(name, text)
				if err != nil {
					continue // something else needs it
				}
				tried[section]++
				path := section + "." + key
				removed := checkDiff(t, path, m, less, Removed)
				if added := checkDiff(t, path, less, m, Added); !slices.Equal(added, removed) {
					t.Errorf("%s: removes %v, and adds %v", path, removed, added)
				}
				if derives := section == "derive"; derives != (len(removed) > 0) {
					t.Errorf("%s changes %v", path, removed)
				}
			}
		}
	}
	if tried["derive"] < 20 || tried["queries"] < 20 {
		t.Errorf("only %v were tried", tried)
	}
}

func checkDiff(t *testing.T, path string, was, is *Model, what string) []string {
	t.Helper()
	d := DiffOf(was, is)
	want := differingNames(byName(was), byName(is))
	if len(d.Parts) != 1 || d.Parts[0].Path != path || d.Parts[0].What != what || !d.Parts[0].Alone || !slices.Equal(d.Parts[0].Derivations, want) {
		t.Errorf("%s is %s: %+v, want %v", path, what, d.Parts, want)
	}
	var names []string
	for _, x := range d.Derivations {
		names = append(names, x.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s is %s: %v, want %v", path, what, names, want)
	}
	return want
}

// TestDiffOfImages: a stream that a sum needs old images of must have them.
func TestDiffOfImages(t *testing.T) {
	was := mustParse(t, "m", "model: m\ntables: {rows: {key: [PK, SK], stream: new-image}}\nentities: {A: {where: {t: a}, key: {PK: \"{id}\", SK: A}}}\nqueries: {a: {get: A, with: [id]}}\n")
	is := mustParse(t, "m", "model: m\ntables: {rows: {key: [PK, SK]}}\nentities: {A: {where: {t: a}, key: {PK: \"{id}\", SK: A}}}\nqueries: {a: {get: A, with: [id]}}\n")
	d := DiffOf(was, is)
	if len(d.Tables) != 1 || d.Tables[0] != (TableDiff{"rows", "NEW_IMAGE", "NEW_AND_OLD_IMAGES"}) || len(d.Parts) != 1 || d.Parts[0].Path != "tables.rows" || len(d.Parts[0].Derivations) > 0 {
		t.Errorf("%+v", d)
	}
}

// TestDiffTogether: a part is changed in the old file, or back in the new one, or, if it cannot
// be changed alone, with all others like it.
func TestDiffTogether(t *testing.T) {
	text := func(attributes, searched, summed string) *Model {
		return mustParse(t, "m", "model: m\ntables: {rows: {key: [PK, SK]}}\nentities:\n"+
			"  A: {where: {t: a}, key: {PK: \"{id}\", SK: A}}\n"+
			"  B: {where: {t: b}, key: {PK: \"{id}\", SK: \"B{n}\"}, attributes: "+attributes+"}\n"+
			"derive: {A.sum: {sum: B."+summed+", to: {id: id}}}\nsearch: {bs: {of: B, text: ["+searched+"]}}\n")
	}
	was := text("{a: number, x: string}", "x", "a")
	for _, c := range []struct {
		is   *Model
		want []PartDiff
	}{
		{text("{a: number, x: string, y: string}", "x, y", "a"), []PartDiff{
			{Path: "entities.B.attributes", What: Changed, Derivations: []string{}, Alone: true}, {Path: "search.bs", What: Changed, Derivations: []string{"search/bs"}, Alone: true},
		}},
		{text("{a: number, y: string}", "y", "a"), []PartDiff{
			{Path: "entities.B.attributes", What: Changed, Derivations: []string{"search/bs"}}, {Path: "search.bs", What: Changed, Derivations: []string{"search/bs"}},
		}},
		{text("{a: number, x: string, y: string}", "y", "a"), []PartDiff{
			{Path: "entities.B.attributes", What: Changed, Derivations: []string{}, Alone: true}, {Path: "search.bs", What: Changed, Derivations: []string{"search/bs"}, Alone: true},
		}},
	} {
		d := DiffOf(was, c.is)
		if !reflect.DeepEqual(d.Parts, c.want) || len(d.Derivations) != 1 {
			t.Errorf("%+v, want %+v", d.Parts, c.want)
		}
	}
}

// TestDiffOfARename: the parts of an entity that is renamed cannot be changed alone; together they
// change what is derived from its rows under another name, and nothing else.
func TestDiffOfARename(t *testing.T) {
	text := func(name, where string) *Model {
		return mustParse(t, "m", "model: m\ntables: {rows: {key: [PK, SK]}}\nentities:\n"+
			"  A: {where: {t: a}, key: {PK: \"{id}\", SK: A}}\n"+
			"  "+name+": {where: {t: "+where+"}, key: {PK: \"{id}\", SK: \"B{n}\"}, attributes: {a: number}}\n"+
			"derive:\n  A.sum: {sum: "+name+".a, to: {id: id}}\n  A.all: {count: A, to: {id: id}}\nsearch: {as: {of: A, text: [t]}}\n")
	}
	was := text("B", "b")
	for _, c := range []struct {
		is   *Model
		want []string
	}{{text("C", "b"), []string{}}, {text("C", "c"), []string{"A.sum"}}} {
		d := DiffOf(was, c.is)
		if len(d.Parts) != 3 {
			t.Errorf("%+v", d.Parts)
		}
		for _, p := range d.Parts {
			if p.Alone || !reflect.DeepEqual(p.Derivations, c.want) {
				t.Errorf("%+v, want %v", p, c.want)
			}
		}
	}
}
