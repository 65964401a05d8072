package internal

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
	linkTo   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	address  = regexp.MustCompile(`^[a-z]+:`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks: each link of a page to a file, or to a heading, leads to one.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		for _, m := range linkTo.FindAllStringSubmatch(prose(t, page), -1) {
			if address.MatchString(m[1]) {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if strings.HasSuffix(target, ".md") && anchor != "" && !anchors(prose(t, target))[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
}

// pageNamed is a page of the documentation in a program's text, with the heading that it may name.
var pageNamed = regexp.MustCompile(`(docs/[a-z/-]+\.md)(?:, (?:\\")?([A-Z][A-Za-z ]+))?`)

// TestPagesOfMessages: each page that a text of the programs names is there, with the heading that it names.
func TestPagesOfMessages(t *testing.T) {
	named := 0
	for _, root := range []string{"../cmd", "../internal"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range pageNamed.FindAllStringSubmatch(string(text), -1) {
				page := filepath.Join("..", m[1])
				switch _, none := os.Stat(page); {
				case none != nil:
					t.Errorf("%s names %s: %v", path, m[1], none)
				case m[2] != "" && !anchors(prose(t, page))[strings.ReplaceAll(strings.ToLower(m[2]), " ", "-")]:
					t.Errorf("%s names %q of %s, which has no such heading", path, m[2], m[1])
				case m[2] != "":
					named++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if named < 5 {
		t.Errorf("%d headings are named", named)
	}
}

// prose is a page without its blocks of code.
func prose(t *testing.T, page string) string {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// anchors are the headings of a page, as links name them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(name, " ", "-")] = true
	}
	return out
}
