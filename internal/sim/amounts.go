package sim

import (
	"math/big"
	"strings"

	"weir/internal/model"
	"weir/internal/value"
)

// amount is what a row gives to a tally, by the text of the model alone. It is missing if the row
// lacks a field of it, and NULL if a computed one has none.
func amount(s *model.Source, row value.Item) value.Value {
	words := strings.Fields(s.Amount.Text)
	if len(words) == 1 {
		return s.Entity.Field(words[0]).Get(row)
	}
	var sum, product big.Rat
	unfit := false
	sign := int64(1)
	for i, w := range append(words, "+") {
		switch {
		case i%2 == 0:
			r, isNumber := new(big.Rat).SetString(w)
			if !isNumber {
				v := s.Entity.Field(w).Get(row)
				if v.IsMissing() || v.Kind() == value.Null {
					return value.Value{}
				}
				if r = new(big.Rat); v.Kind() == value.Number {
					r = rat(v)
				} else {
					unfit = true
				}
			}
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
	if v := number(&sum, 1500); !unfit && !v.IsMissing() {
		return v
	}
	return value.OfNull()
}
