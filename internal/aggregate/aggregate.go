// Package aggregate has the functions that reduce source rows to one value of their
// target row: count, sum, mean and distinct, and the set, whose members are spread over
// rows of their own. Each stands whole in a file of its own: the field that a declaration of it
// needs, the amounts that one source row adds to the target's ledger, the value that the ledger then shows, and
// how people read it.
//
// A ledger holds accumulators, which are only ever added to. A row that is deleted adds
// the negated amounts of a row that goes, so an aggregate must be a sum over single rows
// contribute, in any order. The names of accumulators are laid out in package owntable.
package aggregate

import (
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/value"
)

// Aggregate is one function. Its values are constants: compare them by identity.
type Aggregate struct {
	// Keyword names it in model files, messages and counters.
	Keyword string
	// Of is the kind of value that the field of a source row must hold. With OfRows a declaration may leave
	// the field out; then it reduces the rows themselves.
	Of     *Operand
	OfRows bool
	// Empty is the value that it shows of no rows, Missing for nothing.
	Empty value.Value
	// Type is the type of the shown value, in the words of the model file.
	Type string
	// Number says that the shown value is a number that an index key or a sort can use.
	Number bool
	// Sums says that the numbers of rows are added up, so a row with a number that a sum cannot
	// take counts for nothing (model.Field).
	Sums bool
	// Totals says that the values of several target rows can be added up.
	Totals bool

	// Adds appends the accumulators that a source row adds to, and the amount for each.
	// v is the value of the row's field, Missing where rows are reduced. unfit says what
	// the value must be instead, "" where it fits.
	Adds func(to []value.Attr, attr string, v value.Value) (adds []value.Attr, unfit string)
	// Shown is the value of a ledger. nil: the rows of a set show it. The error says why it
	// cannot be shown: it has more values than max, or another program wrote into the ledger.
	Shown func(of Declared, ledger value.Item) (value.Value, error)
}

// Declared is the part of a declaration that an aggregate asks for.
type Declared struct {
	Attr  string
	Round int // decimals of a mean
	Max   int // how many values a distinct may have
}

// Operand is the kind of value that the field of a source row must hold. Compare operands by identity: an
// aggregate may declare one of its own beside it.
type Operand struct {
	// Is names the values that an aggregate reduces, for messages: a sum "is of numbers".
	Is string
	// Fits reports whether an attribute that is declared with the type can have such values.
	Fits func(typ string) bool
	// Counts is a condition that each value passes which counts.
	Counts value.Condition
}

// The operands that several aggregates have.
var (
	Numbers = &Operand{
		Is:     "is of numbers",
		Fits:   func(typ string) bool { return typ == "number" || typ == "any" },
		Counts: value.Condition{{Op: value.AtLeast, Values: []value.Value{value.MustNumber("-9.9E+125")}}},
	}
	// Scalars are single values, told apart by their text.
	Scalars = &Operand{
		Is:     "tells single values apart",
		Fits:   func(typ string) bool { return !slices.Contains([]string{"list", "map", "strings", "numbers"}, typ) },
		Counts: value.Condition{{Op: value.Exists}},
	}
)

// All are the aggregates, in the order in which messages name them.
var All = []*Aggregate{Count, Sum, Mean, Distinct, Set}

// MaxMember is the longest text of a single value that is told apart, in bytes.
const MaxMember = 1 << 10

var one = value.OfInt(1)

// Explain says how a change adds to the accumulators of an attribute, as people read
// it.
func Explain(attr string, adds value.Item) (out []string) {
	members, spread := owntable.Values(attr), owntable.HeldOf(attr)
	for _, a := range adds {
		member, isMember := strings.CutPrefix(a.Name, members)
		if !isMember {
			member, isMember = strings.CutPrefix(a.Name, spread)
		}
		switch {
		case a.Name == owntable.SumAccumulator(attr):
			out = append(out, signed(a.Value.Text()))
		case a.Name == owntable.RowsAccumulator(attr):
			out = append(out, signed(a.Value.Text())+" rows")
		case isMember:
			out = append(out, signed(a.Value.Text())+" "+member)
		}
	}
	return out
}

// signed is an amount with its sign, also where that is a plus, as why shows a change.
func signed(amount string) string {
	if strings.HasPrefix(amount, "-") {
		return amount
	}
	return "+" + amount
}
