package owntable

import (
	"encoding/hex"
	"fmt"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// The facts of a `latest`, `max` and so on are the source rows of a target that take part. Their
// names sort as the rows do, so the first fact that holds is the row that the target shows.

// MaxOrdered is the longest text by which rows are ordered, in bytes.
const MaxOrdered = 250

// The lengths of the two parts of a name before it is written in hexadecimal digits; together
// they keep it within DynamoDB's limit for a sort key.
const (
	maxOrdered = 260
	maxTie     = 250
	cutTie     = 225
)

// OrderedFact names the fact of a source row by the value that orders it: numbers come before
// texts, and texts before times, which are ordered as instants. Rows with equal values are
// ordered by their keys; keys that agree in their first cutTie bytes by a hash. With greatest
// the names are in the opposite order. unfit is the form that the value must have instead, "" if it fits.
func OrderedFact(v value.Value, source store.Key, greatest bool) (name, unfit string) {
	var b []byte
	switch instant, time := value.Instant(v); {
	case v.Kind() == value.Number:
		b = appendOrdered(append(b, 'n'), v)
	case v.Kind() != value.String:
		return "", "a number or a text"
	case len(v.Text()) > MaxOrdered:
		return "", fmt.Sprintf("a text of at most %d bytes", MaxOrdered)
	case time:
		b = orderedText(append(b, 't'), instant)
	default:
		b = orderedText(append(b, 's'), v.Text())
	}
	if len(b) > maxOrdered {
		return "", fmt.Sprintf("a text of at most %d bytes, of which each NUL counts twice", MaxOrdered)
	}
	tie := appendOrdered(appendOrdered(nil, source.Partition), source.Sort)
	if len(tie) > maxTie {
		tie = append(tie[:cutTie:cutTie], Hash(string(tie))...)
	}
	name = hex.EncodeToString(append(b, tie...))
	if greatest {
		name = opposite.Replace(name)
	}
	return name, ""
}

// opposite turns the order of texts around of which none begins with another.
var opposite = strings.NewReplacer("0", "f", "1", "e", "2", "d", "3", "c", "4", "b", "5", "a", "6", "9", "7", "8",
	"f", "0", "e", "1", "d", "2", "c", "3", "b", "4", "a", "5", "9", "6", "8", "7")

// appendOrdered appends a value so that the bytes of different values of one kind are in their order,
// and none begins with another.
func appendOrdered(to []byte, v value.Value) []byte {
	if v.Kind() != value.Number {
		return orderedText(to, v.Text())
	}
	sign, digits, exp := v.Decimal()
	if sign == 0 {
		return append(to, '1')
	}
	const least = 200 // more than a number's exponent can be below 0
	b := fmt.Appendf(nil, "%03d%s", exp+least, digits)
	if sign > 0 {
		return append(append(append(to, '2'), b...), ' ')
	}
	to = append(to, '0')
	for _, c := range b {
		to = append(to, '0'+'9'-c)
	}
	return append(to, '~')
}

// orderedText appends a text so that the bytes of two such texts compare like the texts, also
// where one begins the other: a zero byte is escaped, and 0, 1 ends the text.
func orderedText(to []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if to = append(to, s[i]); s[i] == 0 {
			to = append(to, 0xff)
		}
	}
	return append(to, 0, 1)
}
