package model

import (
	"slices"
	"strings"

	"weir/internal/seq"
)

// Search is an index of one entity's rows. A row is in it while it passes Where.
type Search struct {
	// Name is that of the index for commands, queries and URLs.
	Name  string
	Of    *Entity
	Where []Test
	// Text are the fields whose words are found, in the order in which a document has them.
	Text []*Field
	// Filters are found by whole values.
	Filters []*Field
	// Sorts order answers; a document without the field comes last.
	Sorts []*Field
	Input Input

	decl *searchDecl
}

// searchPrefix begins the names of search indexes among derivations: no entity has such a name.
const searchPrefix = "search/"

// Derivation returns the name that the index has among derivations, as commands and status
// print it.
func (s *Search) Derivation() string { return SearchDerivation(s.Name) }

// SearchDerivation returns the name of a search index among derivations, also of one that no
// model has any more.
func SearchDerivation(search string) string { return searchPrefix + search }

// SearchOf returns the name of the search index that a derivation is; ok is false for all others.
func SearchOf(derivation string) (search string, ok bool) {
	return strings.CutPrefix(derivation, searchPrefix)
}

// inputs sets and returns the fields that the index reads.
func (s *Search) inputs() []reading {
	s.Input = Input{Derivation: s.Derivation(), Where: s.Where, Fields: slices.Concat(s.Text, s.Filters, s.Sorts)}
	return []reading{{what: "the search index " + s.Name, at: s.decl.name.pos, old: true, of: s.Of, in: &s.Input}}
}

// searchDecl is a search index as the file has it.
type searchDecl struct {
	// An index of the words in an entity's rows.
	heading `noun:"search"`
	// The entity.
	Of word `need:"of: ENTITY"`
	// Which of its rows are in the index.
	Where []testDecl
	// The fields whose words are found.
	Text []word `need:"text: [FIELD, …]" type:"string time list strings any"`
	// Fields that a search may fix to a value.
	Filters []word `type:"string number boolean flag time list strings commas any"`
	// Fields that a search may order by.
	Sorts []word `type:"string number time any"`
}

// compileSearches compiles the searches.
func (c *compiler) compileSearches() {
	for _, d := range c.decl.Search {
		s := &Search{Name: d.name.text, Of: c.findEntity(d.Of), decl: d}
		if s.Of == nil {
			continue
		}
		s.Where = c.compileTests(s.Of, d.Where, false)
		s.Text, s.Filters, s.Sorts = c.resolveFields(s, "text", d.Text), c.resolveFields(s, "filters", d.Filters), c.resolveFields(s, "sorts", d.Sorts)
		s.Of.Search = append(s.Of.Search, s)
		c.Searches = append(c.Searches, s)
	}
}

// resolveFields resolves a list of names, each once.
// The order is that of the file. Names that do not exist are reported and left out.
func (c *compiler) resolveFields(s *Search, key string, ws []word) (out []*Field) {
	for _, w := range reportTwice(c, ws) {
		if f := checkType(c, s.decl, key, w, c.findField(s.Of, w)); f != nil {
			out = append(out, f)
		}
	}
	return out
}

// findSearch returns the search index that the file names. It reports an unknown name.
func (c *compiler) findSearch(w word) *Search {
	c.refuseUnknown(w, seq.Map(c.decl.Search, func(d *searchDecl) string { return d.name.text }), "there is no search index %q", w.text)
	return seq.Find(c.Searches, func(s *Search) bool { return s.Name == w.text })
}
