package aggregate

import (
	"weir/internal/owntable"
	"weir/internal/value"
)

// Mean is the mean of a field, rounded half away from zero. Of no rows there is none.
var Mean = &Aggregate{
	Keyword: "mean", Of: Numbers,
	Type: "number", Number: true, Sums: true,
	Adds: func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
		if v.Kind() != value.Number {
			return to, "a number"
		}
		return addNumber(append(to, value.Attr{Name: owntable.RowsAccumulator(attr), Value: one}), attr, v)
	},
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		total, err := Count.Shown(of, ledger)
		rows := ledger.Get(owntable.RowsAccumulator(of.Attr))
		if err != nil || rows.Kind() != value.Number || rows.Sign() == 0 {
			return value.Value{}, err
		}
		var sum value.Exact
		sum.Add(total, 0)
		return sum.Mean(rows, of.Round)
	},
}
