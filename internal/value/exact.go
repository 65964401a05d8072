package value

import (
	"fmt"

	"github.com/cockroachdb/apd/v3"
)

// Exact is a decimal of any size, for sums that may not fit a Number. The zero Exact is 0.
// Do not copy an Exact after its first use.
type Exact struct{ d apd.Decimal }

// Add adds v × 10^exp. It panics if v is not a Number.
func (e *Exact) Add(v Value, exp int) {
	x := apdOf(v)
	x.Exponent += int32(exp)
	must(wide.Add(&e.d, &e.d, x))
}

// MaxFactors is the largest number of Numbers that AddProduct may get for one Exact.
const MaxFactors = 8

// AddProduct adds the product of Numbers, or subtracts it. It panics if one is not a Number.
func (e *Exact) AddProduct(minus bool, factors ...Value) {
	product := apd.New(1, 0)
	product.Negative = minus
	for _, v := range factors {
		must(wide.Mul(product, product, apdOf(v)))
	}
	must(wide.Add(&e.d, &e.d, product))
}

func apdOf(v Value) *apd.Decimal {
	x, _, err := apd.NewFromString(v.Text())
	if err != nil {
		panic("value: a Number holds " + v.Text())
	}
	return x
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
	var up, down, half, power apd.BigInt
	up.Set(&e.d.Coeff)
	down.Set(&n.Coeff)
	shift := int64(e.d.Exponent) - int64(n.Exponent) + int64(places)
	power.Exp(apd.NewBigInt(10), apd.NewBigInt(max(shift, -shift)), nil)
	if shift < 0 {
		down.Mul(&down, &power)
	} else {
		up.Mul(&up, &power)
	}
	up.Add(&up, half.Rsh(&down, 1)) // count is positive: half a unit away from zero, and the rest is cut off
	d := apd.NewWithBigInt(up.Quo(&up, &down), int32(-places))
	d.Negative = e.d.Negative != n.Negative
	return numberOf(d)
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

// must panics on an error. There is none: wide has enough precision for every result of
// Numbers.
func must(_ apd.Condition, err error) {
	if err != nil {
		panic("value: " + err.Error())
	}
}
