// Command english finds words and phrases that often make a sentence hard to read. It searches
// Markdown files, and the comments and string literals of Go files that are not tests.
//
//	go run ./scripts/english README.md docs           prints each hit; exits with 1 for any
//	go run ./scripts/english -count cmd internal      prints the number of hits by directory
package main

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// signs are the patterns that are searched for, each with what to write instead.
var signs = []struct {
	text *regexp.Regexp
	hint string
}{
	{regexp.MustCompile(`(?i)\b(nobody|somebody)\b`), "name the program or person: no process, another user"},
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\bamid\b`), "in the middle of, during"},
	{regexp.MustCompile(`(?i)\bbe it\b`), "even if it is"},
	{regexp.MustCompile(`(?i)\bwhoever\b|\bfor who\b|(^|[.;:|]\s+)who\s[^?]*$`), "put a noun before who: a process that, the user who"},
	{regexp.MustCompile(`(?i)\bcomes? by\b`), "arrives, passes"},
	{regexp.MustCompile(`(?i)\b(is|are) there\s*([.,;:|]|$)`), "exists"},
	{regexp.MustCompile(`(?i)\b(he|him|his)\b`), "a process or a row is it"},
}

// code matches text that is not prose: code in Markdown, and URLs.
var code = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|https?://\\S+")

type hit struct {
	file string
	line int
	text string
	hint string
}

func main() {
	count := flag.Bool("count", false, "print how many hits there are in each directory")
	flag.Parse()
	hits, err := findHits(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "english:", err)
		os.Exit(2)
	}
	if *count {
		counts := map[string]int{}
		for _, h := range hits {
			counts[filepath.Dir(h.file)]++
		}
		for _, dir := range slices.Sorted(maps.Keys(counts)) {
			fmt.Printf("%5d %s\n", counts[dir], dir)
		}
		fmt.Printf("%5d\n", len(hits))
		return
	}
	for _, h := range hits {
		fmt.Printf("%s:%d: %s (%s)\n", h.file, h.line, h.text, h.hint)
	}
	if len(hits) > 0 {
		os.Exit(1)
	}
}

// findHits searches files, and directories recursively.
func findHits(paths []string) (hits []hit, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			var look func(file, text string) []hit
			switch {
			case strings.HasSuffix(file, ".md"):
				look = searchMarkdown
			case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
				look = searchSource
			default:
				return nil
			}
			b, err := os.ReadFile(file)
			hits = append(hits, look(file, string(b))...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// searchMarkdown searches the lines of a page. It skips code blocks, except blocks of text: these
// show what programs print.
func searchMarkdown(file, text string) (hits []hit) {
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		if name, ok := strings.CutPrefix(line, "```"); ok {
			fence, line = map[bool]string{true: name + " ", false: ""}[fence == ""], ""
		}
		if fence == "" || fence == "text " {
			hits = append(hits, searchLine(file, i+1, line)...)
		}
	}
	return hits
}

// searchSource searches the comments and string literals of a Go file.
func searchSource(file, text string) (hits []hit) {
	var s scanner.Scanner
	set := token.NewFileSet()
	f := set.AddFile(file, -1, len(text))
	s.Init(f, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return hits
		case token.COMMENT, token.STRING:
			for i, line := range strings.Split(lit, "\n") {
				hits = append(hits, searchLine(file, f.Line(pos)+i, strings.TrimLeft(line, "/* \t"))...)
			}
		}
	}
}

// searchLine searches one line.
func searchLine(file string, n int, line string) (hits []hit) {
	line = code.ReplaceAllString(line, "")
	for _, s := range signs {
		if m := s.text.FindString(line); m != "" {
			hits = append(hits, hit{file, n, strings.TrimSpace(m), s.hint})
		}
	}
	return hits
}
