// Package cases runs a user's cases of a model: a page has rows, and the expected answers of queries, rows and dead letters when all
// that follows from the rows is derived.
//
//	page.go    a page of cases: its sections and blocks; writing derived answers into it
//	way.go     one way in which records come: a store of its own, the writes there, and the questions
//	run.go     a case by all ways, and the differences
package cases

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"weir/internal/model"
)

// Suffix is how the name of a page ends that stands beside a model: shop.test.md is of shop.yaml.
const Suffix = ".test.md"

// Page is a file of Markdown. Each section with a heading of two signs that asks something is a case.
type Page struct {
	Path  string
	Cases []*Case
	text  string
}

// Case is a section: a model, rows, and the questions after them.
type Case struct {
	Title string
	Line  int
	model *model.Model
	files []block // rows and records, in the order of the page
	asks  []ask
}

// New makes a case that is on no page: rows, as ingest put reads them, and a query with its answer.
func New(m *model.Model, rows, query, want string) *Case {
	if !strings.HasSuffix(want, "\n") && want != "" {
		want += "\n"
	}
	return &Case{Title: query, model: m, files: []block{{name: "rows.jsonl", body: rows}}, asks: []ask{{command: "query " + query, want: want}}}
}

// block is a block of code with a name.
type block struct {
	name, body string
	line       int // of its first line
}

// ask is a question with its answer on the page.
type ask struct {
	command  string // behind the $; "" for the block of rows and dead letters
	want     string
	line     int
	from, to int // the answer in the text of the page
}

var (
	sections = regexp.MustCompile(`(?m)^## (.*)$`)
	blocks   = regexp.MustCompile("(?ms)^```(\\w+) ?([\\w.-]*)\n(.*?)^```$")
	fences   = regexp.MustCompile("(?m)^[ \\t]*(?:```+|~~~+) *(?:console\\b|(?:json\\w*|yaml) +[\\w.-]).*$")
	typed    = regexp.MustCompile(`(?m)^\$ (?:weir|projector) (query .*)\n`)
)

// expected is the name of the block that has rows and dead letters.
const expected = "expected.jsonl"

// Read reads a page. A section without a model has that of the part before the first section, or else the model file beside
// the page.
func Read(path string) (*Page, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Page{Path: path, text: string(content)}
	heads := sections.FindAllStringSubmatchIndex(p.text, -1)
	var above Case
	end := len(p.text)
	if len(heads) > 0 {
		end = heads[0][0]
	}
	if err := p.read(&above, 0, end); err != nil {
		return nil, err
	}
	for i, h := range heads {
		if end = len(p.text); i+1 < len(heads) {
			end = heads[i+1][0]
		}
		c := &Case{Title: p.text[h[2]:h[3]], Line: p.lineAt(h[0]), model: above.model, files: slices.Clone(above.files)}
		if err := p.read(c, h[1], end); err != nil {
			return nil, err
		}
		if len(c.asks) == 0 {
			continue
		}
		if c.model == nil {
			if c.model, err = model.Load(strings.TrimSuffix(path, Suffix) + ".yaml"); err != nil {
				return nil, fmt.Errorf("%s:%d: %s: the section has no model, and there is none beside the page: %w", path, c.Line, c.Title, err)
			}
			above.model = c.model
		}
		p.Cases = append(p.Cases, c)
	}
	if len(p.Cases) == 0 {
		return nil, fmt.Errorf("%s has no case: no section has a console block with a query, or a block %s", path, expected)
	}
	return p, nil
}

// lineAt is the number of the line at an offset.
func (p *Page) lineAt(offset int) int { return 1 + strings.Count(p.text[:offset], "\n") }

// read reads the blocks of a part of the page into a case.
func (p *Page) read(c *Case, from, to int) error {
	found := blocks.FindAllStringSubmatchIndex(p.text[from:to], -1)
	for _, fence := range fences.FindAllStringIndex(p.text[from:to], -1) { // each begins a block, or it would be passed over
		if !slices.ContainsFunc(found, func(at []int) bool { return at[0] == fence[0] }) {
			return fmt.Errorf("%s:%d: this is not read as a block of code: it is indented, has something behind its name, or the block before it has no end", p.Path, p.lineAt(from+fence[0]))
		}
	}
	for _, at := range found {
		for i := range at {
			at[i] += from
		}
		b := block{p.text[at[4]:at[5]], p.text[at[6]:at[7]], p.lineAt(at[6])}
		switch kind := p.text[at[2]:at[3]]; {
		case kind == "console":
			c.asks = append(c.asks, p.questions(at[6], at[7])...)
		case kind == "yaml" && b.name != "":
			m, err := model.Parse(filepath.Base(b.name), []byte(b.body))
			if err != nil {
				return fmt.Errorf("%s:%d: %w", p.Path, b.line, err)
			}
			c.model = m
		case b.name == expected:
			c.asks = append(c.asks, ask{want: b.body, line: b.line, from: at[6], to: at[7]})
		case b.name != "" && strings.HasPrefix(kind, "json"):
			c.files = append(c.files, b)
		}
	}
	return nil
}

// questions are the queries of a console block. Other commands are the reader's.
func (p *Page) questions(from, to int) (out []ask) {
	body := p.text[from:to]
	for _, at := range typed.FindAllStringSubmatchIndex(body, -1) {
		end := len(body)
		if next := strings.Index(body[at[1]:], "\n$ "); next >= 0 {
			end = at[1] + next + 1
		}
		if strings.HasPrefix(body[at[1]:], "$ ") {
			end = at[1]
		}
		out = append(out, ask{body[at[2]:at[3]], body[at[1]:end], p.lineAt(from + at[0]), from + at[1], from + end})
	}
	return out
}

// Update writes derived answers in place of those of the page that differ, and saves the page: whole, or not at all. A page
// that was changed since it was read is refused.
func (p *Page) Update(found []Failure) error {
	is, was := slices.Clone(found), p.text
	slices.SortFunc(is, func(a, b Failure) int { return b.to - a.to }) // from the end, so offsets stay
	for _, f := range is {
		if f.to > 0 {
			p.text = p.text[:f.from] + f.Got + p.text[f.to:]
		}
	}
	return replace(p.Path, was, p.text)
}

// replace replaces the content of a file that still has its old content. A link to it stays one.
func replace(path, was, text string) (err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	is, err := os.OpenFile(path, os.O_RDWR, 0) // a file that is read only stays as it is
	if err != nil {
		return err
	}
	defer is.Close()
	info, err := is.Stat()
	if err != nil {
		return err
	}
	if content, err := io.ReadAll(is); err != nil || string(content) != was {
		return cmp.Or(err, fmt.Errorf("%s was changed meanwhile, and is not written; run the test again", path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
