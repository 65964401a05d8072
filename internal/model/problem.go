package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a model file with a problem is refused.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the model is refused
	Warning Severity = "warning" // it is legal, and probably not meant
	Note    Severity = "note"    // it is legal, and costs more than it seems
)

// Problem is one mistake in a model file, with its place.
// Its JSON is the output of lint -o json; names stay.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`             // from 1
	Column   int      `json:"column,omitempty"` // from 1, in characters; 0 where only the line is known
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // how to correct it, "" for none

	kind string // the message without names: the effects of one mistake in many places are of one kind
}

// String returns the problem as compilers print it: file:line:column: message (hint). A warning
// and a note say that they are one.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:", p.File, p.Line)
	if p.Column > 0 {
		fmt.Fprintf(&b, "%d:", p.Column)
	}
	if p.Severity != Error {
		b.WriteString(" " + string(p.Severity) + ":")
	}
	b.WriteString(" " + p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is the error for a model file with mistakes. It lists each mistake once, in the
// order of the file, and is never empty.
type Problems struct {
	List []Problem
}

// Error is the list as lint prints it, one problem a line.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i := range p.List {
		lines[i] = p.List[i].String()
	}
	return strings.Join(lines, "\n")
}

// mostOfKind is how many problems of a kind are listed, so that one mistake does not hide others.
const mostOfKind = 10

// sortProblems returns the problems in the order of the file, without duplicates. Of a kind it has the first mostOfKind, and how many more
// there are at the place of the next one.
func sortProblems(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Message, b.Message))
	})
	of, next := map[string]int{}, map[string]int{} // by kind, how many there are, and where the next one stands in out
	var out []Problem
	for _, p := range slices.Compact(list) {
		if of[p.kind]++; of[p.kind] <= mostOfKind {
			out = append(out, p)
			continue
		}
		at, met := next[p.kind]
		if !met {
			at, next[p.kind] = len(out), len(out)
			p.Hint = ""
			out = append(out, p)
		}
		out[at].Message = fmt.Sprintf("and %d more of this kind", of[p.kind]-mostOfKind)
	}
	return out
}
