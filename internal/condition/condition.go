// Package condition decides whether a value passes a condition of a model. Every place where
// a condition stands asks this package: entities, derivations, search, rules and queries.
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
package condition

import (
	"slices"
	"strings"

	"weir/internal/value"
)

// Op is what a term asks of a value.
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
	Values []value.Value
}

// Condition is terms that must all hold.
type Condition []Term

// Holds reports whether the value passes all terms.
func (c Condition) Holds(v value.Value) bool {
	for i := range c {
		if !c[i].Holds(v) {
			return false
		}
	}
	return true
}

// Holds reports whether the value passes the term.
func (t *Term) Holds(v value.Value) bool {
	there := v.Kind() != value.Missing && v.Kind() != value.Null
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
		return v.Kind() == value.String && t.Values[0].Kind() == value.String && strings.HasPrefix(v.Text(), t.Values[0].Text())
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
func (t *Term) lists(v value.Value) bool {
	return slices.ContainsFunc(t.Values, func(w value.Value) bool { return t.equal(v, w) })
}

// equal compares as instants where the term does and both are times, else by type and value.
func (t *Term) equal(v, w value.Value) bool {
	if t.As == AsTimes {
		if c, ok := CompareTimes(v, w); ok {
			return c == 0
		}
	}
	return Same(v, w)
}

// compare orders the row's value v and the term's own value w. It reports false if they have
// no order.
func (t *Term) compare(v, w value.Value) (int, bool) {
	switch t.As {
	case AsTimes:
		return CompareTimes(v, w)
	case AsNumbers:
		if v.Kind() == value.String {
			n, err := value.ParseNumber(v.Text())
			if err != nil {
				return 0, false
			}
			v = n
		}
	}
	if v.Kind() != w.Kind() || v.Kind() != value.Number && v.Kind() != value.String {
		return 0, false
	}
	return value.Compare(v, w), true
}

// Same reports whether two scalars are equal as people write them. A boolean equals the text
// true or false of a flag; a number equals only a number of the same value.
func Same(a, b value.Value) bool {
	if a.Kind() == value.Bool || b.Kind() == value.Bool {
		return value.Scalar(a) == value.Scalar(b) && value.Scalar(a) != "" && a.Kind() != value.Number && b.Kind() != value.Number
	}
	return value.Equal(a, b)
}

// Asked compares what a row has with what a person asked for. Any element of a list or set
// will do, as in a search, and a number equals its text.
func Asked(have, want value.Value) bool {
	switch have.Kind() {
	case value.List, value.StringSet, value.NumberSet, value.BinarySet:
		return slices.ContainsFunc(have.Elements(), func(e value.Attr) bool { return Asked(e.Value, want) })
	}
	if Same(have, want) {
		return true
	}
	text := value.Scalar(have)
	return text != "" && text == value.Scalar(want)
}

// Less compares in the order of keys, but times by when they are: one may be written with a
// fraction of a second and another without.
func Less(have, limit value.Value) bool {
	if c, ok := CompareTimes(have, limit); ok {
		return c < 0
	}
	return have.Kind() == limit.Kind() && value.Compare(have, limit) < 0
}
