package sim

import (
	"math/big"
	"strings"

	"weir/internal/model"
	"weir/internal/value"
)

// amountOf is the value that a row adds to a tally, by the text of the model alone. It is missing if the row
// lacks a field of it, and NULL if a computed one has none, or one that no sum takes.
func amountOf(s *model.Source, row value.Item) value.Value {
	words := strings.Fields(s.Amount.Text)
	of := func(w string) value.Value { return fieldValue(s.Entity.Field(w), row) }
	if len(words) == 1 {
		return of(words[0])
	}
	return computeAmount(words, of, func(w string) bool { return isWhole(s, w) })
}

// computeAmount returns the number that words make of the values of fields, as amount has it.
func computeAmount(words []string, of func(string) value.Value, whole func(string) bool) value.Value {
	var sum, product big.Rat
	unfit, all := false, true // all: each number of it is whole
	sign := int64(1)
	for i, w := range append(words, "+") {
		switch {
		case i%2 == 0:
			r, isNumber := new(big.Rat).SetString(w)
			if !isNumber {
				v := of(w)
				if v.IsMissing() || v.Kind() == value.Null {
					return v
				}
				if r = new(big.Rat); v.Kind() == value.Number {
					r = ratOf(v)
				}
				unfit = unfit || v.Kind() != value.Number || !isSummable(r, whole(w))
			}
			all = all && (isNumber && r.IsInt() || !isNumber && whole(w))
			if i == 0 || words[i-1] != "*" {
				product.SetInt64(sign)
			}
			product.Mul(&product, r)
		case w != "*":
			sum.Add(&sum, &product)
			if sign = 1; w == "-" {
				sign = -1
			}
		}
	}
	if !unfit && isSummable(&sum, all) {
		return roundedNumber(&sum, 1500)
	}
	return value.OfNull()
}

// isSummable reports whether a sum takes a number: a whole one below 10^27, or one below 10^12 with at most 17 decimals.
func isSummable(r *big.Rat, whole bool) bool {
	most, finest := big.NewRat(1e12, 1), big.NewRat(1, 1e17)
	if whole {
		most.SetString("1e27")
		finest.SetInt64(1)
	}
	return new(big.Rat).Abs(r).Cmp(most) < 0 && new(big.Rat).Quo(r, finest).IsInt()
}

// isWhole reports whether a field is declared as a whole number.
func isWhole(s *model.Source, field string) bool {
	f := s.Entity.Field(field)
	return f.Declared != nil && f.Declared.Whole
}
