package owntable

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/value"
)

// A sum is kept exactly, however far apart its numbers are. A number has up to 38
// digits between 10^125 and 10^-167, so the sum of two numbers can need 290 digits. A
// ledger therefore splits a sum into bands of 23 decimal places, and a number adds each
// of its digits to the band of that place. A band has room for 38 digits, which 10^15
// rows do not fill: DynamoDB never refuses an ADD because the result is too large.
//
// The middle band covers 10^-8 to 10^14 and contains nearly every number completely. It
// is stored unscaled, under the attribute name that sums had before bands existed. Every
// other band is stored in units of its lowest place, under its own name. The first
// number with digits in a band creates it; the band then stays, even at 0. There are at
// most 13 bands.
const (
	bandPlaces = 23
	bandLowest = -8 // the lowest place of the middle band
	wholeBand  = 1_000_000_000_000_000
)

// Split returns the accumulators of attr that the number n adds to, each with the amount
// to add. It returns none for 0. For -n it returns the same accumulators with the
// negated amounts.
func Split(attr string, n value.Value) []value.Attr {
	if i, ok := n.Int64(); ok && i > -wholeBand && i < wholeBand {
		if i == 0 {
			return nil
		}
		return []value.Attr{{Name: Sum(attr), Value: n}}
	}
	sign, digits, exp := n.Decimal()
	minus := ""
	if sign < 0 {
		minus = "-"
	}
	var out []value.Attr
	for digits != "" {
		band := bandOf(exp - 1)
		places := min(len(digits), exp-(band*bandPlaces+bandLowest)) // the digits in the band
		part, lowest := digits[:places], exp-places
		if band != 0 {
			lowest -= band*bandPlaces + bandLowest
		}
		if strings.Trim(part, "0") != "" {
			out = append(out, value.Attr{Name: bandName(attr, band), Value: value.MustNumber(minus + part + "e" + strconv.Itoa(lowest))})
		}
		digits, exp = digits[places:], exp-places
	}
	return out
}

// bandOf returns the band that a decimal place belongs to; 0 is the middle band.
func bandOf(place int) int {
	band := (place - bandLowest) / bandPlaces
	if (place-bandLowest)%bandPlaces < 0 {
		band--
	}
	return band
}

// bandName returns the name of the accumulator that holds a band of attr's sum.
func bandName(attr string, band int) string {
	switch {
	case band == 0:
		return Sum(attr)
	case band > 0:
		return "a+" + strconv.Itoa(band) + ":" + attr
	}
	return "a" + strconv.Itoa(band) + ":" + attr
}

// Band parses the name of a sum's accumulator. It returns the attribute under which the
// sum is published, and the power of ten by which the stored number is multiplied. ok is
// false for the name of anything else.
func Band(name string) (attr string, exp int, ok bool) {
	if len(name) < 2 || name[0] != 'a' {
		return "", 0, false
	}
	if name[1] == ':' {
		return name[2:], 0, true
	}
	text, attr, ok := strings.Cut(name[1:], ":")
	band, err := strconv.Atoi(text)
	return attr, band*bandPlaces + bandLowest, ok && err == nil && band != 0 && bandName("", band) == "a"+text+":"
}

// Total returns the exact sum that a ledger holds for attr. The error wraps
// value.ErrNumber and means that another program wrote into the ledger.
func Total(attr string, ledger value.Item) (*value.Exact, error) {
	sum := new(value.Exact)
	for i := range ledger {
		of, exp, ok := Band(ledger[i].Name)
		if !ok || of != attr {
			continue
		}
		if k := ledger[i].Value.Kind(); k != value.Number {
			return nil, fmt.Errorf("%w: %s of the ledger is a %v", value.ErrNumber, ledger[i].Name, k)
		}
		sum.Add(ledger[i].Value, exp)
	}
	return sum, nil
}

// Respread returns the accumulators that must be changed so that every band of the ledger
// has room for more rows, with their new values. Only a ledger that was written before
// bands existed needs this: its middle band may hold any number.
func Respread(ledger value.Item) []value.Attr {
	var out value.Item
	for _, a := range ledger {
		attr, exp, ok := Band(a.Name)
		if !ok || exp != 0 || a.Value.Kind() != value.Number {
			continue
		}
		parts := Split(attr, a.Value)
		if len(parts) == 0 || len(parts) == 1 && parts[0].Name == a.Name {
			continue
		}
		out = out.With(value.Attr{Name: a.Name, Value: value.OfInt(0)})
		for _, p := range parts {
			if p.Name != a.Name {
				sum, err := value.AddNumbers(ledger.Get(p.Name), p.Value)
				if err != nil { // 10^15 rows
					return nil
				}
				p.Value = sum
			}
			out = out.With(p)
		}
	}
	return out
}
