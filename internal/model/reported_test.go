package model

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/goldentest"
)

// TestEveryProblemIsShown: each place of this package that reports a problem or a warning is
// reached by a file whose answer a test shows, in testdata/lint or testdata/bad/models.txtar.
// A place that is not is a hint that no one has read, or one that no file can get: give it
// a small model in testdata/lint, or delete it.
func TestEveryProblemIsShown(t *testing.T) {
	met := map[string]bool{}
	reported = func() {
		pcs := make([]uintptr, 64)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			met[fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)] = true
		}
	}
	defer func() { reported = func() {} }()

	TestLint(t)
	TestHugeFilesAreRefused(t)
	TestWidths(t)
	TestTextThatIsNotUTF8IsRefusedAtItsPlace(t)
	base := sections(t, "testdata/base.yaml")
	for _, c := range goldentest.Read(t, "../../testdata/bad/models.txtar").Cases {
		text, alone := strings.CutPrefix(c.Input, "alone\n")
		if !alone && text != "" {
			text = whole(text, base)
		}
		if _, err := Parse(c.Name, []byte(text)); err == nil {
			t.Errorf("nothing is wrong with %s", c.Name)
		}
	}

	places, shown := 0, 0
	for _, lines := range reports(t) {
		places++
		if slices.ContainsFunc(lines, func(at string) bool { return met[at] }) {
			shown++
			continue
		}
		t.Errorf("no model of a test is answered with what %s reports", lines[0])
	}
	t.Logf("%d of %d places shown", shown, places)
	if places < 250 {
		t.Errorf("%d places report something", places)
	}
}

// reports returns the places of this package that report a problem or a warning, each with the
// lines that it is on.
func reports(t *testing.T) (out [][]string) {
	files, err := filepath.Glob("*.go")
	failtest.On(t, err)
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		failtest.On(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"addFlaw", "addRemark", "addWarning", "addCost", "refuseUnknown", "attributeOf", "reportWrong", "reportMissing"}, of.Sel.Name) {
				var lines []string
				for line := set.Position(call.Pos()).Line; line <= set.Position(call.End()).Line; line++ {
					lines = append(lines, fmt.Sprintf("%s:%d", name, line))
				}
				out = append(out, lines)
			}
			return true
		})
	}
	return out
}
