package model

import (
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// Leaf is the name in the optional tail of a set's sort key that tells the rows
// over which the set is spread.
const Leaf = "leaf"

// spread makes the entity one whose rows weir makes to hold a set.
func (c *compiler) spread(e *Entity) {
	e.Derived = true
	for _, k := range e.PrimaryKey() {
		k.Template.set = true
	}
}

// SetOf is the set that rows of this entity hold, nil when they hold none.
func (e *Entity) SetOf() *Tally {
	if len(e.Values) == 1 && e.Values[0].IsSet() {
		return e.Values[0]
	}
	return nil
}

// leafTemplate is the template of a set's rows, nil when it has no tail for them.
func (e *Entity) leafTemplate() *Template {
	if e.Table.Key.Sort.Name == "" {
		return nil
	}
	t := e.PrimaryKey()[1].Template
	if n := len(t.parts); t.tail != n-2 || t.parts[n-2].slot >= 0 || t.parts[n-1].slot != len(t.names)-1 || t.names[len(t.names)-1] != Leaf {
		return nil
	}
	return t
}

// LeafKey is the key of a row of the set whose first row has the key: its path is
// in hexadecimal digits, "" for the first row itself.
func (e *Entity) LeafKey(root store.Key, path string) store.Key {
	if path == "" {
		return root
	}
	return store.Key{Partition: root.Partition, Sort: value.OfString(root.Sort.Text() + e.leafBorder() + path)}
}

// LeafPath takes the key of a row of a set apart: the key of the set's first row,
// and the row's path. ok is false for a key that is no such row's.
func (e *Entity) LeafPath(k store.Key) (root store.Key, path string, ok bool) {
	t := e.leafTemplate()
	if t == nil || k.Sort.Kind() != value.String {
		return k, "", false
	}
	values := make([]string, len(t.names))
	if !t.Match(k.Sort.Text(), values) {
		return k, "", false
	}
	if path = values[len(values)-1]; path == "" {
		return k, "", true
	}
	text := k.Sort.Text()
	root = store.Key{Partition: k.Partition, Sort: value.OfString(text[:len(text)-len(path)-len(e.leafBorder())])}
	return root, path, IsHex(path)
}

// LeafRange is where all rows of a set are: its first row, and in order those over
// which it is spread. Rows of others may lie between.
func (e *Entity) LeafRange(root store.Key) store.Range {
	low, border := root.Sort.Text(), e.leafBorder()
	return store.Range{From: value.OfString(low), Below: value.OfString(low + border + "g")} // above every digit
}

func (e *Entity) leafBorder() string {
	t := e.leafTemplate()
	return t.parts[len(t.parts)-2].literal
}

// IsHex reports whether the text is of small hexadecimal digits.
func IsHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// keyTests are the tests of where on names in the primary key: no row that weir
// makes can break them, since rows that do are not made.
func (e *Entity) keyTests() []Test {
	var out []Test
	for _, t := range e.Where {
		if t.Field.Key != nil {
			out = append(out, t)
		}
	}
	return out
}

// Takes reports whether a row with this key can be one of the entity, as far as
// its where tests names in the key. Of a set it is the first row that is asked for:
// what looks like a row over which another set is spread is none.
func (e *Entity) Takes(k store.Key) bool {
	if e.SetOf() != nil {
		if _, path, ok := e.LeafPath(k); !ok || path != "" {
			return false
		}
	}
	return Holds(e.keyTests(), e.Table.Item(k))
}
