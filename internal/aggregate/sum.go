package aggregate

import (
	"weir/internal/owntable"
	"weir/internal/value"
)

// Sum is the exact sum of a field.
var Sum = &Aggregate{
	Keyword: "sum", Form: "{sum: FIELD}", Of: Numbers,
	Empty: value.OfInt(0), Type: "number", Number: true, Exact: true, Totals: true,
	Adds: addNumber,
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		sum, err := owntable.Total(of.Attr, ledger)
		if err != nil {
			return value.Value{}, err
		}
		return sum.Number()
	},
}

// addNumber adds a number to the accumulators of a ledger, split so that each part fits DynamoDB's
// ADD exactly (owntable.Split). The text is what a value that is no number should have been.
func addNumber(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
	if v.Kind() != value.Number {
		return to, "a number"
	}
	return append(to, owntable.Split(attr, v)...), ""
}
