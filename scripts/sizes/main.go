// Command sizes counts how large weir is, and compares each figure with the most that the file
// scripts/sizes/limits allows.
//
//	go run ./scripts/sizes           prints each figure with its limit; exits with 1 if one is above
//	go run ./scripts/sizes -lower    writes the figures that are below their limit as the limits
//
// A line counts if it has a token of Go: blank lines and comments do not. Generated files count.
// Limits fall with the figures. A commit that raises one does only that, and its message gives
// the figure and the reason.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const (
	limitsFile   = "scripts/sizes/limits"
	glossaryPage = "docs/glossary.md"
	rowsFile     = "internal/owntable/owntable.go"
)

// generated are the pages that scripts/clihelp, scripts/planted and tests (metrics.md) write: their words are not written by hand.
var generated = map[string]bool{"docs/guide/cli.md": true, "docs/guide/metrics.md": true, "docs/planted-bugs.md": true}

// figures are the names of all counts, in the order in which they are printed.
var figures = []struct{ name, of string }{
	{"product", "lines of Go in the root, weirtest, cmd and internal, without tests and test support"},
	{"support", "lines of Go in internal/sim and in directories whose name ends in test"},
	{"tests", "lines of Go in _test.go files"},
	{"scripts", "lines of Go in scripts"},
	{"packages", "packages of the product"},
	{"exported", "exported names at the top of the product's packages, and methods"},
	{"words", "words of Markdown, without pages that programs write"},
	{"glossary", "words that the glossary explains"},
	{"rows", "kinds of rows in weir's own table, by partition and sort key"},
}

func main() {
	lower := flag.Bool("lower", false, "write the figures that are below their limit as the limits")
	flag.Parse()
	above, err := printFigures(*lower)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(2)
	}
	if above > 0 {
		os.Exit(1)
	}
}

// printFigures prints the figures, and returns how many are above their limit.
func printFigures(lower bool) (above int, err error) {
	counts, err := countTree()
	if err != nil {
		return 0, err
	}
	limits, err := readLimits()
	if err != nil {
		return 0, err
	}
	var line, kept []string
	for _, f := range figures {
		n, limit := counts[f.name], limits[f.name]
		word := ""
		if n > limit {
			above++
			word = "  ABOVE"
		}
		fmt.Printf("%-9s %7d of %7d  %s%s\n", f.name, n, limit, f.of, word)
		line = append(line, fmt.Sprintf("%s %d", f.name, n))
		kept = append(kept, fmt.Sprintf("%s %d\n", f.name, min(n, limit)))
	}
	if above > 0 {
		fmt.Printf("above a limit: make it smaller, or raise the limit in %s in a commit of its own that says why\n", limitsFile)
	} else {
		fmt.Println("=> " + strings.Join(line, ", "))
	}
	if lower {
		err = os.WriteFile(limitsFile, []byte(strings.Join(kept, "")), 0o644)
	}
	return above, err
}

// readLimits reads lines of a figure's name and its limit. Each figure has one.
func readLimits() (map[string]int, error) {
	text, err := os.ReadFile(limitsFile)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if out[name], err = strconv.Atoi(number); err != nil {
			return nil, fmt.Errorf("%s: %q is not a figure and its limit", limitsFile, line)
		}
	}
	for _, f := range figures {
		if _, is := out[f.name]; !is {
			return nil, fmt.Errorf("%s: no limit for %s", limitsFile, f.name)
		}
	}
	return out, nil
}

// countTree counts in the files that git knows, as they are now, with those not committed yet.
func countTree() (map[string]int, error) {
	list, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate").Output()
	if err != nil {
		return nil, err
	}
	counts, packages := map[string]int{}, map[string]bool{}
	for file := range strings.Lines(string(list)) {
		file = strings.TrimSpace(file)
		ext := path.Ext(file)
		if ext != ".go" && ext != ".md" {
			continue
		}
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return nil, err
		}
		if ext == ".md" {
			countPage(counts, file, text)
			continue
		}
		part := partOf(file)
		counts[part] += codeLines(text)
		if part == "product" {
			packages[path.Dir(file)] = true
			n, err := exportedNames(file, text)
			if err != nil {
				return nil, err
			}
			counts["exported"] += n
		}
		if file == rowsFile {
			counts["rows"] = len(rowLine.FindAll(text, -1))
		}
	}
	counts["packages"] = len(packages)
	return counts, nil
}

// partOf returns the part of the tree that a Go file belongs to, "" for one that is not counted.
func partOf(file string) string {
	dir := path.Dir(file)
	switch {
	case strings.HasSuffix(file, "_test.go"):
		return "tests"
	case strings.HasPrefix(dir, "scripts/"):
		return "scripts"
	case dir == "internal/sim", strings.HasPrefix(dir, "internal/sim/"), strings.HasPrefix(dir, "internal/") && strings.HasSuffix(dir, "test"):
		return "support"
	case dir == ".", dir == "weirtest", strings.HasPrefix(dir, "cmd/"), strings.HasPrefix(dir, "internal/"):
		return "product"
	}
	return ""
}

// codeLines counts the lines on which a token is, or a part of one.
func codeLines(text []byte) (n int) {
	set := token.NewFileSet()
	f := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(f, text, nil, 0)
	last := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // the scanner's own, at the end of a line
		}
		for i, part := range strings.Split(lit, "\n") {
			if line := f.Line(pos) + i; line > last && (lit == "" || strings.TrimSpace(part) != "") {
				n, last = n+1, line
			}
		}
	}
}

// exportedNames counts the exported declarations of a file, and the exported methods of its types.
func exportedNames(file string, text []byte) (n int, err error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	count := func(name *ast.Ident) {
		if name.IsExported() {
			n++
		}
	}
	for _, decl := range tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			count(d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					count(s.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						count(name)
					}
				}
			}
		}
	}
	return n, nil
}

// countPage counts the words of a Markdown page, and the entries of the glossary.
func countPage(counts map[string]int, file string, text []byte) {
	if generated[file] {
		return
	}
	counts["words"] += len(bytes.Fields(text))
	if file != glossaryPage {
		return
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "|---") {
			counts["glossary"]-- // the line above it is the head of a table
		} else if strings.HasPrefix(line, "| ") {
			counts["glossary"]++
		}
	}
}

// rowLine matches a line of the list in the comment of package owntable, which the tests of
// the package hold to what it writes: partition key, "s", sort key.
var rowLine = regexp.MustCompile(`(?m)^//\t\S+ +s +\S`)
