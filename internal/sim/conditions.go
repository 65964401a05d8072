package sim

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/value"
)

// What passes a condition, as docs/guide/model.md says it: a second opinion, which shares no code with
// package value.

// passesTests reports whether a row passes all tests.
func passesTests(where []model.Test, row value.Item) bool {
	for i := range where {
		v := fieldValue(where[i].Field, row)
		for _, t := range where[i].Is {
			if !passes(t, v) {
				return false
			}
		}
	}
	return true
}

func passes(t value.Term, v value.Value) bool {
	none := v.IsMissing() || v.Kind() == value.Null
	is := func(w value.Value) bool { return alike(t.As, v, w) }
	switch t.Op {
	case value.Exists:
		return !none
	case value.Absent:
		return none
	case value.In:
		return !none && slices.ContainsFunc(t.Values, is)
	case value.NotIn:
		return none || !slices.ContainsFunc(t.Values, is)
	case value.Begins:
		text, begin := v.Text(), t.Values[0].Text()
		return v.Kind() == value.String && len(text) >= len(begin) && text[:len(begin)] == begin
	}
	sign, ordered := order(t.As, v, t.Values[0])
	return ordered && slices.Contains(map[value.Op][]int{
		value.AtLeast: {0, 1}, value.Above: {1}, value.AtMost: {-1, 0}, value.Below: {-1},
	}[t.Op], sign)
}

// alike reports whether a row's value is one that a condition names.
func alike(as value.As, v, w value.Value) bool {
	if as == value.AsTimes {
		a, b := instantSeconds(v), instantSeconds(w)
		if a != nil && b != nil {
			return a.Cmp(b) == 0
		}
	}
	if v.Kind() == value.Bool || w.Kind() == value.Bool {
		return boolWord(v) != "" && boolWord(v) == boolWord(w)
	}
	if v.Kind() != w.Kind() {
		return false
	}
	if v.Kind() == value.Number {
		return decimalOf(v).Cmp(decimalOf(w)) == 0
	}
	return v.Kind() == value.String && v.Text() == w.Text()
}

// boolWord is the word of a boolean, however a row has it.
func boolWord(v value.Value) string {
	if v.Kind() == value.Bool || v.Kind() == value.String {
		if text := value.Scalar(v); text == "true" || text == "false" {
			return text
		}
	}
	return ""
}

// order compares a row's value with that of a bound.
func order(as value.As, v, w value.Value) (sign int, ordered bool) {
	if as == value.AsTimes {
		a, b := instantSeconds(v), instantSeconds(w)
		if a == nil || b == nil {
			return 0, false
		}
		return a.Cmp(b), true
	}
	if as == value.AsNumbers || v.Kind() == value.Number && w.Kind() == value.Number {
		a, b := decimalOf(v), decimalOf(w)
		if a == nil || b == nil {
			return 0, false
		}
		return a.Cmp(b), true
	}
	if v.Kind() != value.String || w.Kind() != value.String {
		return 0, false
	}
	return strings.Compare(v.Text(), w.Text()), true
}

var (
	decimals = regexp.MustCompile(`^[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$`)
	moments  = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2})(\.\d+)?(Z|[-+]\d{2}:\d{2}))?$`)
)

// decimalOf is the number that a value is, or stands for; nil for none.
func decimalOf(v value.Value) *big.Rat {
	text := value.Scalar(v)
	if !decimals.MatchString(text) || v.Kind() != value.Number && v.Kind() != value.String {
		return nil
	}
	n, _ := new(big.Rat).SetString(text)
	return n
}

// instantSeconds is the time of a text in seconds, with all digits of its fraction; nil if it is no time.
func instantSeconds(v value.Value) *big.Rat {
	if v.Kind() != value.String {
		return nil
	}
	m := moments.FindStringSubmatch(v.Text())
	if m == nil {
		return nil
	}
	clock, zone := m[2], m[4]
	if clock == "" {
		clock, zone = "00:00:00", "Z"
	}
	at, err := time.Parse(time.RFC3339, m[1]+"T"+clock+zone)
	if err != nil {
		return nil
	}
	seconds := new(big.Rat).SetInt64(at.Unix())
	if m[3] != "" {
		part, _ := new(big.Rat).SetString("0" + m[3])
		seconds.Add(seconds, part)
	}
	return seconds
}
