package model

import (
	"fmt"
	"slices"
	"strings"
)

// Meant returns the end of a message about an unknown name: `; did you mean "title"?` with
// the known name that is most similar, or "" if none is similar.
func Meant(name string, known []string) string {
	if ask := didYouMean(name, known); ask != "" {
		return "; " + ask
	}
	return ""
}

// hintFor returns the hint for an unknown name: the most similar known name, or a few known
// names if none is similar.
func hintFor(name string, known []string) string {
	ask := didYouMean(name, known)
	switch {
	case ask != "":
		return ask
	case len(known) == 0:
		return ""
	case len(known) > maxListed:
		return "there are " + strings.Join(known[:maxListed], ", ") + ", …"
	case len(known) == 1:
		return "there is " + known[0]
	}
	return "there are " + strings.Join(known, ", ")
}

// didYouMean returns the known name that is nearest to a misspelt one, or that stands for a word of another language, as a hint; "" if
// none is near: a third of the letters may differ, but fewer than maxGuessed.
func didYouMean(name string, known []string) string {
	best, distance := "", maxGuessed
	for _, k := range known {
		if abs := max(len(name)-len(k), len(k)-len(name)); abs > (max(len(name), len(k))+1)/3 {
			continue // at least so many letters differ
		}
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if d < distance && d <= (max(len(name), len(k))+1)/3 {
			best, distance = k, d
		}
	}
	for _, word := range elsewhere[strings.ToLower(name)] {
		if distance > 1 && slices.Contains(known, word) {
			best = word
			break
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// elsewhere are words that other languages have, in small letters, with the words for them here.
var elsewhere = map[string][]string{
	"gte": {"atLeast"}, "ge": {"atLeast"}, ">=": {"atLeast"}, "from": {"atLeast", "row"}, "gt": {"above"}, ">": {"above"},
	"lte": {"atMost"}, "le": {"atMost"}, "<=": {"atMost"}, "lt": {"below"}, "<": {"below"},
	"eq": {"in"}, "=": {"in"}, "==": {"in"}, "is": {"in"}, "ne": {"not"}, "!=": {"not"}, "<>": {"not"},
	"begins_with": {"begins"}, "startswith": {"begins"}, "prefix": {"begins"},
	"int": {"number"}, "integer": {"number"}, "float": {"number"}, "decimal": {"number"}, "bool": {"boolean"}, "text": {"string"},
	"date": {"time"}, "datetime": {"time"}, "timestamp": {"time"}, "array": {"list"}, "object": {"map"},
	"created": {"insert"}, "create": {"insert"}, "updated": {"modify"}, "update": {"modify"}, "deleted": {"remove"}, "delete": {"remove"},
	"avg": {"mean"}, "average": {"mean"}, "unique": {"distinct"}, "total": {"sum"}, "last": {"latest"}, "first": {"earliest"},
	"asc": {"oldest"}, "desc": {"newest"}, "filter": {"where"}, "source": {"row", "of"}, "by": {"to"}, "to": {"by"},
	"groupby": {"by"}, "copy": {"row"}, "fields": {"attributes", "set"},
}

const (
	maxListed  = 8
	maxGuessed = 64 // longer names are no typing mistakes
)

// editDistance returns how many letters must be inserted, dropped, changed, or swapped with
// the next letter to turn a into b. It gives up on names longer than maxGuessed.
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
