package store

import (
	"slices"
	"strings"

	"weir/internal/value"
)

// Difference is the update that turns the row from into the row to, which has the same
// key. It is nil if they are equal.
func Difference(from, to value.Item) []Op {
	var ops []Op
	for len(from)+len(to) > 0 {
		switch c := compareNames(from, to); {
		case c < 0:
			ops = append(ops, Op{Kind: Remove, Attr: from[0].Name})
			from = from[1:]
		case c > 0:
			ops = append(ops, Op{Kind: Set, Attr: to[0].Name, Value: to[0].Value})
			to = to[1:]
		default:
			if !value.Equal(from[0].Value, to[0].Value) {
				ops = append(ops, Op{Kind: Set, Attr: to[0].Name, Value: to[0].Value})
			}
			from, to = from[1:], to[1:]
		}
	}
	return slices.Clip(ops)
}

// compareNames compares the first names of two items; an empty item comes last.
func compareNames(a, b value.Item) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].Name, b[0].Name)
}
