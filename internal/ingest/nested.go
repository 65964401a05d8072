package ingest

import "weir/internal/value"

// flat is the item with the members of nested objects under the names of their
// attributes. It notes where they were given, so that problems point there.
func (c *checked) flat(it value.Item, r *Refusal) value.Item {
	if len(c.Nested) == 0 {
		return it
	}
	c.at = map[string]string{}
	var out []value.Attr
	for _, a := range it {
		prefix := c.nested(a.Name)
		switch {
		case prefix == "":
			out = append(out, a)
			continue
		case a.Value.Kind() != value.Map:
			r.add(Pointer(a.Name), "must be an object, not "+describe(a.Value))
			continue
		}
		for _, m := range a.Value.Item() {
			name := prefix + "." + m.Name
			if c.at[name] = Pointer(a.Name, m.Name); it.Has(name) {
				r.add(c.at[name], "is given twice: as "+name+" too")
				continue
			}
			out = append(out, value.Attr{Name: name, Value: m.Value})
		}
	}
	return value.NewItem(out...)
}

// nested is the prefix that a member of a request stands for, "" if it is none of the flattened
// ones.
func (f *form) nested(member string) (prefix string) {
	for _, n := range f.Nested {
		if n.Member == member {
			return n.Prefix
		}
	}
	return ""
}
