package value

import (
	"fmt"
	"math"

	"github.com/cockroachdb/apd/v3"
)

// Exact is a decimal of any size, for sums that may not fit a Number. The zero Exact is 0.
// Do not copy an Exact after its first use.
type Exact struct{ d apd.Decimal }

// Add adds v × 10^exp. It panics if v is not a Number.
func (e *Exact) Add(v Value, exp int) {
	var x apd.Decimal
	if _, _, err := x.SetString(v.Text()); err != nil {
		panic("value: a Number holds " + v.Text())
	}
	x.Exponent += int32(exp)
	must(exact.Add(&e.d, &e.d, &x))
}

// MaxFactors is the largest number of Numbers that AddProduct may get for one Exact.
const MaxFactors = 8

// AddProduct adds the product of Numbers, or subtracts it. It panics if one is not a Number.
func (e *Exact) AddProduct(minus bool, factors ...Value) {
	product := apd.New(1, 0)
	if minus {
		product.Negative = true
	}
	for _, v := range factors {
		var x apd.Decimal
		if _, _, err := x.SetString(v.Text()); err != nil {
			panic("value: a Number holds " + v.Text())
		}
		must(wide.Mul(product, product, &x))
	}
	must(wide.Add(&e.d, &e.d, product))
}

// Number returns e as a Number, or an error that wraps ErrNumber if no Number can hold it.
func (e *Exact) Number() (Value, error) { return numberOf(&e.d) }

// Mean returns e / count, rounded to the given number of decimal places, halves away from
// zero. The error wraps ErrNumber: no Number can hold the mean, or count is 0.
func (e *Exact) Mean(count Value, places int) (Value, error) {
	n, _, err := apd.NewFromString(count.Text())
	if err != nil || n.IsZero() {
		return Value{}, fmt.Errorf("%w: a mean of %q", ErrNumber, count.Text())
	}
	var d apd.Decimal
	if q, ok := quotient(&e.d, n, places); ok {
		d.SetFinite(q, int32(-places))
		return numberOf(&d)
	}
	must(exact.Quo(&d, &e.d, n))
	must(exact.Quantize(&d, &d, int32(-places)))
	return numberOf(&d)
}

// quotient is a / b × 10^places, rounded to a whole number, halves away from zero. ok is false unless all of it
// fits into 64 bits, as nearly always.
func quotient(a, b *apd.Decimal, places int) (q int64, ok bool) {
	up, down := a.Coeff.Int64(), b.Coeff.Int64()
	if !a.Coeff.IsInt64() || !b.Coeff.IsInt64() || down > math.MaxInt64/2 || b.Negative {
		return 0, false
	}
	for shift := int(a.Exponent) - int(b.Exponent) + places; shift != 0; {
		to := &up
		if shift < 0 {
			to, shift = &down, shift+1
		} else {
			shift--
		}
		if *to > math.MaxInt64/20 { // twice a rest must fit, too
			return 0, false
		}
		*to *= 10
	}
	q = up / down
	if 2*(up%down) >= down {
		q++
	}
	if a.Negative {
		q = -q
	}
	return q, true
}

// numberOf is a decimal as a value, exactly, or an error that says about what it is and why no
// number can hold it.
func numberOf(d *apd.Decimal) (Value, error) {
	v, err := ParseNumber(d.Text('f'))
	if err == nil {
		return v, nil
	}
	var few apd.Decimal
	brief := apd.BaseContext.WithPrecision(12)
	must(brief.Round(&few, d))
	few.Reduce(&few)
	var whole apd.Decimal
	whole.Reduce(d)
	digits := whole.NumDigits()
	if lead := int64(whole.Exponent) + digits - 1; lead > maxExponent || lead < minExponent {
		return Value{}, fmt.Errorf("%w: about %s is outside 1E%d to 9.9E+%d", ErrNumber, few.Text('E'), minExponent, maxExponent)
	}
	return Value{}, fmt.Errorf("%w: about %s, it has %d digits, of which %d can be held", ErrNumber, few.Text('E'), digits, MaxDigits)
}

// must panics on an error. There is none: exact has enough precision for every result of
// Numbers.
func must(_ apd.Condition, err error) {
	if err != nil {
		panic("value: " + err.Error())
	}
}
