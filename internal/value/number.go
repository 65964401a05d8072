package value

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// DynamoDB's limits on a number ("Data types" in its developer guide).
const (
	MaxDigits   = 38
	maxExponent = 125  // of the leading digit: 9.99…E+125
	minExponent = -130 // 1E-130
)

// ErrNumber is wrapped by every error for a number: it is not a decimal, it has more than
// 38 significant digits, or it is outside DynamoDB's range.
var ErrNumber = errors.New("not a DynamoDB number")

// OfInt returns the Number n.
func OfInt(n int64) Value { return ofText(Number, strconv.FormatInt(n, 10)) }

// ParseNumber parses a decimal, which may have an exponent, and returns it in canonical
// form: no exponent, no leading zeros, no trailing zeros after the point, no "-0". Equal
// numbers have equal texts. The Value may share s. The error wraps ErrNumber.
func ParseNumber(s string) (Value, error) {
	if isCanonical(s) {
		return ofText(Number, s), nil
	}
	t, err := canonicalNumber(s)
	if err != nil {
		return Value{}, err
	}
	return ofText(Number, t), nil
}

// MustNumber is ParseNumber for constants and tests. It panics on an error.
func MustNumber(s string) Value {
	v, err := ParseNumber(s)
	if err != nil {
		panic(err)
	}
	return v
}

// isCanonical reports whether s is certainly the result of canonicalNumber for it. This is the fast path: nearly every
// number that DynamoDB sends is canonical. It returns false for some canonical texts of 38 digits or more.
func isCanonical(s string) bool {
	d := s
	if len(d) > 1 && d[0] == '-' {
		d = d[1:]
	}
	if len(d) == 0 || len(d) > MaxDigits {
		return false
	}
	point := -1
	for i := 0; i < len(d); i++ {
		if c := d[i]; c-'0' > 9 {
			if c != '.' || point >= 0 {
				return false
			}
			point = i
		}
	}
	if d[0] == '0' && point != 1 {
		return s == "0"
	}
	return point < 0 || point > 0 && d[len(d)-1] != '0' && point < len(d)-1
}

// decimal is a parsed number, ±0.d₁d₂… × 10^exp. Its digits have no leading or trailing
// zeros and are "" for zero.
type decimal struct {
	neg    bool
	digits string
	exp    int
}

// parseDecimal reads a decimal with or without an exponent. Leading and trailing zeros do not count
// as digits. More than 38 digits, or a magnitude beyond 9.9E+125 or below 1E-130, is ErrNumber
// (DynamoDB, number type).
func parseDecimal(s string) (decimal, error) {
	bad := func() (decimal, error) { return decimal{}, fmt.Errorf("%w: %.60q", ErrNumber, s) }
	var d decimal
	rest := s
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		d.neg = rest[0] == '-'
		rest = rest[1:]
	}
	mantissa, exponent, hasExp := rest, "", false
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent, hasExp = rest[:i], rest[i+1:], true
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(frac) == 0 || !allDigits(whole) || !allDigits(frac) {
		return bad()
	}
	d.exp = len(whole)
	if hasExp {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 1000 || e < -1000 {
			return bad()
		}
		d.exp += e
	}
	digits := whole + frac
	trimmed := strings.TrimLeft(digits, "0")
	d.exp -= len(digits) - len(trimmed)
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}, nil
	}
	switch lead := d.exp - 1; {
	case len(d.digits) > MaxDigits:
		return decimal{}, fmt.Errorf("%w: %.60q has more than %d significant digits", ErrNumber, s, MaxDigits)
	case lead > maxExponent || lead < minExponent:
		return decimal{}, fmt.Errorf("%w: %.60q is outside 1E%d to 9.9E+%d", ErrNumber, s, minExponent, maxExponent)
	}
	return d, nil
}

// allDigits is true for "" too.
func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// canonicalNumber is the one text of a number: no exponent, no leading or trailing zeros, no plus,
// "0" for zero. So equal numbers have equal bytes.
func canonicalNumber(s string) (string, error) {
	d, err := parseDecimal(s)
	if err != nil {
		return "", err
	}
	return d.String(), nil
}

// String is the canonical text.
func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	var b strings.Builder
	if d.neg {
		b.WriteByte('-')
	}
	switch n := len(d.digits); {
	case d.exp <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -d.exp))
		b.WriteString(d.digits)
	case d.exp >= n:
		b.WriteString(d.digits)
		b.WriteString(strings.Repeat("0", d.exp-n))
	default:
		b.WriteString(d.digits[:d.exp])
		b.WriteByte('.')
		b.WriteString(d.digits[d.exp:])
	}
	return b.String()
}

// mustDecimal parses a canonical text.
func mustDecimal(s string) decimal {
	d, err := parseDecimal(s)
	if err != nil {
		panic("value: a Number holds " + strconv.Quote(s))
	}
	return d
}

// compareNumbers compares canonical numbers exactly, without converting them to a float.
func compareNumbers(a, b string) int {
	x, y := mustDecimal(a), mustDecimal(b)
	if x.sign() != y.sign() {
		return x.sign() - y.sign()
	}
	c := x.exp - y.exp
	if c == 0 || x.sign() == 0 {
		c = strings.Compare(x.digits, y.digits)
	}
	if x.neg {
		c = -c
	}
	return c
}

// sign is -1, 0 or 1.
func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

// Decimal splits a Number for an order-preserving key. It returns the sign (-1, 0, 1) and
// |v| = 0.DIGITS × 10^exp; the digits have no leading or trailing zeros.
func (v Value) Decimal() (sign int, digits string, exp int) {
	d := mustDecimal(v.Text())
	return d.sign(), d.digits, d.exp
}

// Int64 returns a Number as an int64. It reports false if v is not a Number, not an
// integer, or does not fit.
func (v Value) Int64() (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Text(), 10, 64)
	return n, err == nil
}

// Sign returns -1, 0 or 1 for a Number, and 0 for any other kind.
func (v Value) Sign() int {
	if v.Kind() != Number {
		return 0
	}
	return mustDecimal(v.Text()).sign()
}

// wide computes with more digits than a Number may have, so a result that does not fit is detected and never rounded.
// They are enough for sums of products of MaxFactors numbers: each has digits between 10^125 and 10^-168.
var wide = apd.Context{Precision: 3000, MaxExponent: 4000, MinExponent: -4000, Traps: apd.DefaultTraps, Rounding: apd.RoundHalfUp}

// AddNumbers returns the exact sum a + b. The error wraps ErrNumber: the sum has more than
// 38 digits or is out of range. A Missing operand counts as 0.
func AddNumbers(a, b Value) (Value, error) {
	for _, v := range []*Value{&a, &b} {
		switch {
		case v.IsMissing():
			*v = OfInt(0)
		case v.Kind() != Number:
			return Value{}, fmt.Errorf("%w: a %v", ErrNumber, v.Kind())
		}
	}
	if x, ok := a.Int64(); ok {
		if y, ok := b.Int64(); ok {
			if s := x + y; (s > x) == (y > 0) {
				return OfInt(s), nil
			}
		}
	}
	var sum Exact
	sum.Add(a, 0)
	sum.Add(b, 0)
	return sum.Number()
}

// Negate returns -a.
func Negate(a Value) Value {
	switch {
	case a.Text() == "0":
		return a
	case a.Text()[0] == '-':
		return ofText(Number, a.Text()[1:])
	}
	return ofText(Number, "-"+a.Text())
}

// numberSize returns the size in bytes that DynamoDB counts for a number: one byte for two
// significant digits, one more, and one for a minus sign.
func numberSize(s string) int {
	sign := 0
	if s != "" && s[0] == '-' {
		sign, s = 1, s[1:]
	}
	first, last, digits := -1, -1, 0 // of the digits that are not 0, counted without the point
	for i := 0; i < len(s); i++ {
		if s[i] == '.' {
			continue
		}
		if s[i] != '0' {
			if last = digits; first < 0 {
				first = digits
			}
		}
		digits++
	}
	if first < 0 {
		return 1 // zero
	}
	return 1 + (last-first+2)/2 + sign
}
