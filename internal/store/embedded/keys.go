package embedded

import (
	"bytes"
	"errors"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// The stored form of key values. Comparing the bytes of two forms compares the values.
// No form is the beginning of another. So forms can follow one another, and the result
// still sorts by the first value, then by the second.
//
//	string, binary   each byte as it is, 00 as 00 FF; then 00 01
//	number           03 EXP PAIR… 00    positive
//	                 02                 zero
//	                 01 ^EXP ^PAIR… FF  negative: the positive form, each byte inverted
//
// EXP is the exponent of 0.DIGITS × 10^exp plus 129, which in DynamoDB's range is 0 to
// 255. PAIR is two digits plus 1; the last pair is filled up with 0.

const (
	escape     = 0x00
	escapedNul = 0xff
	endOfBytes = 0x01

	signNegative = 0x01
	signZero     = 0x02
	signPositive = 0x03

	exponentBias = 129
)

var errKeyForm = errors.New("stored key is corrupt")

// appendKey appends the whole key of a row or an index entry. Bytes compare as DynamoDB orders
// keys, and no key is the beginning of another of the same table.
func appendKey(b []byte, k store.Key) []byte {
	b = appendKeyValue(b, k.Partition)
	if !k.Sort.IsMissing() {
		b = appendKeyValue(b, k.Sort)
	}
	return b
}

// appendKeyValue appends a text, a binary or a number. The type is not stored: the table's schema
// says it, so a stored key is read with the schema it was written by.
func appendKeyValue(b []byte, v value.Value) []byte {
	if v.Kind() == value.Number {
		return appendNumber(b, v)
	}
	return append(appendEscaped(b, v.Text()), escape, endOfBytes)
}

// appendEscaped appends the form of a string without its end. The forms of all strings
// that begin with s begin with it.
func appendEscaped(b []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, escape)
		if i < 0 {
			return append(b, s...)
		}
		b = append(append(b, s[:i]...), escape, escapedNul)
		s = s[i+1:]
	}
}

// appendNumber appends a number so that bytes compare as numbers do: a sign, the exponent, the
// digits in pairs, an end. All bytes but the sign are inverted for a negative number. Equal numbers
// have equal bytes, however they were written, because value.Value is canonical.
func appendNumber(b []byte, v value.Value) []byte {
	sign, digits, exp := v.Decimal()
	if sign == 0 {
		return append(b, signZero)
	}
	b = append(b, signPositive)
	start := len(b)
	b = append(b, byte(exp+exponentBias))
	for i := 0; i < len(digits); i += 2 {
		pair := (digits[i] - '0') * 10
		if i+1 < len(digits) {
			pair += digits[i+1] - '0'
		}
		b = append(b, pair+1)
	}
	b = append(b, 0)
	if sign < 0 {
		b[start-1] = signNegative
		for i := start; i < len(b); i++ {
			b[i] = ^b[i]
		}
	}
	return b
}

// takeKey reads a key of the given schema, and returns it and the rest of b. The key
// shares no memory with b.
func takeKey(b []byte, ks *store.KeySchema) (k store.Key, rest []byte, err error) {
	if k.Partition, b, err = takeKeyValue(b, ks.Partition.Type); err != nil || ks.Sort.Name == "" {
		return k, b, err
	}
	k.Sort, b, err = takeKeyValue(b, ks.Sort.Type)
	return k, b, err
}

// takeKeyValue reads the form of a value of this kind, and returns the value and the
// rest of b.
func takeKeyValue(b []byte, kind store.KeyType) (value.Value, []byte, error) {
	switch kind {
	case value.Number:
		return takeNumber(b)
	case value.String, value.Binary:
		s, rest, err := takeBytes(b)
		if kind == value.Binary {
			return value.OfBinary(s), rest, err
		}
		return value.OfString(s), rest, err
	}
	return value.Value{}, b, errKeyForm
}

// takeBytes reads a text or a binary and returns the bytes after it. The text is a copy, so b may be
// used again.
func takeBytes(b []byte) (string, []byte, error) {
	var out []byte
	for {
		i := bytes.IndexByte(b, escape)
		if i < 0 || i+1 == len(b) {
			return "", b, errKeyForm
		}
		mark := b[i+1]
		switch {
		case mark == endOfBytes && out == nil:
			return string(b[:i]), b[i+2:], nil
		case mark == endOfBytes:
			return string(append(out, b[:i]...)), b[i+2:], nil
		case mark != escapedNul:
			return "", b, errKeyForm
		}
		out = append(append(out, b[:i]...), 0)
		b = b[i+2:]
	}
}

// takeNumber reads a number and returns the bytes after it. Bytes that no number is written as are
// errKeyForm, so damage ends a read and is never another key.
func takeNumber(b []byte) (value.Value, []byte, error) {
	if len(b) == 0 {
		return value.Value{}, b, errKeyForm
	}
	sign, invert := b[0], byte(0)
	b = b[1:]
	switch sign {
	case signZero:
		return value.OfInt(0), b, nil
	case signPositive:
	case signNegative:
		invert = 0xff
	default:
		return value.Value{}, b, errKeyForm
	}
	var digits [2*(value.MaxDigits/2+1) + 8]byte
	text := append(digits[:0], "-."...)
	if sign == signPositive {
		text = text[1:]
		text[0] = '.'
	}
	exp := -1
	for i, c := range b {
		c ^= invert
		switch {
		case i == 0:
			exp = int(c) - exponentBias
		case c == 0 && i > 1:
			return numberOf(text, exp, b[i+1:])
		case c == 0 || c > 100 || i > value.MaxDigits/2:
			return value.Value{}, b, errKeyForm
		default:
			text = append(text, '0'+(c-1)/10, '0'+(c-1)%10)
		}
	}
	return value.Value{}, b, errKeyForm
}

// numberOf makes a number of the digits and the exponent that takeNumber has read.
func numberOf(mantissa []byte, exp int, rest []byte) (value.Value, []byte, error) {
	text := append(mantissa, 'E')
	if exp < 0 {
		text, exp = append(text, '-'), -exp
	}
	text = append(text, byte('0'+exp/100), byte('0'+exp/10%10), byte('0'+exp%10))
	v, err := value.ParseNumber(string(text))
	if err != nil {
		return value.Value{}, rest, errKeyForm
	}
	return v, rest, nil
}

// keyAfter is the least key greater than all keys that begin with prefix, nil if there is
// none. It changes prefix.
func keyAfter(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			prefix[i]++
			return prefix[:i+1]
		}
	}
	return nil
}
