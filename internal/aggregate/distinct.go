package aggregate

import (
	"fmt"

	"weir/internal/owntable"
	"weir/internal/value"
)

// Distinct is how many different values a field has. Each value is counted in a row of its own
// (owntable.ValueRow), and the ledger has their number. With a max it is not shown while there
// are more values.
var Distinct = &Aggregate{
	Keyword: "distinct", Of: Scalars,
	Empty: value.OfInt(0), Type: "number", Totals: true,
	Adds: addMember(owntable.DistinctAmount),
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		n, err := Count.Shown(of, ledger)
		if err == nil && of.Max > 0 && value.Compare(n, value.OfInt(int64(of.Max))) > 0 {
			return value.Value{}, fmt.Errorf("the rows have more than %d different values (max)", of.Max)
		}
		return n, err
	},
}

// addMember counts the row for the value that it has, in the accumulator that name gives.
func addMember(name func(attr, v string) string) func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
	return func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
		switch text := value.Scalar(v); {
		case text == "":
			return to, "a number or a string with characters"
		case len(text) > MaxMember:
			return to, fmt.Sprintf("a member of at most %d bytes", MaxMember)
		default:
			return append(to, value.Attr{Name: name(attr, text), Value: one}), ""
		}
	}
}
