package aggregate

import (
	"weir/internal/owntable"
	"weir/internal/value"
)

// Count is how many rows there are, or how many have a number in a field: the rows that
// a mean of that field is of.
var Count = &Aggregate{
	Keyword: "count", Form: "count", Of: Numbers, OfRows: true,
	Empty: value.OfInt(0), Type: "number", Number: true, Totals: true,
	Adds: func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
		if !v.IsMissing() && v.Kind() != value.Number {
			return to, "a number"
		}
		return append(to, value.Attr{Name: owntable.Sum(attr), Value: one}), ""
	},
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		if n := ledger.Get(owntable.Sum(of.Attr)); !n.IsMissing() {
			return n, nil
		}
		return value.OfInt(0), nil
	},
}
