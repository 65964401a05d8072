package model

import (
	"slices"
	"strings"

	"weir/internal/value"
)

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
			ends = names(e.listed(t.names[p.slot]), Scalar)
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
				one := map[string]string{t.Field.Name: Scalar(v)}
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
