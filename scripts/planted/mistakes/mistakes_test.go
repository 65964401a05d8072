package mistakes

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		file, err := parser.ParseFile(token.NewFileSet(), m.File, text, 0)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		for _, i := range file.Imports { // one that is not used keeps the mistake from being compiled
			if is := strings.Trim(i.Path.Value, `"`); i.Name == nil && !strings.Contains(is, ".") && !bytes.Contains(text, []byte(path.Base(strings.TrimSuffix(is, "/v2"))+".")) {
				t.Errorf("%s: it does not use %s", m.Name, is)
			}
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

// TestTable: the page of the mistakes has a row for each, and sums them up once.
func TestTable(t *testing.T) {
	all, err := Read("../../../testdata/planted.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/planted-bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range all {
		want = append(want, m.Name)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllSubmatch(page, -1) {
		got = append(got, string(row[1]))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("testdata/planted.txt -, docs/planted-bugs.md +; go run ./scripts/planted makes the page:\n%s", d)
	}
	if sums := regexp.MustCompile(`(?m)^Of \d+ mistakes`).FindAll(page, -1); len(sums) != 1 {
		t.Errorf("%d lines sum the mistakes up", len(sums))
	}
}
