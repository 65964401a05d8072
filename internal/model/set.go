package model

import (
	"slices"
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

// checkSets: the rows of a set are weir's alone, and stand side by side in one
// partition, where nothing else can be taken for one of them.
func checkSets(c *compiler) {
	for _, t := range c.Tallies {
		e, at := t.Target, c.tallies[t].name.pos
		if !t.IsSet() || c.broken[e] {
			continue
		}
		c.setAlone(t, at)
		if e.leafTemplate() == nil {
			c.report(at, "end its sort key with [#{"+Leaf+"}]", "a long set is spread over rows, and the key of %s has no place for their names", e.Name)
			continue
		}
		if k := e.PrimaryKey()[0].Template; k.Slot(Leaf) >= 0 {
			c.report(at, "", "{%s} belongs into the sort key of %s alone", Leaf, e.Name)
		}
		c.setNames(t, at)
		for _, o := range e.Table.Entities {
			if o != e && !c.broken[o] && !c.both(o, e) && keyCases(e, o) {
				c.report(at, "give the key of "+e.Name+" a prefix of its own", "%s can make the key of a row of %s, and would overwrite it", t.Name, o.Name)
			}
		}
	}
}

// setAlone: a row of a set holds a part of it and nothing else.
func (c *compiler) setAlone(t *Tally, at pos) {
	e := t.Target
	switch {
	case len(e.Values) > 1:
		c.report(at, "derive it onto an entity of its own", "%s holds a set, and rows of a set carry no other value", e.Name)
	case len(e.MadeBy) > 0:
		c.report(at, "derive the set onto an entity of its own", "rows of %s are made by %s too", e.Name, e.MadeBy[0].Name)
	case len(e.Attributes) > 0:
		c.report(at, "leave the attributes of "+e.Name+" out", "a row of a set has its key and %s, nothing else", t.Attr)
	case len(e.Sources)+len(e.Rules)+len(e.Follow)+len(e.Search)+len(e.Told) > 0:
		c.report(at, "derive from the rows that the set is made of", "nothing can be derived from rows of %s: how many there are says nothing", e.Name)
	}
}

// setNames: a name in the sort key has one of a few values, so that no value can
// be taken for another one and the name of a row.
func (c *compiler) setNames(t *Tally, at pos) {
	e := t.Target
	tmpl := e.leafTemplate()
	for _, name := range tmpl.Names()[:len(tmpl.names)-1] {
		if len(e.listed(name)) == 0 {
			c.report(at, "where: {"+name+": [VALUES]}, or put it into the partition key", "{%s} in the sort key of %s could be anything, also what ends like the name of a row of the set", name, e.Name)
		}
	}
	keys := tmpl.cases(e)
	for _, a := range keys {
		for _, b := range keys {
			if strings.HasPrefix(b, a+e.leafBorder()) {
				c.report(at, "", "the sort key %s of %s looks like a row of the set %s", b, e.Name, a)
			}
		}
	}
}

// listed are the values that where leaves a name in the key, none for no limit.
func (e *Entity) listed(name string) []value.Value {
	for _, t := range e.keyTests() {
		if t.Field.Name == name && !t.Not {
			return t.OneOf
		}
	}
	return nil
}

// cases are the keys that the template makes of the values that where lists.
func (t *Template) cases(e *Entity) []string {
	out := []string{""}
	for _, p := range t.parts[:t.tail] {
		ends := []string{p.literal}
		if p.slot >= 0 {
			ends = names(e.listed(t.names[p.slot]), value.Scalar)
		}
		var longer []string
		for _, s := range out {
			for _, end := range ends {
				longer = append(longer, s+end)
			}
		}
		out = longer
	}
	return out
}

// keyCases reports whether rows of the two entities can have the same key, given
// what their wheres say of names in it.
func keyCases(a, b *Entity) bool {
	return slices.ContainsFunc(fixings(a), func(fa map[string]string) bool {
		return slices.ContainsFunc(fixings(b), func(fb map[string]string) bool { return sameKey(a, b, fa, fb) })
	})
}

// fixings are the combinations of values that an entity's where leaves the names
// of its key.
func fixings(e *Entity) []map[string]string {
	out := []map[string]string{{}}
	for _, t := range e.keyTests() {
		if t.Not || len(t.OneOf) == 0 || len(out)*len(t.OneOf) > maxFixings {
			continue
		}
		var more []map[string]string
		for _, m := range out {
			for _, v := range t.OneOf {
				one := map[string]string{t.Field.Name: value.Scalar(v)}
				for k, s := range m {
					one[k] = s
				}
				more = append(more, one)
			}
		}
		out = more
	}
	return out
}

// maxFixings bounds the combinations that are looked at; beyond it a name counts
// as free, which refuses more and accepts nothing wrong.
const maxFixings = 64
