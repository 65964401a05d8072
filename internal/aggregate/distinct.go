package aggregate

import (
	"fmt"

	"weir/internal/owntable"
	"weir/internal/value"
)

// Distinct is how many different values a field has. Its ledger counts the rows that
// have each value, so it needs a bound. It is not shown while there are more values.
var Distinct = &Aggregate{
	Keyword: "distinct", Form: "{distinct: FIELD, max: 100}", Of: Scalars, Max: true, Hidden: true,
	Empty: value.OfInt(0), Type: "number", Totals: true,
	Adds: addMember,
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		n, dropped := owntable.LedgerRow(ledger).Values(of.Attr)
		switch {
		case dropped:
			return value.Value{}, fmt.Errorf("the rows had far more than %d different values (max), so its ledger no longer counts them; "+
				"raise max, or remove values and run projector repair (on AWS: projector build --again)", of.Max)
		case n > of.Max:
			return value.Value{}, fmt.Errorf("the rows have more than %d different values (max)", of.Max)
		}
		return value.OfInt(int64(n)), nil
	},
}

// addMember counts the row for the value that it has.
func addMember(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
	switch text := value.Scalar(v); {
	case text == "":
		return to, "a string or a number"
	case len(text) > MaxMember:
		return to, fmt.Sprintf("a member of at most %d bytes", MaxMember)
	default:
		return append(to, value.Attr{Name: owntable.Value(attr, text), Value: one}), ""
	}
}
