package value

import "slices"

// Constructors for decoders. They do the same as ParseNumber and OfElements, but accept
// input in canonical form without converting or allocating. Nearly everything that
// DynamoDB sends is in canonical form.

// NumberFrom is ParseNumber, but does not copy a text that is already canonical, also if
// it has decimals: the Value then shares s.
func NumberFrom(s string) (Value, error) {
	if isCanonicalDecimal(s) {
		return ofText(Number, s), nil
	}
	return ParseNumber(s)
}

// isCanonicalDecimal reports whether s is certainly what ParseNumber would return for it.
// It returns false for some canonical texts of 38 digits or more.
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

// SetFrom returns the set of kind k with the given unnamed attributes as elements, which
// must all have the element kind of that set. It takes ownership of elems and sorts them
// into canonical order. If an element occurs twice, it returns that element and false.
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

// ListFrom returns the list of the given unnamed attributes. It takes ownership of elems.
func ListFrom(elems []Attr) Value { return ofKids(List, elems) }
