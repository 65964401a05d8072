package aggregate

import (
	"fmt"
	"strings"

	"weir/internal/owntable"
	"weir/internal/value"
)

// Distinct is how many different values a field has. Its ledger counts the rows that
// have each value, so it needs a bound.
var Distinct = &Aggregate{
	Keyword: "distinct", Of: Scalars, Max: true, Hidden: true,
	Empty: value.OfInt(0), Totals: true,
	Adds: addMember,
	Shown: func(attr string, _ int, ledger value.Item) (value.Value, error) {
		n := int64(0)
		values := owntable.Values(attr)
		for i := range ledger {
			if len(ledger[i].Name) > len(values) && strings.HasPrefix(ledger[i].Name, values) && ledger[i].Value.Sign() > 0 {
				n++
			}
		}
		return value.OfInt(n), nil
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
