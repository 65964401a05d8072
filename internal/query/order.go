package query

import (
	"cmp"
	"strings"

	"weir/internal/value"
)

// Rows of a step come in the order of their sort keys, with one difference: keys are
// compared as bytes, and so a time without a fraction of a second stands behind those
// with one, and .5Z behind .51Z. Where a time stands in a key, the sign that ends it
// comes before all others, which is the order of time. It counts for the first time in
// the key, and to the nanosecond; a time with an offset stays where its text puts it.

// endOfSecond is where the second of the first time in a key ends, -1 where there is no time.
func endOfSecond(key string) int {
	for from := 0; ; {
		i := strings.IndexByte(key[from:], 'T')
		if i < 0 {
			return -1
		}
		i += from
		if from = i + 1; i >= len(day) && i+len(clock) <= len(key) && hasShape(key[i-len(day):i], day) && hasShape(key[i:i+len(clock)], clock) {
			return i + len(clock)
		}
	}
}

const (
	// The shapes of a date and of a time of day, with a 0 for each digit.
	day   = "0000-00-00"
	clock = "T00:00:00"
)

// hasShape reports whether a text has digits where the shape has, and its signs elsewhere.
func hasShape(text, shape string) bool {
	for i := range len(shape) {
		if shape[i] == '0' && !isDigit(text[i]) || shape[i] != '0' && text[i] != shape[i] {
			return false
		}
	}
	return true
}

// isDigit reports whether a byte is an ASCII digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// nanos is how many digits of a fraction count.
const nanos = 9

// fractionOf is the part of a key behind the second of its first time; ok is false
// where a Z that follows the key would not end that time.
func fractionOf(key string) (digits string, ok bool) {
	end := endOfSecond(key)
	if end < 0 {
		return "", false
	}
	if digits = key[end:]; digits == "" {
		return "", true
	}
	for i := 1; i < len(digits); i++ {
		if !isDigit(digits[i]) {
			return "", false
		}
	}
	return digits, digits[0] == '.' && len(digits) <= nanos
}

// compareTimes compares two keys, or the parts behind the same beginning of two.
// It is the order of time where bytes have another: …00Z is before …00.5Z. Texts that are no times
// keep the order of their bytes.
func compareTimes(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	endsA, endsB := n < len(a) && a[n] == 'Z', n < len(b) && b[n] == 'Z'
	if endsA != endsB {
		if _, ok := fractionOf(a[:n]); ok && endsA {
			return -1
		} else if ok {
			return 1
		}
	}
	return cmp.Compare(a, b)
}

// compareSorts compares two sort keys.
func compareSorts(a, b value.Value) int {
	if a.Kind() == value.String && b.Kind() == value.String {
		return compareTimes(a.Text(), b.Text())
	}
	return value.Compare(a, b)
}
