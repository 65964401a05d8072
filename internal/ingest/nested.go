package ingest

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/value"
)

// flattenItem is the item with the members of nested objects under the names of their
// attributes. It notes where they were given, so that problems point there.
func (c *checked) flattenItem(it value.Item, r *Refusal) value.Item {
	if len(c.Nested) == 0 {
		return it
	}
	c.at = map[string]string{}
	var out []value.Attr
	for _, a := range it {
		prefix := c.nestedPrefix(a.Name)
		switch {
		case prefix == "":
			out = append(out, a)
			continue
		case a.Value.Kind() != value.Map:
			r.addProblem(Pointer(a.Name), c.noObject(prefix, a.Value))
			continue
		}
		for _, m := range a.Value.Item() {
			name := prefix + "." + m.Name
			if c.at[name] = Pointer(a.Name, m.Name); it.Has(name) {
				r.addProblem(c.at[name], "is given twice: as "+name+" too")
				continue
			}
			out = append(out, value.Attr{Name: name, Value: m.Value})
		}
	}
	return value.NewItem(out...)
}

// noObject is the reason for refusing a value in place of an object, which quotes it unless a member is hidden.
func (c *checked) noObject(prefix string, v value.Value) string {
	if slices.ContainsFunc(c.Attributes, func(a *model.Attribute) bool { return a.Hidden && strings.HasPrefix(a.Name, prefix+".") }) {
		v = value.OfString(model.HiddenText)
	}
	return reasonUnless(false, v, "must be an object")
}

// nestedPrefix is the prefix that a member of a request stands for, "" if it is none of the flattened
// ones.
func (f *form) nestedPrefix(member string) (prefix string) {
	for _, n := range f.Nested {
		if n.Member == member {
			return n.Prefix
		}
	}
	return ""
}
