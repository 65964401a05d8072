package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure are the packages that decide. They do no I/O, read no clock and draw no
// random number: the same input gives the same work, on any day. A file listed
// after a package is one that does, and why it may is said there. They start no
// goroutine either, which is why make race leaves some of them out.
var pure = map[string][]string{
	"internal/seq":          nil,
	"internal/value":        nil,
	"internal/summed":       nil,
	"internal/memory":       {"openfiles.go", "limit_unix.go", "limit_other.go"},                      // asks the machine
	"internal/ingest":       {"writer.go", "batch.go", "migrate.go", "migrate_claims.go", "retry.go"}, // write what the others decide
	"internal/aggregate":    nil,
	"internal/owntable":     nil,
	"internal/projections":  nil,
	"internal/search":       nil,
	"internal/store":        nil,
	"internal/stage":        nil,                       // its store passes calls on
	"internal/events":       {"files.go", "export.go"}, // open recorded files
	"internal/catalog":      {"catalog.go"},            // reads and writes the row
	"internal/model":        {"load.go"},               // opens model files
	"internal/deploy":       nil,
	"internal/contribution": nil,
	"internal/doctor":       nil,
}

// rooms is the folder of the projection kinds, one package each. A room is pure but for
// the files whose names begin with one of acts: only those have a context, and only those
// know the runner.
const rooms = "internal/projections/"

var acts = []string{"apply", "fix"}

// isRoomRule reports whether a file is one of a room that only decides.
func isRoomRule(f file) bool {
	return strings.HasPrefix(f.dir, rooms) && f.dir != rooms+"kinds" &&
		!slices.ContainsFunc(acts, func(name string) bool { return strings.HasPrefix(f.name, name) })
}

// TestRoomsDecideApart holds the rooms of the projection kinds to that.
func TestRoomsDecideApart(t *testing.T) {
	seen := 0
	for _, f := range sources(t) {
		if !isRoomRule(f) {
			continue
		}
		seen++
		f.imports(func(path, _ string) {
			if path == "context" || path == "weir/internal/runner" {
				t.Errorf("%s/%s imports %s; in a room that is for files named %s*.go", f.dir, f.name, path, strings.Join(acts, "*.go, "))
			}
		})
	}
	if seen == 0 {
		t.Error("there are no rooms")
	}
}

// TestDriversKnowNoKind: the runner, and the packages that derive again and explain, go
// through the list of kinds. They import no room, so nothing in them can ask which kind a
// thing is of.
func TestDriversKnowNoKind(t *testing.T) {
	imports := weirImports(t)
	for _, from := range []string{"runner", "scratch"} {
		if len(imports[from]) == 0 {
			t.Errorf("there is no package %s", from)
		}
		for _, to := range imports[from] {
			if room := "internal/" + to; strings.HasPrefix(room, rooms) && room != rooms+"kinds" {
				t.Errorf("%s imports %s, the room of one kind", from, to)
			}
		}
	}
}

// impure are the packages, and of some the names, that a pure package does not use.
var impure = map[string][]string{
	"os": nil, "net": nil, "net/http": nil, "os/exec": nil, "os/signal": nil, "syscall": nil, "log": nil, "log/slog": nil,
	"math/rand": nil, "math/rand/v2": nil, "crypto/rand": nil, "database/sql": nil, "runtime": nil,
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// drivers are what may be imported only where the thing is driven.
var drivers = map[string][]string{
	"github.com/cockroachdb/pebble":  {"internal/store/embedded", "internal/search/embedded", "internal/sim"},
	"github.com/blevesearch/":        {"internal/search/embedded"},
	"github.com/aws/aws-sdk-go-v2":   {"internal/store/dynamodb", "internal/search/opensearch", "internal/survey"},
	"github.com/opensearch-project/": {"internal/search/opensearch"},
	"go.opentelemetry.io/":           {"internal/traces"},
}

// file is a Go file that is built into a program.
type file struct {
	dir, name string // dir from the module's root
	*ast.File
}

func sources(t *testing.T) (out []file) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		rel, _ := filepath.Rel("..", path)
		out = append(out, file{filepath.ToSlash(filepath.Dir(rel)), filepath.Base(rel), f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// imports gives each import's path and the name it has in the file.
func (f file) imports(yield func(path, name string)) {
	for _, im := range f.Imports {
		path, _ := strconv.Unquote(im.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if name == "v2" {
			name = "rand"
		}
		if im.Name != nil {
			name = im.Name.Name
		}
		yield(path, name)
	}
}

func TestPurePackagesDoNothing(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		but, isPure := pure[f.dir]
		isPure = isPure || isRoomRule(f)
		seen[f.dir] = true
		if !isPure || slices.Contains(but, f.name) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if _, starts := n.(*ast.GoStmt); starts {
				t.Errorf("%s/%s starts a goroutine", f.dir, f.name)
			}
			return true
		})
		f.imports(func(path, name string) {
			names, bad := impure[path]
			switch {
			case !bad:
			case names == nil:
				t.Errorf("%s/%s imports %s", f.dir, f.name, path)
			default:
				f.uses(name, names, func(what string) { t.Errorf("%s/%s uses %s.%s", f.dir, f.name, path, what) })
			}
		})
	}
	for dir := range pure {
		if !seen[dir] {
			t.Errorf("there is no package %s", dir)
		}
	}
}

// uses finds the names of a package that the file uses.
func (f file) uses(pkg string, names []string, yield func(string)) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg && slices.Contains(names, s.Sel.Name) {
				yield(s.Sel.Name)
			}
		}
		return true
	})
}

// layers are the packages and programs of the table in ARCHITECTURE.md, in its order.
func layers(t *testing.T) (order []string) {
	t.Helper()
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n| package |")
	table, _, _ = strings.Cut(table, "\n\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no table of packages")
	}
	for _, row := range strings.Split(table, "\n")[2:] {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, link := range regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`).FindAllStringSubmatch(first, -1) {
			if strings.HasSuffix(link[2], ".go") {
				link[2] = filepath.Dir(link[2]) // the API is at the root, whose name is no link
			}
			if name := strings.TrimPrefix(link[2], "internal/"); name != link[1] {
				t.Errorf("ARCHITECTURE.md: [%s] leads to %s", link[1], link[2])
			} else if slices.Contains(order, name) {
				t.Errorf("ARCHITECTURE.md: %s has two places", name)
			}
			order = append(order, strings.TrimPrefix(link[2], "internal/"))
		}
	}
	return order
}

// isSuite reports whether a package is of tests: those may import everything.
func isSuite(dir string) bool { return strings.HasSuffix(dir, "test") }

// weirImports are the packages of weir that each package imports, by their names
// without internal/, for all packages and programs but those of tests and scripts.
func weirImports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, f := range sources(t) {
		if isSuite(f.dir) || strings.HasPrefix(f.dir, "scripts/") {
			continue
		}
		from := strings.TrimPrefix(f.dir, "internal/")
		if out[from] == nil {
			out[from] = []string{}
		}
		f.imports(func(path, _ string) {
			if to, ours := strings.CutPrefix(path, "weir/"); path == "weir" || ours {
				if path == "weir" {
					to = "."
				}
				if to = strings.TrimPrefix(to, "internal/"); !slices.Contains(out[from], to) {
					out[from] = append(out[from], to)
				}
			}
		})
	}
	return out
}

// TestTableOfPackages holds the table in ARCHITECTURE.md to the code: every package
// and program has one place in it, and imports only what stands above that.
func TestTableOfPackages(t *testing.T) {
	order, imports := layers(t), weirImports(t)
	for from, list := range imports {
		at := slices.Index(order, from)
		if at < 0 {
			t.Errorf("%s has no place in the table of ARCHITECTURE.md", from)
			continue
		}
		for _, to := range list {
			if !slices.Contains(order[:at], to) {
				t.Errorf("%s imports %s, which does not stand above it in ARCHITECTURE.md", from, to)
			}
		}
	}
	for _, name := range order {
		if _, ok := imports[name]; !ok && !isSuite("internal/"+name) {
			t.Errorf("ARCHITECTURE.md has a place for %s, and there is no such package", name)
		}
	}
}

// reach are all packages that a package imports, itself or through others.
func reach(imports map[string][]string, from string) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{from}; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		for _, to := range imports[next] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return seen
}

// TestWhatIsLeftOut: the programs that Lambda loads do not have the simulator in them,
// and what derives has nothing of what takes commands.
func TestWhatIsLeftOut(t *testing.T) {
	imports := weirImports(t)
	for from, out := range map[string][]string{
		"projectorcli": {"sim"},
		"ingestcli":    {"sim"},
		"cmd/function": {"sim", "writeapi"},
		"system":       {"sim"},
		"lambda":       {"sim", "ingest", "query", "writeapi"},
		"runner":       {"sim", "ingest", "query", "writeapi"},
		"reader":       {"sim", "ingest", "query", "writeapi"},
	} {
		if len(imports[from]) == 0 {
			t.Errorf("there is no package %s", from)
		}
		for _, to := range out {
			if _, ok := imports[to]; !ok {
				t.Errorf("there is no package %s to leave out", to)
			}
			if reach(imports, from)[to] {
				t.Errorf("%s has %s in it", from, to)
			}
		}
	}
	if !reach(imports, "cmd/simulator")["sim"] {
		t.Error("the simulator has no simulator in it")
	}
}

func TestDriversStayInTheirPackages(t *testing.T) {
	for _, f := range sources(t) {
		if strings.HasPrefix(f.dir, "scripts/") || strings.HasSuffix(f.dir, "test") {
			continue // measures, records and suites of tests drive the things themselves
		}
		f.imports(func(path, _ string) {
			for library, homes := range drivers {
				if strings.HasPrefix(path, library) && !slices.Contains(homes, f.dir) {
					t.Errorf("%s/%s imports %s; that is for %s", f.dir, f.name, path, strings.Join(homes, " and "))
				}
			}
		})
	}
}

// TestNoCodeKnowsAModel: what is particular to a model stands in its file.
func TestNoCodeKnowsAModel(t *testing.T) {
	files, err := filepath.Glob("../models/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.dir, "internal/") || strings.HasSuffix(f.dir, "test") || strings.HasSuffix(f.dir, "cli") || f.dir+"/"+f.name == "internal/sim/main.go" {
			continue // commands give examples; scripts record workloads; suites try words
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			for _, path := range files {
				name := strings.TrimSuffix(filepath.Base(path), ".yaml")
				if ok && regexp.MustCompile(`(?i)\b`+name+`\b`).MatchString(lit.Value) {
					t.Errorf("%s/%s knows %s: %s", f.dir, f.name, name, lit.Value)
				}
			}
			return true
		})
	}
}

// TestContractsAreWhole: what a store or an index can do is declared in its contract.
// Code that asked a value for methods that the contract does not name would go on without
// them, and nothing would say so, where a wrapper does not pass them on.
func TestContractsAreWhole(t *testing.T) {
	contracts := []string{"weir/internal/store", "weir/internal/search"}
	for _, f := range sources(t) {
		if f.dir == "internal/search/embedded" {
			continue // asks what Bleve's segments can do
		}
		names := map[string]bool{} // of the contracts' packages and the drivers'
		f.imports(func(path, name string) {
			for _, c := range contracts {
				names[name] = names[name] || path == c || strings.HasPrefix(path, c+"/")
			}
		})
		ast.Inspect(f.File, func(n ast.Node) bool {
			a, ok := n.(*ast.TypeAssertExpr)
			if !ok || a.Type == nil {
				return true
			}
			to := a.Type
			if p, ok := to.(*ast.StarExpr); ok {
				to = p.X
			}
			switch x := to.(type) {
			case *ast.InterfaceType:
				t.Errorf("%s/%s asserts an interface without a name; declare its methods where the value's are", f.dir, f.name)
			case *ast.SelectorExpr:
				if pkg, ok := x.X.(*ast.Ident); ok && names[pkg.Name] && !strings.HasPrefix(f.dir, "scripts/") {
					t.Errorf("%s/%s asserts %s.%s; what a store or an index can do belongs to its contract", f.dir, f.name, pkg.Name, x.Sel.Name)
				}
			}
			return true
		})
	}
}
