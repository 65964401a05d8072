package book

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/value"
)

// A sum is kept exactly, however far apart its numbers are: a number has up to 38
// digits between 10^125 and 10^-167, and a sum of two can need 290. So a sum stands
// in bands of 23 decimal places each, and a number adds its digits to the bands
// that they are in. 10^15 rows do not fill the 38 digits of a band, so that no ADD
// is ever refused for what it comes to.
//
// The middle band is 10^-8 to 10^14, which nearly every number lies in whole. It is
// stored as it is, under the name that a sum had before there were bands; every
// other band is stored in units of its lowest place, under a name of its own. A band
// comes with the first number that has digits there, and stays, be it as 0: there are
// 13 at most.
const (
	bandPlaces = 23
	bandLowest = -8 // the lowest place of the middle band
	wholeBand  = 1_000_000_000_000_000
)

// Split returns the accumulators of attr that a number adds to, and what it adds to
// each: nothing for 0. The negated number adds the negated amounts.
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
		places := min(len(digits), exp-(band*bandPlaces+bandLowest)) // of the digits, how many are in the band
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

// bandOf is the band that a decimal place is in.
func bandOf(place int) int {
	band := (place - bandLowest) / bandPlaces
	if (place-bandLowest)%bandPlaces < 0 {
		band--
	}
	return band
}

func bandName(attr string, band int) string {
	switch {
	case band == 0:
		return Sum(attr)
	case band > 0:
		return "a+" + strconv.Itoa(band) + ":" + attr
	}
	return "a" + strconv.Itoa(band) + ":" + attr
}

// Band takes the name of a sum's accumulator apart: the attribute that the sum is
// published as, and the power of ten that what stands there is multiplied by.
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

// Total is the exact sum that a ledger holds for attr. The error is value.ErrNumber:
// somebody else wrote there.
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

// Respread returns what a ledger must hold so that every one of its bands has room:
// the accumulators that differ. A ledger of before there were bands can hold any
// number in its middle one.
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
