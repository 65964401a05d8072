package model

import "weir/internal/value"

// Steps moves a declared attribute along the words of its enum, as far as facts
// say. It is a pure function of what is known: of the application's own value,
// which is the least it says, and of the rows that reach each word, in whatever
// order they came.
type Steps struct {
	Name   string // "Round.status"
	Target *Entity
	Attr   *Attribute
	Stages []*Stage // in the order of the enum
}

// Stage is one word of the way and what reaches it: a row of Source that passes
// Where, or, with Each, a row for every element of that list of the target.
type Stage struct {
	Steps  *Steps
	Word   string
	Rank   int // of the word in the enum
	Source *Entity
	Where  []Test
	To     []Assign   // the names of the target's key, from fields of Source
	Each   *Attribute // a list of the target; nil: one row is enough
	Who    *Field     // of Source: which element of Each a row is for
	Max    int        // how many elements Each may have, or, without it, rows may reach the word; 0 for any number, never 0 with Set and without Each
	Set    []Assign   // attributes of the target: the latest of a field of the rows that count
}

// Others are what a list stands for where a row has none: the values of Field in
// all rows of Of whose other key names are Key.
type Others struct {
	Name  string // "Round.attendees"
	On    *Entity
	Of    *Entity
	Field *Field   // a name in Of's key
	Key   []Assign // Of's other key names, from fields of the row with the list
	Links []*Field // the same names, as fields of Of
	Used  bool     // a stage asks for each of them
}

// Reading is how an attribute reads where that differs from what is stored.
type Reading struct {
	Legacy map[string]string // words of an older application, and what they mean
	After  *Field            // the time from which it reads Late
	Late   string
}

// Attributes are those that the steps may write: their own and each stage's.
func (s *Steps) Attributes() []string {
	out := []string{s.Attr.Name}
	for _, st := range s.Stages {
		for _, a := range st.Set {
			out = append(out, a.Name)
		}
	}
	return out
}

// RankOf is the place of a value on the way: of a word, or of a word of an older
// application. Anything else is before the first.
func (s *Steps) RankOf(v value.Value) int { return s.Attr.Rank(v) }

// Returned is an attribute that a query gives in place of the row's own: exactly
// one of its parts after Name is set.
type Returned struct {
	Name     string
	Field    *Field     // of the row found
	Size     *Attribute // how many elements a list of the row has, those it stands for included
	Distinct *Counted
}

// Counted is a read of one partition: how many values a field has there.
type Counted struct {
	Entity *Entity
	Field  *Field
	Key    []Assign // the names of the partition key, from fields of the row found
}

// IsList reports whether values of the type have elements.
func (t Type) IsList() bool { return t == TypeList || t == TypeStrings || t == TypeNumbers }

// Spreads reports whether the step reads once for each element of a list of the
// row before.
func (s *Step) Spreads() bool {
	for i := range s.With {
		if s.With[i].Each() {
			return true
		}
	}
	return false
}

// Each reports whether the bind stands for each element of a list in turn.
func (b *Bind) Each() bool { return b.Prior != nil && b.Prior.Key == nil && b.Prior.Type.IsList() }
