package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader collects the problems of one file.
// It reads one file, for one goroutine. Reading never stops at a problem: a wrong part becomes a zero value.
type reader struct {
	file     string
	problems []Problem
	warnings []Problem
	flaws    int // parts that cannot be used; the compiler of one compares the number before and after
}

// Limits for a file with many mistakes: beyond them reader gives no more hints, and then
// collects no more problems.
const (
	maxHinted   = 200
	maxProblems = 2000
)

// pos is a place in the file. The zero pos means no place.
type pos struct{ line, column int }

// reported is called for each problem and each warning. A test follows it to the places that
// report, and nothing else sets it.
var reported = func() {}

// addFlaw adds a problem, which is a flaw. It drops the problem if there are maxProblems already.
func (r *reader) addFlaw(at pos, hint, format string, args ...any) {
	r.flaws++
	r.addRemark(at, hint, format, args...)
}

// addRemark is addFlaw for a part that is compiled all the same, so that checks find more in it.
func (r *reader) addRemark(at pos, hint, format string, args ...any) {
	r.addTo(&r.problems, Error, at, hint, format, args...)
}

// addWarning adds a warning, which no program but lint looks at.
func (r *reader) addWarning(at pos, hint, format string, args ...any) {
	r.addTo(&r.warnings, Warning, at, hint, format, args...)
}

// addCost adds a note of a construct that is legal, and costs more than it seems.
func (r *reader) addCost(at pos, hint, format string, args ...any) {
	r.addTo(&r.warnings, Note, at, hint, format, args...)
}

// addTo adds to one of the lists, unless it is full.
func (r *reader) addTo(list *[]Problem, is Severity, at pos, hint, format string, args ...any) {
	reported()
	if len(*list) < maxProblems {
		*list = append(*list, Problem{Severity: is, File: r.file, Line: max(at.line, 1), Column: at.column, Message: fmt.Sprintf(format, args...), Hint: hint, kind: format})
	}
}

// refuseUnknown reports a name that is not one of the known names. It returns whether it did.
func (r *reader) refuseUnknown(w word, known []string, format string, args ...any) bool {
	if slices.Contains(known, w.text) {
		return false
	}
	hint := ""
	if len(r.problems) < maxHinted {
		hint = hintFor(w.text, known)
	}
	r.addFlaw(w.pos, hint, format, args...)
	return true
}

// word is a text of the file with its place. The zero word means that there is none, or that
// the text was wrong and is already reported.
type word struct {
	text string
	pos
}

// isGiven reports whether there is a word.
func (w word) isGiven() bool { return w.line > 0 }

// node is a value of the file with its place. y is nil if there is no value.
type node struct {
	r *reader
	y *yaml.Node
}

// isGiven reports whether there is a value that is not null.
func (n node) isGiven() bool { return n.y != nil && n.y.ShortTag() != "!!null" }

// pos is where the value begins, the zero pos for none.
func (n node) pos() pos {
	if n.y == nil {
		return pos{}
	}
	return pos{n.y.Line, n.y.Column}
}

// isMap and isList report the kind of the value; both are false for none.
func (n node) isMap() bool { return n.y != nil && n.y.Kind == yaml.MappingNode }

// isEmpty reports whether the value is a map or a list with nothing in it.
func (n node) isEmpty() bool { return (n.isMap() || n.isList()) && len(n.y.Content) == 0 }

// isList reports whether the node is a list.
func (n node) isList() bool { return n.y != nil && n.y.Kind == yaml.SequenceNode }

// describe describes the value in words, for messages.
func (n node) describe() string {
	switch {
	case !n.isGiven():
		return "nothing"
	case n.isMap() && n.isEmpty():
		return "an empty map"
	case n.isMap():
		return "a map"
	case n.isEmpty():
		return "an empty list"
	case n.isList():
		return "a list"
	case n.y.Value == "":
		return "an empty text"
	}
	return fmt.Sprintf("%.40q", n.y.Value)
}

// reportWrong reports that a value is not of the kind that is wanted.
func (n node) reportWrong(what, want string) {
	is := n.describe()
	if n.isList() && strings.Contains(want, "list") {
		is = fmt.Sprintf("a list of %d", len(n.y.Content))
	}
	n.r.addFlaw(n.pos(), "", "%s must be %s, not %s", what, want, is)
}

// readWord returns the text of a scalar. It reports any other value.
func (n node) readWord(what string) word {
	if !n.isGiven() || n.y.Kind != yaml.ScalarNode || n.y.Value == "" {
		n.reportWrong(what, "a word")
		return word{}
	}
	return word{n.y.Value, n.pos()}
}

// readWords returns a list of words. A single word counts as a list of one.
func (n node) readWords(what string) []word {
	var out []word
	for _, e := range n.listElements() {
		if w := e.readWord(what); w.isGiven() {
			out = append(out, w)
		}
	}
	return out
}

// listElements returns the elements of a list. Any other value counts as its only element.
// So a key of the language may be written as a list or as its only element.
func (n node) listElements() []node {
	if !n.isList() {
		return []node{n}
	}
	out := make([]node, len(n.y.Content))
	for i, y := range n.y.Content {
		out[i] = node{n.r, y}
	}
	return out
}

// entry is a name in a map with its value.
type entry struct {
	name  word
	value node
}

// readEntries returns the entries of a map in the order of the file. It reports a name that
// occurs twice and leaves its second entry out.
func (n node) readEntries(what string) []entry {
	if !n.isMap() {
		n.reportWrong(what, "a map of names to values")
		return nil
	}
	var out []entry
	first := map[string]int{}
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		name := node{n.r, n.y.Content[i]}.readWord("a name in " + what)
		if !name.isGiven() {
			continue
		}
		if line, twice := first[name.text]; twice {
			n.r.addFlaw(name.pos, fmt.Sprintf("it stands in line %d", line), "%q is here twice", name.text)
			continue
		}
		first[name.text] = name.line
		out = append(out, entry{name, node{n.r, n.y.Content[i+1]}})
	}
	return out
}

// listKeys are the names in a map, none of any other value.
func (n node) listKeys() (out []string) {
	for i := 0; n.isMap() && i < len(n.y.Content); i += 2 {
		out = append(out, n.y.Content[i].Value)
	}
	return out
}

// fields is a map that has only known keys.
type fields struct {
	node
	shape string
	has   map[string]node
}

// readFields reads a map with certain keys, which messages call by its noun, and reports other keys. An empty section of the
// model counts as absent.
func (n node) readFields(noun string, keys []string) fields {
	f := fields{node: n, shape: noun, has: map[string]node{}}
	for _, e := range n.readEntries(withArticle(noun)) {
		unknown := n.r.refuseUnknown(e.name, keys, "%s has no %q", withArticle(noun), e.name.text)
		if !unknown && (noun != "model" || e.name.text == noun || e.value.isGiven()) {
			f.has[e.name.text] = e.value
		}
	}
	return f
}

// withArticle is a noun with its article, for messages.
func withArticle(noun string) string {
	if noun == "entity" || noun == "index" || noun == "attribute" || noun == "each" {
		return "an " + noun
	}
	if noun == "steps" || noun == "once" || noun == "supersede" {
		return noun
	}
	return "a " + noun
}

// describeKey names the value under a key, for messages.
func (f fields) describeKey(key string) string {
	return fmt.Sprintf("%q of %s", key, withArticle(f.shape))
}

// reportMissing reports that one of some keys is missing or empty, in a map that has another key beside it if that is given. A
// value that is no map at all was reported.
func (f fields) reportMissing(beside, hint string, keys ...string) {
	of := withArticle(f.shape)
	if beside != "" {
		of += fmt.Sprintf(" with %q", beside)
	}
	if f.isMap() {
		f.r.addFlaw(f.placeOf(keys[0]), hint, "%s needs %s", of, quotedOr(keys))
	}
}

// hasKey reports whether the map has a key.
func (f fields) hasKey(key string) bool { return f.has[key].y != nil }

// placeOf is the place of the value under a key, or of the map if it does not have the key.
func (f fields) placeOf(key string) pos {
	if n, ok := f.has[key]; ok {
		return n.pos()
	}
	return f.pos()
}

// readFlag returns a boolean. YAML's other words for booleans, such as yes and on, are texts here (YAML 1.2).
func (n node) readFlag(what string) bool {
	if n.y.ShortTag() != "!!bool" {
		n.reportWrong(what, "true or false")
		return false
	}
	return strings.EqualFold(n.y.Value, "true")
}

// readNumber returns an integer, -1 for one outside the range, which it reports.
func (n node) readNumber(what string, low, high int) int {
	i, err := strconv.Atoi(n.y.Value)
	if n.y.ShortTag() != "!!int" || err != nil || i < low || i > high {
		n.reportWrong(what, fmt.Sprintf("a whole number from %d to %d", low, high))
		return -1
	}
	return i
}
