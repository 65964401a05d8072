package ingest

import (
	"slices"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// image is the row as the application would have written it, by a create, a put or
// an update; was is the row there, as the application wrote it, nil for none.
func (c *checked) image(was value.Item) (value.Item, *Refusal) {
	start := was
	if c.Op != Update {
		start = was.Filter(c.stays)
	}
	attrs := make([]value.Attr, 0, len(start)+len(c.stamps)+2+len(c.Attributes)+c.parts)
	attrs = append(append(attrs, start...), c.stamps...)
	attrs = append(attrs, value.Attr{Name: c.Table.Key.Partition.Name, Value: c.ref.Key.Partition})
	if c.Table.Key.Sort.Name != "" {
		attrs = append(attrs, value.Attr{Name: c.Table.Key.Sort.Name, Value: c.ref.Key.Sort})
	}
	for _, a := range c.Attributes {
		v, given := c.given.find(a.Name)
		if !given && c.Op != Update && !start.Has(a.Name) {
			v = c.unsaid(a, was)
		} else if !given {
			continue
		}
		if v.Kind() == value.Null {
			v = value.Value{} // it goes
		}
		attrs = append(attrs, value.Attr{Name: a.Name, Value: v})
	}
	all := was == nil || c.Op != Update
	attrs = append(attrs, c.spelled()...)
	row := value.NewItem(attrs...)
	if c.Op != Update {
		row = c.ByOthers(row)
	}
	row = c.indexKeys(c.compute(row, all), all)
	return row, c.verify(row)
}

// spelled are the names that only the row's key holds, where it has them otherwise
// than they were given.
func (c *checked) spelled() []value.Attr {
	return c.Spelled(c.given.get, func(k *model.KeyTemplate, name string) string {
		return k.Template.Escape(value.Scalar(c.given.get(name)))
	})
}

// unsaid is an attribute that a create or a put says nothing of: what a new row
// gets, which then stays, or its default.
func (c *checked) unsaid(a *model.Attribute, was value.Item) value.Value {
	v, ok := c.fresh[a.Name]
	if !ok {
		return a.Default
	}
	if have := was.Get(a.Name); !have.IsMissing() {
		return have
	}
	return v
}

// compute makes the attributes that are made from others, all of them or those
// whose sources are given.
func (c *checked) compute(row value.Item, all bool) value.Item {
	for _, a := range c.Attributes {
		if a.Computed != nil && (all || c.givesAny(a.Computed.Fields())) {
			row = row.With(value.Attr{Name: a.Name, Value: a.Computed.Value(row)})
		}
	}
	return row
}

func (c *checked) givesAny(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := c.given.find(name); return ok })
}

// stays says what a put leaves as it is: attributes that no model declares, and
// those that it does not give and nobody could have read.
func (c *checked) stays(name string) bool {
	if a := c.attrs[name]; a != nil {
		_, given := c.given.find(name)
		return a.Hidden && !given
	}
	return !c.owns(name)
}

// indexKeys makes the keys of the indexes, all of them or those that the fields
// given are in. Of an index whose key cannot be made whole, none. The row's memory is
// taken over.
func (c *checked) indexKeys(row value.Item, all bool) value.Item {
	var room [8]value.Attr
	made, from := room[:0], 0
	get := func(name string) value.Value {
		for i := range from {
			if made[i].Name == name {
				return c.typed(made[i].Value, name)
			}
		}
		return c.field(row, name)
	}
	for _, templates := range c.indexes {
		whole, touched := true, all
		from = len(made)
		for _, k := range templates {
			v, ok := k.BuildTyped(get)
			made = append(made, value.Attr{Name: k.Attr.Name, Value: v})
			whole, touched = whole && ok, touched || c.touches(k)
		}
		if !touched {
			made = made[:from]
		}
		for i := from; i < len(made) && !whole; i++ {
			made[i].Value = value.Value{}
		}
	}
	if len(made) == 0 {
		return row
	}
	return value.NewItem(append(row, made...)...)
}

func (c *checked) touches(k *model.KeyTemplate) bool {
	return slices.ContainsFunc(k.Template.Names(), func(name string) bool {
		_, given := c.given.find(name)
		return given && !slices.Contains(c.named, name)
	})
}

// field is the value of a name of the row, as a person typed it.
func (c *checked) field(row value.Item, name string) value.Value {
	return c.typed(row.Get(name), name)
}

// typed is the value that a row has of a name, else the one that was given for it.
func (c *checked) typed(v value.Value, name string) value.Value {
	if !v.IsMissing() {
		return v
	}
	if v, ok := c.given.find(name); ok && v.Kind() != value.Null {
		return v
	}
	return value.Value{}
}

func computed(v value.Value) string {
	if v.IsMissing() {
		return "is computed: leave it out"
	}
	return "is computed, and would be " + describe(v) + ": leave it out"
}

// verify says what is wrong with a row that is otherwise made.
func (c *checked) verify(row value.Item) *Refusal {
	var r Refusal
	for _, a := range c.echo {
		if have := row.Get(a.Name); !model.SameScalar(have, a.Value) {
			r.Problems = append(r.Problems, Problem{c.pointer(a.Name), computed(have)})
		}
	}
	for _, a := range c.Attributes {
		if a.Required && a.Hidden && c.Op != Update && !row.Has(a.Name) {
			r.Problems = append(r.Problems, Problem{c.pointer(a.Name), "is required"})
		}
	}
	if row.Size() > store.MaxSortBytes {
		c.long(&r, row)
	}
	if len(r.Problems) == 0 && c.Table.Classify(row) != c.Entity {
		r.Problems = append(r.Problems, Problem{"", "does not make a row of " + c.Name})
	}
	if len(r.Problems) > 0 {
		return &Refusal{Invalid, r.Problems}
	}
	return c.heavy(row)
}
