package model

import (
	"slices"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// maxSpelled is the largest number of names for which every combination of escaped and
// unescaped values is tried. Of more names, either all are escaped or none.
const maxSpelled = 3

// Spellings returns the ways in which keys may hold the values of the names, each of which
// contains a separator. Each way is the list of names whose values are escaped; the first is
// empty.
func Spellings(names []string) [][]string {
	if len(names) > maxSpelled {
		return [][]string{nil, names}
	}
	out := [][]string{nil}
	for _, name := range names {
		out = append(out, seq.Map(out, func(before []string) []string { return append(slices.Clip(before), name) })...)
	}
	return out
}

// KeysOf returns the primary keys that a row with these values may have: with each value
// unescaped, as most applications write it, and escaped. A row found under such a key need
// not have these values: check with Says.
func (e *Entity) KeysOf(get func(name string) value.Value) (keys []store.Key) {
	var names []string
	for _, k := range e.PrimaryKey() {
		for _, name := range k.Template.Names() {
			v := get(name)
			if v.Kind() == value.String && !slices.Contains(names, name) && k.Template.Escape(v.Text()) != v.Text() {
				names = append(names, name)
			}
		}
	}
	for _, as := range Spellings(names) {
		k, ok := e.keyBy(func(k *KeyTemplate, name string) value.Value {
			v := get(name)
			if slices.Contains(as, name) {
				v = value.OfString(k.Template.Escape(v.Text()))
			}
			return v
		})
		same := func(have store.Key) bool {
			return value.Equal(have.Partition, k.Partition) && value.Equal(have.Sort, k.Sort)
		}
		if ok && !slices.ContainsFunc(keys, same) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Says reports whether a row's own fields give the names of its key these values.
// A name for which get gives nothing is not compared.
func (e *Entity) Says(row value.Item, get func(name string) value.Value) bool {
	for _, k := range e.PrimaryKey() {
		for _, name := range k.Template.Names() {
			want := get(name)
			if !want.IsMissing() && value.Scalar(e.Field(name).Get(row)) != value.Scalar(want) {
				return false
			}
		}
	}
	return true
}
