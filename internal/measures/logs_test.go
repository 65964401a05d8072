package measures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/goldentest"
)

const (
	guide      = "../../docs/guide/metrics.md"
	begin, end = "<!-- events: go test ./internal/measures -says -->\n", "<!-- end of events -->\n"
)

// guidePage is the part of docs/guide/metrics.md that lists the events: a line for each that a person may have to act
// on, and the names of the others.
func guidePage() string {
	var b strings.Builder
	var others []string
	b.WriteString("| event | means |\n|---|---|\n")
	for _, e := range events {
		if e.Level < slog.LevelWarn || e.Means == "nothing to do" || e.Means == "tried again" {
			others = append(others, "`"+e.Name+"`")
		} else {
			fmt.Fprintf(&b, "| `%s` | %s |\n", e.Name, e.Means)
		}
	}
	fmt.Fprintf(&b, "\nNothing is to be done for %s, and `%s`, a line of a library.\n", strings.Join(others, ", "), other)
	return strings.NewReplacer("](#", "](operations.md#", "`projector ", "`weir ").Replace(b.String())
}

// TestGuide: the guide has the list, as guidePage writes it. With -says it is written into the page.
func TestGuide(t *testing.T) {
	goldentest.Part(t, guide, begin, end, "\n"+guidePage()+"\n")
}

// TestEveryLineHasItsEvent: each line that the code logs is in the list with its level, and each of the list is logged.
// Names are unique.
func TestEveryLineHasItsEvent(t *testing.T) {
	logged := map[string]bool{}
	levels := map[string]slog.Level{"Info": slog.LevelInfo, "Warn": slog.LevelWarn, "Error": slog.LevelError, "Debug": slog.LevelDebug, "logFault": slog.LevelError}
	for _, root := range []string{"../../cmd", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				level, ok := levels[f.Sel.Name]
				of := fmt.Sprint(receiver(f.X))
				if !ok || !strings.HasSuffix(strings.ToLower(of), "log") && !(f.Sel.Name == "logFault" && of == "k") {
					return true
				}
				lit, ok := call.Args[0].(*ast.BasicLit)
				if !ok { // keys.go hands its messages on; its callers are looked at
					if !strings.HasSuffix(path, "web/keys.go") {
						t.Errorf("%s logs what is no literal", path)
					}
					return true
				}
				message, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				if name := Of(level, message); name == other {
					t.Errorf("%s logs %q as %s, which is in no list of events", path, message, level)
				} else {
					logged[name] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, e := range events {
		if seen[e.Name] || !regexp.MustCompile(`^[a-z]+(\.[a-z_]+)?$`).MatchString(e.Name) || e.Means == "" {
			t.Errorf("%s is there twice, is no name of an event, or means nothing", e.Name)
		}
		if seen[e.Name] = true; !logged[e.Name] && e.Name != "store.failed" {
			t.Errorf("nothing logs %s: %s %q", e.Name, e.Level, e.Message)
		}
	}
	if Of(slog.LevelError, "embedded store: the disk is full") != "store.failed" {
		t.Error("messages of the embedded store have no event")
	}
}

// receiver is the last name of an expression.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// TestJSON: a line is one object with time, level, message, event and attributes whose names have no spaces; what a
// command prints is a line too, once it is whole; a level leaves out what is below it.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	log, stderr := Logging{Log: "json", LogLevel: "info"}.Open(&out)
	log.With("model", "gallery").Warn("applying", "group", "rows", "again in", 5*time.Second, "error", fmt.Errorf("no"))
	fmt.Fprint(stderr, "serving gal")
	fmt.Fprint(stderr, "lery\n\n")
	log.Debug("nothing")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	for i, want := range []map[string]string{
		{"level": "WARN", "msg": "applying", "event": "apply.failed", "model": "gallery", "group": "rows", "again_in": "5s", "error": "no"},
		{"level": "INFO", "msg": "progress", "event": "progress", "says": "serving gallery"},
	} {
		var got map[string]string
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if got["time"] == "" {
			t.Error("it has no time")
		}
		delete(got, "time")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, should be %v", got, want)
		}
	}
	out.Reset()
	if log, stderr := (Logging{Log: "text", LogLevel: "error"}).Open(&out); stderr != &out {
		t.Error("text is not printed as it is")
	} else if log.Warn("applying"); out.Len() > 0 {
		t.Errorf("a warning is logged at the level of errors: %s", out.String())
	}
}
