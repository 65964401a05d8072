package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a model file, and where.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`             // from 1
	Column  int    `json:"column,omitempty"` // from 1, in characters; 0 where only the line is known
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do about it, "" for none
}

// String is the problem as compilers print it: file:line:column: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:", p.File, p.Line)
	if p.Column > 0 {
		fmt.Fprintf(&b, "%d:", p.Column)
	}
	b.WriteString(" " + p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is the error of a model file that cannot be used: everything that is
// wrong with it, in the order of the file, each thing once. It is never empty.
type Problems struct {
	List []Problem
}

func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i := range p.List {
		lines[i] = p.List[i].String()
	}
	return strings.Join(lines, "\n")
}

// sorted puts the problems in the order of the file and drops repetitions.
func sorted(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(list)
}

// didYouMean is the hint for a name that nobody knows: the nearest of those there
// are, or a few of them when none is near.
func didYouMean(name string, known []string) string {
	best, distance := "", maxGuessed
	for _, k := range known {
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if d < distance && d <= (max(len(name), len(k))+1)/3 {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) == 0:
		return ""
	case len(known) > maxListed:
		return "there are " + strings.Join(known[:maxListed], ", ") + ", …"
	case len(known) == 1:
		return "there is " + known[0]
	}
	return "there are " + strings.Join(known, ", ")
}

const (
	maxListed  = 8
	maxGuessed = 64 // longer names are no typing mistakes
)

// editDistance counts the letters to insert, drop, change, or swap with the next
// one, that turn a into b. It gives up on long names.
func editDistance(a, b string) int {
	if len(a) > maxGuessed || len(b) > maxGuessed {
		return maxGuessed
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	before, last, row := rows[2], rows[0], rows[1]
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
