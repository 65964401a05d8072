package kinds

import (
	"path/filepath"
	"testing"

	"weir/internal/model"
)

// TestEachKindSpeaks: something is said of each derivation, of every kind that a model can have.
func TestEachKindSpeaks(t *testing.T) {
	files, err := filepath.Glob("../../model/testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, "../../sim/testdata/press.yaml", "../../sim/testdata/shops.yaml")
	met := map[string]bool{}
	for _, file := range files {
		m, err := model.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		d := model.DiffOf(&model.Model{Name: "another"}, m)
		ExplainDiff(d, m)
		for i := range d.Derivations {
			x := &d.Derivations[i]
			met[x.Kind] = true
			for _, what := range []string{model.Added, model.Changed, model.Renamed} {
				x.What = what
				if becomesOf(x) == "" {
					t.Errorf("%s: nothing is said of %s, a %s that is %s", file, x.Name, x.Kind, what)
				}
			}
		}
	}
	for _, kind := range []string{"count", "sum", "mean", "distinct", "set", "group", "status", "copy", "history", "follow", "feed", "search"} {
		if !met[kind] {
			t.Errorf("no model has a %s", kind)
		}
	}
}
