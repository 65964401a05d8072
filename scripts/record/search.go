package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"weir/internal/seq"
)

// A searched is a search index: its rows and the attributes that are searched.
type searched struct {
	query  string
	fields []string
	rows   []row
}

// addSearch adds a check of a search that must find want rows. The rule is stated in several ways wherever it leaves
// room; a check in which the ways differ is refused, since it would test a choice and not the rule.
func (e *expect) addSearch(s searched, p params, want int) {
	hits := s.findRows(p["q"], true, matchesWithTypo)
	for _, other := range [][]row{
		s.findRows(p["q"], false, matchesWithTypo),
		s.findRows(p["q"], true, matchesWithSwap),
		s.findRows(p["q"], true, matchesBeginning),
	} {
		if !slices.EqualFunc(hits, other, equalRows) {
			e.addProblem(s.query, p, errors.New("the answer depends on how the rule is read"))
		}
	}
	if len(hits) != want {
		e.addProblem(s.query, p, fmt.Errorf("finds %d rows, meant to find %d", len(hits), want))
	}
	e.addCheck(s.query, p, false, hits, nil)
}

// findRows returns the rows that match as typed, or, where none does, those that match with a typo forgiven.
// across says whether the words may stand in different attributes.
func (s searched) findRows(q string, across bool, near func(typed, word string, last bool) bool) []row {
	typed := wordsOf(q)
	match := func(eq func(typed, word string, last bool) bool) []row {
		var out []row
		for _, r := range s.rows {
			if s.matchesRow(r, typed, across, eq) {
				out = append(out, r)
			}
		}
		return out
	}
	if hits := match(matchesExactly); len(hits) > 0 {
		return hits
	}
	return match(func(typed, word string, last bool) bool {
		return matchesExactly(typed, word, last) || isForgivable(typed) && near(typed, word, last)
	})
}

func (s searched) matchesRow(r row, typed []string, across bool, eq func(typed, word string, last bool) bool) bool {
	fields := seq.Map(s.fields, func(f string) []string { return wordsOf(textOf(r[f])) })
	if across {
		fields = [][]string{slices.Concat(fields...)}
	}
	return slices.ContainsFunc(fields, func(have []string) bool {
		for i, t := range typed {
			if !slices.ContainsFunc(have, func(w string) bool { return eq(t, w, i == len(typed)-1) }) {
				return false
			}
		}
		return true
	})
}

// wordsOf are the maximal runs of letters and digits, without case and accents.
func wordsOf(s string) []string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(s))
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// textOf is the text of a string, or of all strings in a list or set.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case strs:
		return strings.Join(v, "\n")
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, textOf(e))
		}
		return strings.Join(parts, "\n")
	}
	return ""
}

func matchesExactly(typed, word string, last bool) bool {
	return typed == word || last && strings.HasPrefix(word, typed)
}

func isForgivable(typed string) bool {
	return len([]rune(typed)) >= 4 && !strings.ContainsFunc(typed, unicode.IsDigit)
}

// matchesWithTypo forgives one letter too many, too few, or another.
func matchesWithTypo(typed, word string, _ bool) bool {
	a, b := []rune(typed), []rune(word)
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i == len(a) || slices.Equal(a[i+1:], b[i+1:])
	}
	return slices.Equal(a[i:], b[i+1:])
}

// matchesWithSwap also forgives two neighbours in the wrong order.
func matchesWithSwap(typed, word string, last bool) bool {
	a, b := []rune(typed), []rune(word)
	for i := 0; len(a) == len(b) && i+1 < len(a); i++ {
		swapped := slices.Clone(a)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		if slices.Equal(swapped, b) {
			return true
		}
	}
	return matchesWithTypo(typed, word, last)
}

// matchesBeginning also forgives a typo in the beginning of a longer word.
func matchesBeginning(typed, word string, last bool) bool {
	w := []rune(word)
	for n := len([]rune(typed)) - 1; last && n <= len([]rune(typed))+1 && n <= len(w); n++ {
		if matchesWithTypo(typed, string(w[:n]), last) {
			return true
		}
	}
	return matchesWithTypo(typed, word, last)
}
