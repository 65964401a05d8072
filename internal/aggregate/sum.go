package aggregate

import (
	"weir/internal/owntable"
	"weir/internal/value"
)

// Sum is the exact sum of a field.
var Sum = &Aggregate{
	Keyword: "sum", Of: Numbers,
	Empty: value.OfInt(0), Type: "number", Number: true, Sums: true, Totals: true,
	Adds:  addNumber,
	Shown: Count.Shown,
}

// addNumber adds a number to the sum of a ledger; 0 adds nothing. The text is the form in which a value that is
// no number should have been.
func addNumber(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
	if v.Kind() != value.Number {
		return to, "a number"
	}
	if v.Sign() != 0 {
		to = append(to, value.Attr{Name: owntable.SumAccumulator(attr), Value: v})
	}
	return to, ""
}
