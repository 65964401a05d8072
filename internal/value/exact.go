package value

import (
	"fmt"

	"github.com/cockroachdb/apd/v3"
)

// Exact is a decimal of any size: a sum of numbers on its way to a Number. The zero
// Exact is 0. Do not copy one that is in use.
type Exact struct{ d apd.Decimal }

// Add adds the Number v × 10^exp.
func (e *Exact) Add(v Value, exp int) {
	var x apd.Decimal
	if _, _, err := x.SetString(v.Text()); err != nil {
		panic("value: a Number holds " + v.Text())
	}
	x.Exponent += int32(exp)
	must(exact.Add(&e.d, &e.d, &x))
}

// Number returns e, or ErrNumber where no Number can hold it.
func (e *Exact) Number() (Value, error) { return numberOf(&e.d) }

// Mean returns e / count rounded half up (away from zero) to the places given, or
// ErrNumber where no Number can hold that.
func (e *Exact) Mean(count Value, places int) (Value, error) {
	n, _, err := apd.NewFromString(count.Text())
	if err != nil || n.IsZero() {
		return Value{}, fmt.Errorf("%w: a mean of %q", ErrNumber, count.Text())
	}
	var d apd.Decimal
	must(exact.Quo(&d, &e.d, n))
	must(exact.Quantize(&d, &d, int32(-places)))
	return numberOf(&d)
}

// Equal reports whether both are the same number.
func (e *Exact) Equal(f *Exact) bool { return e.d.Cmp(&f.d) == 0 }

// String writes all digits, without an exponent.
func (e *Exact) String() string {
	var d apd.Decimal
	d.Reduce(&e.d)
	return d.Text('f')
}

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

// must says that the precision of exact holds whatever Numbers come to.
func must(_ apd.Condition, err error) {
	if err != nil {
		panic("value: " + err.Error())
	}
}
