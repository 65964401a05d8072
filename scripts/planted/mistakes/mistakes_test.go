package mistakes

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weir/internal/model"
)

// TestMistakes: the code has not moved away from under the mistakes. That each is
// noticed takes a build for each; scripts/planted does that.
func TestMistakes(t *testing.T) {
	all, err := Read("../../../testdata/planted.txt")
	if err != nil || len(all) < 30 {
		t.Fatal(len(all), err)
	}
	for _, m := range all {
		text, err := m.Plant("../../..")
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.File, text, 0); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for _, name := range m.Models {
			if slices.Contains(model.Builtin(), name) {
				continue
			}
			if _, err := os.Stat(filepath.Join("../../..", name)); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}
