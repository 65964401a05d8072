package aggregate

import (
	"fmt"

	"weir/internal/owntable"
	"weir/internal/value"
)

// Count is how many rows there are, or how many have a number in a field: the rows that
// a mean of that field is of.
var Count = &Aggregate{
	Keyword: "count", Of: Numbers, OfRows: true,
	Empty: value.OfInt(0), Type: "number", Number: true, Totals: true,
	Adds: func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
		if !v.IsMissing() && v.Kind() != value.Number {
			return to, "a number"
		}
		return append(to, value.Attr{Name: owntable.SumAccumulator(attr), Value: one}), ""
	},
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		n := ledger.Get(owntable.SumAccumulator(of.Attr))
		switch {
		case n.IsMissing():
			return value.OfInt(0), nil
		case n.Kind() != value.Number:
			return value.Value{}, fmt.Errorf("%w: %s of the ledger is a %v", value.ErrNumber, owntable.SumAccumulator(of.Attr), n.Kind())
		}
		return n, nil
	},
}
