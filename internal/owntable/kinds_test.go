package owntable_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/owntable"
)

var firstWord = regexp.MustCompile(`^([a-z]+)\|`)

// kindsWritten returns the first words of the partition keys that this package makes.
func kindsWritten(t *testing.T) map[string]bool {
	t.Helper()
	others := []string{"notify", "m", "t"} // of sort keys
	out := map[string]bool{owntable.KindSecret: true}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			if m := firstWord.FindStringSubmatch(text); m != nil && !slices.Contains(others, m[1]) {
				out[m[1]] = true
			}
			return true
		})
	}
	return out
}

// TestKindsAreListed: each kind of row is in the comment of the package and in the table of the guide for operators, which
// says what such rows are and what removes them; and neither has one that weir does not write.
func TestKindsAreListed(t *testing.T) {
	written := slices.Sorted(maps.Keys(kindsWritten(t)))
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	compare := func(where string, listed map[string]bool) {
		t.Helper()
		for _, kind := range written {
			if !listed[kind] {
				t.Errorf("%s: the rows %q are not there", where, kind)
			}
		}
		for kind := range listed {
			if !slices.Contains(written, kind) {
				t.Errorf("%s: weir writes no rows %q", where, kind)
			}
		}
	}
	inComment := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z]+)(?:\|\S+)? +s \S`).FindAllStringSubmatch(read("owntable.go"), -1) {
		inComment[m[1]] = true
	}
	compare("the comment of the package", inComment)

	_, table, ok := strings.Cut(read("../../docs/guide/operations.md"), "| rows | are | removed |\n|---|---|---|\n")
	if !ok {
		t.Fatal("the guide has no table of the rows")
	}
	inGuide := map[string]bool{}
	for line := range strings.Lines(table) {
		if line == "\n" {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
			t.Errorf("the guide's line has not three cells, each with a text: %s", line)
		}
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(cells[0], -1) {
			inGuide[m[1]] = true
		}
	}
	compare("docs/guide/operations.md", inGuide)
}
