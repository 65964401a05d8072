package owntable_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestAttributesStandHere: code that reads or writes our table names none of its attributes.
// An attribute of an application's row comes from the model, so in a package that imports
// this one every constant text is suspect that stands as the name of an attribute: in Get,
// Has and Set, and as a field Attr or Name. The test sees constants of the same package; it
// does not see a name that is put together from pieces.
func TestAttributesStandHere(t *testing.T) {
	others := map[string][]string{ // names of other things, by file
		"internal/cases/way.go":                   {"letter", "entity", "item"},                                             // of a line of what is expected, in JSON
		"internal/projectorcli/dev.go":            {"op"},                                                                   // of a command, in JSON
		"internal/projectorcli/server.go":         {"Content-Type", "Authorization", "select", "limit", "cursor", "server"}, // headers, parameters, a flag
		"internal/ingest/json.go":                 {"item"},                                                                 // of a command, in JSON
		"internal/api/api.go":                     {"Retry-After", "Weir-Unfinished"},                                       // headers
		"internal/api/problem.go":                 {"Retry-After"},
		"internal/console/queries.go":             {"ask", "Authorization", "limit"}, // parameters and a header
		"internal/console/letters.go":             {"Content-Type"},
		"internal/console/retry.go":               {"action", "sure"},
		"internal/console/tail.go":                {"Retry-After", "Last-Event-ID"},
		"internal/console/try.go":                 {"action", "v"},
		"internal/model/compile_query.go":         {"q"},                  // a parameter
		"internal/query/cursor.go":                {"doc", "row", "scan"}, // of a cursor
		"internal/sim/app.go":                     {"ballast"},            // these three: rows of a simulated application
		"internal/sim/schedule.go":                {"ballast"},
		"internal/sim/values.go":                  {"k", "n"},
		"internal/ingest/ingesttest/conflicts.go": {"EntityType"},
	}
	generic := []string{"Position", "Count", "Parked", "Unshown", "PositionOf"} // attributes that several kinds of rows have
	packages := map[string][]*ast.File{}
	set := token.NewFileSet()
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, 0)
			if folder := filepath.ToSlash(filepath.Dir(path)); folder != "../../internal/owntable" {
				packages[folder] = append(packages[folder], file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	checked := 0
	for folder, files := range packages {
		imports := func(f *ast.File, path string) bool {
			return slices.ContainsFunc(f.Imports, func(im *ast.ImportSpec) bool { return im.Path.Value == strconv.Quote(path) })
		}
		if !slices.ContainsFunc(files, func(f *ast.File) bool { return imports(f, "weir/internal/owntable") }) {
			continue
		}
		consts := constantTexts(files)
		text := func(x ast.Expr) (string, bool) {
			switch x := x.(type) {
			case *ast.BasicLit:
				s, err := strconv.Unquote(x.Value)
				return s, err == nil && x.Kind == token.STRING
			case *ast.Ident:
				s, ok := consts[x.Name]
				return s, ok
			}
			return "", false
		}
		for _, f := range files {
			if !imports(f, "weir/internal/value") && !imports(f, "weir/internal/store") {
				continue // the names in it are of something else, such as HTTP headers
			}
			checked++
			refuse := func(x ast.Expr) {
				file := strings.TrimPrefix(filepath.ToSlash(set.Position(x.Pos()).Filename), "../../")
				if s, ok := text(x); ok && !slices.Contains(others[file], s) {
					t.Errorf("%s names the attribute %q: rows of our table are encoded and decoded in package owntable", set.Position(x.Pos()), s)
				}
			}
			harness := folder == "../../internal/sim" || strings.HasSuffix(folder, "test")
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "owntable" && !harness && slices.Contains(generic, n.Sel.Name) {
						t.Errorf("%s uses owntable.%s, which is for tests and the simulator: a row's own methods say what it holds", set.Position(n.Pos()), n.Sel.Name)
					}
				case *ast.CallExpr:
					if sel, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 && slices.Contains([]string{"Get", "Has", "Set", "Attr", "AsRead", "Below"}, sel.Sel.Name) {
						refuse(n.Args[0])
					}
				case *ast.CompositeLit:
					if !isAttribute(n.Type) {
						return true
					}
					for _, el := range n.Elts {
						if kv, ok := el.(*ast.KeyValueExpr); ok {
							if name, ok := kv.Key.(*ast.Ident); ok && (name.Name == "Attr" || name.Name == "Name") {
								refuse(kv.Value)
							}
						}
					}
				}
				return true
			})
		}
	}
	if checked < 20 {
		t.Errorf("only %d files use our table", checked)
	}
}

// isAttribute reports whether a composite literal is of a type with the name of an
// attribute, or of a type that stands further out.
func isAttribute(x ast.Expr) bool {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return x == nil
	}
	pkg, _ := sel.X.(*ast.Ident)
	return pkg != nil && (pkg.Name == "store" && (sel.Sel.Name == "Op" || sel.Sel.Name == "Test") || pkg.Name == "value" && sel.Sel.Name == "Attr")
}

// constantTexts are the constants of a package that are texts, by name.
func constantTexts(files []*ast.File) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, x := range v.Values {
					if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						if text, err := strconv.Unquote(lit.Value); err == nil {
							out[v.Names[i].Name] = text
						}
					}
				}
			}
		}
	}
	return out
}
