package aggregate

import (
	"fmt"

	"weir/internal/owntable"
	"weir/internal/value"
)

// MaxInLedger is the largest max of a Distinct: its values must fit into one row of 400 KB.
const MaxInLedger = 5000

// Distinct is how many different values a field has. Its ledger counts the rows that
// have each value, so it needs a bound. It is not shown while there are more values.
var Distinct = &Aggregate{
	Keyword: "distinct", Form: "{distinct: FIELD}", Of: Scalars, Max: true, Values: true, Hidden: true,
	Empty: value.OfInt(0), Type: "number", Totals: true,
	Adds: addMember(owntable.Value),
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		n, dropped := owntable.LedgerRow(ledger).Values(of.Attr)
		if dropped {
			return value.Value{}, fmt.Errorf("the rows had far more than %d different values (max), so its ledger no longer counts them; "+
				"raise max, or remove values and run projector repair (on AWS: projector build --again)", of.Max)
		}
		return atMost(of.Max, value.OfInt(int64(n)))
	},
}

// Spread is a distinct of any size: each value is counted in a row of its own
// (owntable.ValueRow), and the ledger has their number. With a max it is not shown while there
// are more values.
var Spread = &Aggregate{
	Keyword: "distinct", Form: Distinct.Form, Of: Scalars, Max: true, Hidden: true,
	Empty: value.OfInt(0), Type: "number", Totals: true,
	Adds: addMember(owntable.Held),
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		n, err := Count.Shown(of, ledger)
		if err != nil || of.Max == 0 {
			return n, err
		}
		return atMost(of.Max, n)
	},
}

// Of returns the aggregate of a declaration that names kind and a max, less than 0 for none. A
// distinct has its values in its ledger if it has a max for which these have room.
func Of(kind *Aggregate, max int) *Aggregate {
	if kind == Distinct && (max < 0 || max > MaxInLedger) {
		return Spread
	}
	return kind
}

// atMost returns the number of values, or why it is not shown.
func atMost(most int, n value.Value) (value.Value, error) {
	if value.Compare(n, value.OfInt(int64(most))) > 0 {
		return value.Value{}, fmt.Errorf("the rows have more than %d different values (max)", most)
	}
	return n, nil
}

// addMember counts the row for the value that it has, in the accumulator that name gives.
func addMember(name func(attr, v string) string) func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
	return func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
		switch text := value.Scalar(v); {
		case text == "":
			return to, "a string or a number"
		case len(text) > MaxMember:
			return to, fmt.Sprintf("a member of at most %d bytes", MaxMember)
		default:
			return append(to, value.Attr{Name: name(attr, text), Value: one}), ""
		}
	}
}
