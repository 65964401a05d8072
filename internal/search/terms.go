package search

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"weir/internal/value"
)

// maxTerm is the longest string, in bytes, that terms and sort keys hold unchanged.
const maxTerm = 256

// Terms are the values of a field as exact terms: the value itself, or each element of
// a list or set. A filter names one term. The number 1 and the string "1" are different
// terms. Terms are UTF-8.
func Terms(v value.Value) []string {
	switch v.Kind() {
	case value.List, value.StringSet, value.NumberSet, value.BinarySet:
		terms := make([]string, 0, v.Len())
		for _, e := range v.Elements() {
			if t, ok := Term(e.Value); ok {
				terms = append(terms, t)
			}
		}
		return terms
	}
	if t, ok := Term(v); ok {
		return []string{t}
	}
	return nil
}

// Term is a scalar as an exact term; false for a value that is no scalar.
func Term(v value.Value) (string, bool) {
	switch text := v.Text(); v.Kind() {
	case value.Bool:
		return fmt.Sprintf("b:%t", v.Bool()), true
	case value.Number:
		return "n:" + text, true
	case value.String:
		if len(text) <= maxTerm && utf8.ValidString(text) {
			return "s:" + text, true
		}
		return "S:" + digest(text), true
	case value.Binary:
		return "B:" + digest(text), true
	}
	return "", false
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// SortKey is a scalar as UTF-8 text whose bytes sort like the values: booleans, then
// numbers by value, then strings bytewise. Strings that differ only after their first
// 256 bytes are equal. It reports false for a value that has no order; such a value is
// treated as missing.
func SortKey(v value.Value) (string, bool) {
	switch v.Kind() {
	case value.Bool:
		return fmt.Sprintf("b%t", v.Bool()), true // false before true
	case value.Number:
		return "n" + numberKey(v), true
	case value.String:
		return "s" + cutString(strings.ToValidUTF8(v.Text(), "\uFFFD"), maxTerm), true
	}
	return "", false
}

// numberKey is a sign, the exponent and the digits. For numbers below zero, the
// exponent and the digits are complemented, and a byte greater than every digit
// follows.
func numberKey(v value.Value) string {
	sign, digits, exp := v.Decimal()
	switch {
	case sign == 0:
		return "1"
	case sign > 0:
		return fmt.Sprintf("2%03d%s", 500+exp, digits)
	}
	complement := []byte(digits)
	for i, c := range complement {
		complement[i] = '0' + '9' - c
	}
	return fmt.Sprintf("0%03d%s~", 500-exp, complement)
}

// cutString cuts s to at most n bytes, between runes.
func cutString(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
