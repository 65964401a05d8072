package aggregate

import (
	"weir/internal/owntable"
	"weir/internal/value"
)

// Mean is the mean of a field, rounded half away from zero. Of no rows there is none.
var Mean = &Aggregate{
	Keyword: "mean", Form: "{mean: FIELD, round: 2}", Of: Numbers, Round: true,
	Type: "number", Number: true, Exact: true,
	Adds: func(to []value.Attr, attr string, v value.Value) ([]value.Attr, string) {
		if v.Kind() != value.Number {
			return to, "a number"
		}
		return addNumber(append(to, value.Attr{Name: owntable.Rows(attr), Value: one}), attr, v)
	},
	Shown: func(of Declared, ledger value.Item) (value.Value, error) {
		sum, err := owntable.Total(of.Attr, ledger)
		switch rows := ledger.Get(owntable.Rows(of.Attr)); {
		case err != nil:
			return value.Value{}, err
		case rows.Kind() != value.Number || rows.Sign() == 0:
			return value.Value{}, nil
		default:
			return sum.Mean(rows, of.Round)
		}
	},
}
