// A Condition of a model decides whether a value passes it. Entities, derivations, searches, rules and
// queries all ask it.
//
// The rules, which docs/guide/model.md repeats for users:
//
//   - A missing value and NULL are the same. They pass NotIn and Absent, and nothing else.
//   - A bound compares a number with numbers, and a text with texts, bytewise. A value of
//     another kind does not pass it. Numbers compare exactly, with all of their digits.
//   - With AsTimes both sides are instants. A text that is no time does not pass a bound,
//     and equals only itself.
//   - A boolean equals the text true or false of a flag. Other values equal only values of
//     their own kind.

package value

import (
	"slices"
	"strings"
)

// Op is the test of a term.
type Op byte

// The operations. Exists and Absent have no values, bounds and Begins have one.
const (
	In      Op = iota // is one of the values
	NotIn             // is none of the values
	Exists            // has a value
	Absent            // has none
	AtLeast           // >=
	Above             // >
	AtMost            // <=
	Below             // <
	Begins            // is a text that begins with the value
)

var ops = [...]string{"in", "not", "exists", "absent", "atLeast", "above", "atMost", "below", "begins"}

// String is the operation's word in model files.
func (o Op) String() string { return ops[o] }

// As is how a term reads the value that it compares.
type As byte

const (
	AsIs      As = iota // as the row has it
	AsTimes             // as the instant that a text of RFC 3339 means
	AsNumbers           // as the number that a text stands for, such as one in a key
)

// Term asks one thing of a value.
type Term struct {
	Op     Op
	As     As
	Values []Value
}

// Condition is terms that must all hold.
type Condition []Term

// Holds reports whether the value passes all terms.
func (c Condition) Holds(v Value) bool {
	for i := range c {
		if !c[i].Holds(v) {
			return false
		}
	}
	return true
}

// Holds reports whether the value passes the term.
func (t *Term) Holds(v Value) bool {
	there := v.Kind() != Missing && v.Kind() != Null
	switch t.Op {
	case Exists:
		return there
	case Absent:
		return !there
	case NotIn:
		return !there || !t.lists(v)
	case In:
		return there && t.lists(v)
	case Begins:
		return v.Kind() == String && t.Values[0].Kind() == String && strings.HasPrefix(v.Text(), t.Values[0].Text())
	}
	c, ok := t.compare(v, t.Values[0])
	return ok && t.Op.Admits(c)
}

// Admits reports whether a bound takes a value that compares so with its own.
func (o Op) Admits(c int) bool {
	switch o {
	case AtLeast:
		return c >= 0
	case Above:
		return c > 0
	case AtMost:
		return c <= 0
	}
	return c < 0
}

// lists reports whether a value equals one of the term's.
func (t *Term) lists(v Value) bool {
	return slices.ContainsFunc(t.Values, func(w Value) bool { return t.compareEqual(v, w) })
}

// compareEqual compares as instants where the term does and both are times, else by type and value.
func (t *Term) compareEqual(v, w Value) bool {
	if t.As == AsTimes {
		if c, ok := CompareTimes(v, w); ok {
			return c == 0
		}
	}
	return Same(v, w)
}

// compare orders the row's value v and the term's own value w. It reports false if they have
// no order.
func (t *Term) compare(v, w Value) (int, bool) {
	switch t.As {
	case AsTimes:
		return CompareTimes(v, w)
	case AsNumbers:
		if v.Kind() == String {
			n, err := ParseNumber(v.Text())
			if err != nil {
				return 0, false
			}
			v = n
		}
	}
	if v.Kind() != w.Kind() || v.Kind() != Number && v.Kind() != String {
		return 0, false
	}
	return Compare(v, w), true
}

// Same reports whether two scalars are equal as people write them. A boolean equals the text
// true or false of a flag; a number equals only a number of the same value.
func Same(a, b Value) bool {
	if a.Kind() == Bool || b.Kind() == Bool {
		return Scalar(a) == Scalar(b) && Scalar(a) != "" && a.Kind() != Number && b.Kind() != Number
	}
	return Equal(a, b)
}

// Asked compares a row's value with one that a person asked for. Any element of a list or set
// will do, as in a search, and a number equals its text.
func Asked(have, want Value) bool {
	switch have.Kind() {
	case List, StringSet, NumberSet, BinarySet:
		return slices.ContainsFunc(have.Elements(), func(e Attr) bool { return Asked(e.Value, want) })
	}
	if Same(have, want) {
		return true
	}
	text := Scalar(have)
	return text != "" && text == Scalar(want)
}
