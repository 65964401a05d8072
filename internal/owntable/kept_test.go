package owntable_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestKeysStandHere: no other package writes the beginning of a key of our table as a
// literal, such as "check|" or Ref("secret", …). It sees string literals in what is not a
// test, and no key that is put together from shorter ones. It does not see attributes:
// most have one letter, which says nothing outside this package.
func TestKeysStandHere(t *testing.T) {
	kinds := kindsWritten(t)
	met := map[string]int{}
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/owntable/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr: // owntable.Ref of a literal
					f, ok := n.Fun.(*ast.SelectorExpr)
					if !ok || len(n.Args) == 0 || f.Sel.Name != "Ref" {
						return true
					}
					if of, ok := f.X.(*ast.Ident); ok && of.Name == "owntable" {
						if _, literal := n.Args[0].(*ast.BasicLit); literal {
							met[name]++
						}
					}
				case *ast.BasicLit:
					text, _ := strconv.Unquote(n.Value)
					for kind := range kinds {
						if strings.HasPrefix(text, kind+"|") {
							met[name]++
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, n := range met {
		t.Errorf("%s has %d keys of our table as literals: name them in package owntable", name, n)
	}
}
