package internal

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTransactionsAreListed: each file that composes a transaction of the store is in the table of
// the page about stores, which says how it stays within DynamoDB's limits, and the tests that are
// named there exist.
func TestTransactionsAreListed(t *testing.T) {
	text, err := os.ReadFile("../docs/decisions/03-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "| in | a transaction is |")
	list, _, ok := strings.Cut(list, "\n**")
	if !ok {
		t.Fatal("there is no table of transactions")
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z/_]+\\.go)`").FindAllStringSubmatch(list, -1) {
		listed["internal/"+m[1]] = true
	}
	composing := map[string]bool{}
	for _, f := range sources(t) {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Transact" {
					composing[path.Join(f.dir, f.name)] = true
				}
			}
			return true
		})
	}
	passing := []string{"internal/store/", "internal/stage/", "internal/sim/", "scripts/"} // they pass transactions on, or measure them
	for name := range composing {
		if !listed[name] && !slices.ContainsFunc(passing, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			t.Errorf("%s composes a transaction: say in docs/decisions/03-stores.md how it stays within the limits", name)
		}
	}
	for name := range listed {
		if !composing[name] {
			t.Errorf("docs/decisions/03-stores.md lists %s, which composes no transaction", name)
		}
	}
	there := testNames(t)
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(list, -1)
	for _, m := range named {
		if !there[m[1]] {
			t.Errorf("docs/decisions/03-stores.md names %s, which does not exist", m[1])
		}
	}
	if len(named) == 0 {
		t.Error("the table names no test")
	}
}

// testNames returns the names of all tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	begins := regexp.MustCompile(`(?m)^func (Test[A-Za-z]+)\(t \*testing\.T\)`)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range begins.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
