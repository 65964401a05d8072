package ingest

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// imageOf is the row as the application would have written it for a create, a put or an
// update. was is the existing row as the application wrote it, nil for none.
func (c *checked) imageOf(was value.Item) (value.Item, *Refusal) {
	start := was
	if c.Op != Update {
		start = was.Filter(c.isLeftByPut)
	}
	attrs := make([]value.Attr, 0, len(start)+len(c.stamps)+2+len(c.Attributes)+c.parts)
	attrs = append(append(attrs, start...), c.stamps...)
	for _, a := range c.Attributes {
		v, given := c.given.find(a.Name)
		if !given && c.Op != Update && !start.Has(a.Name) {
			v = c.unsaidValue(a, was)
		} else if !given {
			continue
		}
		if v.Kind() == value.Null {
			v = value.Value{} // remove it
		}
		attrs = append(attrs, value.Attr{Name: a.Name, Value: v})
	}
	all := was == nil || c.Op != Update
	for _, name := range c.only {
		if _, given := c.given.find(name); given || all {
			attrs = append(attrs, value.Attr{Name: name})
		}
	}
	attrs = append(attrs, c.spelledNames()...)
	row := value.NewItem(append(attrs, c.Table.Item(c.ref.Key)...)...)
	if c.Op != Update {
		row = c.ByOthers(row)
	}
	row = c.indexKeys(c.computeAttributes(row, all), all)
	return row, c.verifyRow(row)
}

// spelledNames returns the names that only the row's key holds and whose text in the key
// differs from the text given.
func (c *checked) spelledNames() []value.Attr {
	return c.Spelled(c.given.get, func(k *model.KeyTemplate, name string) string {
		return k.Template.Escape(value.Scalar(c.given.get(name)))
	})
}

// unsaidValue is the value of an attribute that a create or a put does not give: its
// default, or a generated value. A generated value stays once a row has it.
func (c *checked) unsaidValue(a *model.Attribute, was value.Item) value.Value {
	v, ok := c.fresh[a.Name]
	if !ok {
		return a.Default
	}
	if have := was.Get(a.Name); !have.IsMissing() {
		return have
	}
	return v
}

// computeAttributes makes the computed attributes: all of them, or only those whose sources are
// given.
func (c *checked) computeAttributes(row value.Item, all bool) value.Item {
	for _, a := range c.Attributes {
		if a.Computed != nil && (all || c.givesAny(a.Computed.Fields())) {
			row = row.With(value.Attr{Name: a.Name, Value: a.Computed.Value(row)})
		}
	}
	return row
}

// givesAny reports whether the command gives one of the fields, null included.
func (c *checked) givesAny(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := c.given.find(name); return ok })
}

// isLeftByPut reports whether a put leaves the attribute as it is. It does for attributes
// that no model declares, and for hidden ones that are not given, because no caller
// could have read them.
func (c *checked) isLeftByPut(name string) bool {
	if a := c.attrs[name]; a != nil {
		_, given := c.given.find(name)
		return a.Hidden && !given
	}
	return !c.isOwned(name)
}

// indexKeys makes the keys of the indexes: all of them, or only those that contain a
// given field. If one part of an index's key cannot be made, the row gets no part of
// it. indexKeys takes over the row's memory.
func (c *checked) indexKeys(row value.Item, all bool) value.Item {
	var room [8]value.Attr
	made, from := room[:0], 0
	get := func(k *model.KeyTemplate, name string) value.Value {
		v := c.fieldOf(row, name)
		for i := range from {
			if made[i].Name == name {
				v = c.typedValue(made[i].Value, name)
			}
		}
		if _, given := c.given.find(name); !given && slices.Contains(c.only, name) {
			return c.Field(name).InKey(row, k.Template)
		}
		if v.Kind() == value.String {
			v = value.OfString(k.Template.Escape(v.Text()))
		}
		return v
	}
	for _, templates := range c.indexes {
		whole, touched := true, all
		from = len(made)
		for _, k := range templates {
			v, ok := k.Build(func(name string) value.Value { return get(k, name) })
			made = append(made, value.Attr{Name: k.Attr.Name, Value: v})
			whole, touched = whole && ok, touched || c.isTouched(k)
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

// isTouched reports whether a field that the template uses is given. Fields that are part
// of the row's own key never change and do not count.
func (c *checked) isTouched(k *model.KeyTemplate) bool {
	return slices.ContainsFunc(k.Template.Names(), func(name string) bool {
		_, given := c.given.find(name)
		return given && !slices.Contains(c.named, name)
	})
}

// fieldOf is the value of one of the row's names.
func (c *checked) fieldOf(row value.Item, name string) value.Value {
	return c.typedValue(row.Get(name), name)
}

// typedValue is the value v that a row has for a name, or the value given if it has none.
func (c *checked) typedValue(v value.Value, name string) value.Value {
	if !v.IsMissing() {
		return v
	}
	if v, ok := c.given.find(name); ok && v.Kind() != value.Null {
		return v
	}
	return value.Value{}
}

// whyComputed is the reason for refusing a value that the model computes, with the value that it would
// have.
func whyComputed(v value.Value) string {
	if v.IsMissing() {
		return "is computed: leave it out"
	}
	return "is computed, and would be " + describeValue(v) + ": leave it out"
}

// verifyRow checks a finished row and reports its faults.
// It sees the whole row, with its former values, so problems that only both together have are
// found here.
func (c *checked) verifyRow(row value.Item) *Refusal {
	var r Refusal
	for _, a := range c.echo {
		if have := row.Get(a.Name); c.Hides(a.Name) || !value.Same(have, a.Value) { // a right guess of a hidden one would tell it
			if c.Hides(a.Name) {
				have = value.Value{}
			}
			r.addProblem(c.pointerTo(a.Name), whyComputed(have))
		}
	}
	for _, a := range c.Attributes {
		if a.Required && a.Hidden && c.Op != Update && !row.Has(a.Name) {
			r.addProblem(c.pointerTo(a.Name), "is required")
		}
	}
	for _, name := range c.only {
		if v, given := c.given.find(name); given && v.Kind() != value.Null && c.Field(name).Stored(row).IsMissing() {
			r.addProblem(c.pointerTo(name), "stands only in a key of index "+strings.Join(c.indexed[name], ", ")+", which needs a value for each of its names")
		}
	}
	if row.Size() > store.MaxSortBytes {
		c.checkKeyLengths(&r, row)
	}
	if len(r.Problems) == 0 && c.Table.Classify(row) != c.Entity {
		r.addProblem("", "does not make a row of "+c.Name)
	}
	if len(r.Problems) > 0 {
		return &r
	}
	return c.checkSize(row)
}
