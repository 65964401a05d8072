package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader gathers what is wrong with one file while it is read.
type reader struct {
	file     string
	problems []Problem
}

// Beyond these a file is not worth more answers: no more hints, no more problems.
const (
	maxHinted   = 200
	maxProblems = 2000
)

// pos is a place in the file; the zero pos is nowhere.
type pos struct{ line, column int }

func (r *reader) report(at pos, hint, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{
			File: r.file, Line: max(at.line, 1), Column: at.column, Message: fmt.Sprintf(format, args...), Hint: hint,
		})
	}
}

// unknown reports a name that is none of those known.
func (r *reader) unknown(w word, known []string, format string, args ...any) {
	hint := ""
	if len(r.problems) < maxHinted {
		hint = hintFor(w.text, known)
	}
	r.report(w.pos, hint, format, args...)
}

// word is a piece of text and its place. The zero word says that there is none,
// or that what stood there was reported.
type word struct {
	text string
	pos
}

func (w word) given() bool { return w.line > 0 }

// node is a place in the file and what stands there; y is nil for nothing.
type node struct {
	r *reader
	y *yaml.Node
}

func (n node) given() bool { return n.y != nil && n.y.ShortTag() != "!!null" }

func (n node) pos() pos {
	if n.y == nil {
		return pos{}
	}
	return pos{n.y.Line, n.y.Column}
}

func (n node) isMap() bool  { return n.y != nil && n.y.Kind == yaml.MappingNode }
func (n node) isList() bool { return n.y != nil && n.y.Kind == yaml.SequenceNode }

// is says in words what stands there.
func (n node) is() string {
	switch {
	case !n.given():
		return "nothing"
	case n.isMap():
		return "a map"
	case n.isList():
		return "a list"
	case n.y.Value == "":
		return "an empty text"
	}
	return fmt.Sprintf("%.40q", n.y.Value)
}

func (n node) wrong(what, want string) {
	is := n.is()
	if n.isList() && strings.Contains(want, "list") {
		is = fmt.Sprintf("a list of %d", len(n.y.Content))
	}
	n.r.report(n.pos(), "", "%s must be %s, not %s", what, want, is)
}

// word is the text of a scalar; anything else is reported.
func (n node) word(what string) word {
	if !n.given() || n.y.Kind != yaml.ScalarNode || n.y.Value == "" {
		n.wrong(what, "a word")
		return word{}
	}
	return word{n.y.Value, n.pos()}
}

// words is a list of words, or a single one.
func (n node) words(what string) []word {
	var out []word
	for _, e := range n.elements() {
		if w := e.word(what); w.given() {
			out = append(out, w)
		}
	}
	return out
}

// elements are the elements of a list; anything else is its only element.
func (n node) elements() []node {
	if !n.isList() {
		return []node{n}
	}
	out := make([]node, len(n.y.Content))
	for i, y := range n.y.Content {
		out[i] = node{n.r, y}
	}
	return out
}

// entry is a name in a map, with what it stands for.
type entry struct {
	name  word
	value node
}

// entries are the entries of a map, in the order of the file. A name that stands
// twice is reported and left out the second time.
func (n node) entries(what string) []entry {
	if !n.isMap() {
		n.wrong(what, "a map of names to values")
		return nil
	}
	var out []entry
	first := map[string]int{}
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		name := node{n.r, n.y.Content[i]}.word("a name in " + what)
		if !name.given() {
			continue
		}
		if line, twice := first[name.text]; twice {
			n.r.report(name.pos, fmt.Sprintf("it stands in line %d", line), "%q is here twice", name.text)
			continue
		}
		first[name.text] = name.line
		out = append(out, entry{name, node{n.r, n.y.Content[i+1]}})
	}
	return out
}

// fields is a map whose keys are all known.
type fields struct {
	node
	shape string
	has   map[string]node
}

// fields reads a map of the shape; a key that the shape does not have is reported.
func (n node) fields(shape string) fields {
	f := fields{node: n, shape: shape, has: map[string]node{}}
	for _, e := range n.entries(article(shape)) {
		if !slices.Contains(shapes[shape], e.name.text) {
			n.r.unknown(e.name, shapes[shape], "%s has no %q", article(shape), e.name.text)
			continue
		}
		f.has[e.name.text] = e.value
	}
	return f
}

func article(noun string) string {
	if noun == "entity" || noun == "index" || noun == "attribute" || noun == "each" {
		return "an " + noun
	}
	if noun == "steps" || noun == "once" || noun == "supersede" {
		return noun
	}
	return "a " + noun
}

func (f fields) what(key string) string { return fmt.Sprintf("%q of %s", key, article(f.shape)) }

// word is the text under a key, the zero word when the key is not there.
func (f fields) word(key string) word {
	if n, ok := f.has[key]; ok {
		return n.word(f.what(key))
	}
	return word{}
}

// need is word for a key that has to be there.
func (f fields) need(key, hint string) word {
	if _, ok := f.has[key]; !ok {
		f.missing(key, hint)
		return word{}
	}
	return f.word(key)
}

func (f fields) missing(key, hint string) {
	if f.isMap() {
		f.r.report(f.pos(), hint, "%s needs %q", article(f.shape), key)
	}
}

func (f fields) words(key string) []word {
	if n, ok := f.has[key]; ok {
		return n.words(f.what(key))
	}
	return nil
}

// entries are those of the map under a key, none when the key is not there.
func (f fields) entries(key string) []entry {
	if n, ok := f.has[key]; ok {
		return n.entries(f.what(key))
	}
	return nil
}

func (f fields) at(key string) pos {
	if n, ok := f.has[key]; ok {
		return n.pos()
	}
	return f.pos()
}

// flag is a true or false under a key.
func (f fields) flag(key string) bool {
	n, ok := f.has[key]
	if !ok {
		return false
	}
	if n.y.ShortTag() != "!!bool" {
		n.wrong(f.what(key), "true or false")
		return false
	}
	return n.y.Value == "true" || n.y.Value == "True" || n.y.Value == "TRUE"
}

// number is a whole number in the range under a key, -1 when there is none.
func (f fields) number(key string, low, high int) int {
	n, ok := f.has[key]
	if !ok {
		return -1
	}
	i, err := strconv.Atoi(n.y.Value)
	if n.y.ShortTag() != "!!int" || err != nil || i < low || i > high {
		n.wrong(f.what(key), fmt.Sprintf("a whole number from %d to %d", low, high))
		return -1
	}
	return i
}
