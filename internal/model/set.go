package model

import (
	"strings"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Leaf is the name in the optional tail of a set's sort key. Its value distinguishes the
// rows over which a long set is spread.
const Leaf = "leaf"

// markSpread marks the entity as one whose rows weir makes to hold a set.
func (c *compiler) markSpread(e *Entity) {
	e.Derived = true
	for _, k := range e.PrimaryKey() {
		k.Template.set = true
	}
}

// SetOf returns the set that rows of this entity hold, nil for none.
func (e *Entity) SetOf() *Tally {
	if len(e.Values) == 1 && e.Values[0].IsSet() {
		return e.Values[0]
	}
	return nil
}

// leafTemplate returns the sort key template of a set's rows, nil if it has no tail for Leaf.
// The optional tail holds the path of a leaf, and is absent in the root, so a short set has the key
// that the model describes.
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

// LeafKey returns the key of one row of the set whose first row has the key root. path is in
// hexadecimal digits, "" for the first row itself.
func (e *Entity) LeafKey(root store.Key, path string) store.Key {
	if path == "" {
		return root
	}
	return store.Key{Partition: root.Partition, Sort: value.OfString(root.Sort.Text() + e.leafBorder() + path)}
}

// LeafPath splits the key of a row of a set into the key of the set's first row and the
// row's path. ok is false if the key is not that of such a row.
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
	return root, path, isHex(path)
}

// LeafRange returns the range of sort keys that holds all rows of a set: its first row, and
// in order the rows over which it is spread. Rows of other entities may lie in between.
func (e *Entity) LeafRange(root store.Key) store.Range {
	low, border := root.Sort.Text(), e.leafBorder()
	return store.Range{From: value.OfString(low), Below: value.OfString(low + border + "g")} // above every digit
}

// leafBorder is the text between a set's own sort key and the path of a leaf, such as "#".
func (e *Entity) leafBorder() string {
	t := e.leafTemplate()
	return t.parts[len(t.parts)-2].literal
}

// isHex reports whether the text consists of lower-case hexadecimal digits.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// keyTests returns the tests of the entity's where on names in the primary key. Every row
// that weir makes passes them, because weir makes no others.
func (e *Entity) keyTests() []Test {
	return seq.Where(e.Where, func(t Test) bool { return t.Field.Key != nil })
}

// Takes reports whether a row with this key can belong to the entity, as far as its where
// tests names in the key. For a set, the key must be that of a first row, not of a row over
// which another set is spread.
func (e *Entity) Takes(k store.Key) bool {
	if e.SetOf() != nil {
		if _, path, ok := e.LeafPath(k); !ok || path != "" {
			return false
		}
	}
	return Holds(e.keyTests(), e.Table.Item(k))
}

// checkSets reports a set that cannot work. Its rows must belong to weir alone, be adjacent
// in one partition, and not be confusable with other rows.
func checkSets(c *compiler, t *Tally) {
	e, at := t.Target, t.decl.name.pos
	if !t.IsSet() || c.broken[e] {
		return
	}
	c.setAlone(t, at)
	if e.leafTemplate() == nil {
		c.addFlaw(at, "end its sort key with [#{"+Leaf+"}]", "a long set is spread over rows, and the key of %s has no place for their names", e.Name)
		return
	}
	if k := e.PrimaryKey()[0].Template; k.Slot(Leaf) >= 0 {
		c.addFlaw(at, "", "{%s} belongs into the sort key of %s alone", Leaf, e.Name)
	}
	c.setNames(t, at)
	for _, o := range e.Table.Entities {
		if o != e && !c.broken[o] && !c.anyReported(o, e) && keyCases(e, o, anyTexts) {
			c.addFlaw(at, "give the key of "+e.Name+" a prefix of its own", "%s can make the key of a row of %s, and would overwrite it", t.Name, o.Name)
		}
	}
}

// setAlone reports an entity whose rows hold a set and something else.
// A row of a set may be split into others at any time, so nothing else can be in it, and its number
// of rows means nothing.
func (c *compiler) setAlone(t *Tally, at pos) {
	e := t.Target
	switch {
	case len(e.Values) > 1:
		c.addFlaw(at, "derive it onto an entity of its own", "%s holds a set, and rows of a set carry no other value", e.Name)
	case len(e.MadeBy) > 0:
		c.addFlaw(at, "derive the set onto an entity of its own", "rows of %s are made by %s too", e.Name, e.MadeBy[0].Name)
	case len(e.Attributes) > 0:
		c.addFlaw(at, "leave the attributes of "+e.Name+" out", "a row of a set has its key and %s, nothing else", t.Attr)
	case len(e.Sources)+len(e.Rules)+len(e.Follow)+len(e.Follows)+len(e.Search)+len(e.Subscribes) > 0:
		c.addFlaw(at, "derive from the rows that the set is made of", "nothing can be derived from rows of %s: how many there are says nothing", e.Name)
	}
}

// setNames reports a name in the sort key that is not limited to listed values. Only then no
// value can be confused with another value followed by the path of a row.
func (c *compiler) setNames(t *Tally, at pos) {
	e := t.Target
	tmpl := e.leafTemplate()
	for _, name := range tmpl.Names()[:len(tmpl.names)-1] {
		if len(e.listedValues(name)) == 0 {
			c.addFlaw(at, "where: {"+name+": [VALUES]}, or put it into the partition key", "{%s} in the sort key of %s could be anything, also what ends like the name of a row of the set", name, e.Name)
		}
	}
	var keys []string
	for _, fixed := range listFixings(e, maxCases) {
		if key, ok := tmpl.Build(func(name string) string { return fixed[name] }); ok {
			keys = append(keys, key)
		}
	}
	for _, a := range keys {
		for _, b := range keys {
			if strings.HasPrefix(b, a+e.leafBorder()) {
				c.addFlaw(at, "", "the sort key %s of %s looks like a row of the set %s", b, e.Name, a)
			}
		}
	}
}

// listedValues returns the values to which the entity's where limits a name in the key, none if
// it sets no limit.
func (e *Entity) listedValues(name string) []value.Value {
	t := seq.Find(e.keyTests(), func(t Test) bool { return t.Field.Name == name })
	return t.Listed()
}

// listFixings returns the combinations of values that an entity's where allows for the names of
// its key. It leaves out a name with which there were more than most.
func listFixings(e *Entity, most int) []map[string]string {
	out := []map[string]string{{}}
	for _, t := range e.keyTests() {
		listed := t.Listed()
		if len(listed) == 0 || len(out)*len(listed) > most {
			continue
		}
		var more []map[string]string
		for _, m := range out {
			for _, v := range listed {
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

// maxFixings limits the combinations of values that are told apart. Beyond it a name counts as
// unlimited, which can only make a check stricter. maxCases is more than a file lists.
const maxFixings, maxCases = 64, MaxFileBytes
