package value

import "slices"

// What decoders build values with. They do what ParseNumber and OfElements do,
// and take what is in canonical form already, which is nearly everything that
// DynamoDB sends, without a second look or an allocation.

// NumberFrom is ParseNumber, but keeps a canonical text, decimals included, as
// it is: the Value shares s.
func NumberFrom(s string) (Value, error) {
	if isCanonicalDecimal(s) {
		return ofText(Number, s), nil
	}
	return ParseNumber(s)
}

// isCanonicalDecimal reports whether s is certainly what ParseNumber would
// return for it. It says no to some texts of 38 digits or more that are.
func isCanonicalDecimal(s string) bool {
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

// SetFrom returns the set of kind k whose elements are the unnamed attributes
// given, all of the kind that such a set holds; it takes them over and puts them
// in canonical order. Of an element that is there twice it returns the element
// and false.
func SetFrom(k Kind, elems []Attr) (Value, bool) {
	inOrder := true
	for i := 1; i < len(elems) && inOrder; i++ {
		inOrder = Compare(elems[i-1].Value, elems[i].Value) < 0
	}
	if !inOrder {
		slices.SortFunc(elems, func(a, b Attr) int { return Compare(a.Value, b.Value) })
		for i := 1; i < len(elems); i++ {
			if elems[i].Value.Text() == elems[i-1].Value.Text() {
				return elems[i].Value, false
			}
		}
	}
	return ofKids(k, elems), true
}

// ListFrom returns the list of the unnamed attributes given; it takes them over.
func ListFrom(elems []Attr) Value { return ofKids(List, elems) }
