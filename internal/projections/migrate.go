package projections

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Moved is a row that a migration makes from an old row.
type Moved struct {
	*model.Making
	Row   store.Ref
	Image value.Item // whole, except for the values that weir derives on it
}

// MoveRow returns the rows that a migration makes from one old row. If it makes none, reason
// says why; otherwise reason is "".
func MoveRow(m *model.Migration, old value.Item) (made []Moved, reason string) {
	for _, mk := range m.Makes {
		if m.OneOf && !model.Holds(mk.Where, old) {
			continue
		}
		row, reason := moveOne(mk, old)
		if reason != "" {
			return nil, reason
		}
		made = append(made, row)
	}
	if len(made) == 0 {
		return nil, "it passes the where of none of " + strings.Join(madeEntities(m), ", ")
	}
	return made, ""
}

// madeEntities names the entities that a migration makes, in the order of the file.
func madeEntities(m *model.Migration) (names []string) {
	return seq.Map(m.Makes, func(mk *model.Making) string { return mk.Into.Name })
}

// moveOne makes one new row from an old row. The string is the reason why it cannot, or "".
func moveOne(mk *model.Making, old value.Item) (Moved, string) {
	val := func(f *model.Assign) value.Value { return givenValue(mk, f, old) }
	p, ok := BuildRow(mk.Rule, val, RawOf(old))
	if !ok {
		return Moved{}, keyFault(mk, val)
	}
	if p.Unclear != "" {
		return Moved{}, p.Unclear
	}
	image := p.Image
	if !mk.InPlace {
		image = image.With(undeclaredAttributes(mk, old, image)...)
	}
	image = mk.Into.ByOthers(image)
	if mk.Into.Table.Classify(image) != mk.Into {
		return Moved{}, "what it makes is no row of " + mk.Into.Name
	}
	return Moved{mk, p.Row, image}, ""
}

// givenValue returns the value that an old row gives to a name of the new row, in the form in
// which the new rows hold it.
func givenValue(mk *model.Making, f *model.Assign, old value.Item) value.Value {
	v, a := EvaluateExpr(nil, &f.Expr, old), mk.Into.Attribute(f.Name)
	switch {
	case a == nil:
	case v.IsMissing() || v.Kind() == value.Null:
		return a.Default
	case a.Type == model.TypeFlag && v.Kind() == value.Bool:
		return value.OfString(value.Scalar(v))
	}
	return v
}

// keyFault returns the reason why a migration cannot make the key of a new row.
func keyFault(mk *model.Making, val func(*model.Assign) value.Value) string {
	for i := range mk.Rule.Fields {
		f := &mk.Rule.Fields[i]
		for _, k := range mk.Into.PrimaryKey() {
			if k.Template.Slot(f.Name) >= 0 && value.Scalar(val(f)) == "" {
				return fmt.Sprintf("the key of %s needs %s, and it has none", mk.Into.Name, f.Name)
			}
		}
	}
	return "it makes no key of " + mk.Into.Name
}

// undeclaredAttributes returns the attributes of an old row that no declaration names. The new row
// keeps them, except for those that are key attributes or that select an entity's rows.
func undeclaredAttributes(mk *model.Making, old, made value.Item) (out []value.Attr) {
	from, into := mk.Migration.From, mk.Into
	for _, a := range old {
		if made.Has(a.Name) || owntable.IsOurs(a.Name) || IsDerived(into, a.Name) || from.Attribute(a.Name) != nil ||
			isKey(from.Table, a.Name) || isKey(into.Table, a.Name) || testsAttribute(from.Where, a.Name) || testsAttribute(into.Where, a.Name) {
			continue
		}
		used := slices.ContainsFunc(mk.Rule.Fields, func(f model.Assign) bool {
			return f.Expr.Field != nil && f.Expr.Field.Key == nil && f.Expr.Field.Attr == a.Name
		})
		if !used {
			out = append(out, a)
		}
	}
	return out
}

// isKey reports whether an attribute is part of a key of the table or of one of its indexes.
func isKey(t *model.Table, attr string) bool {
	of := func(k *store.KeySchema) bool { return k.Partition.Name == attr || k.Sort.Name == attr }
	return of(&t.Key) || slices.ContainsFunc(t.Indexes, func(ix store.Index) bool { return of(&ix.Key) })
}

// testsAttribute reports whether one of the tests reads the attribute.
func testsAttribute(where []model.Test, attr string) bool {
	return slices.ContainsFunc(where, func(t model.Test) bool { return t.Field.Key == nil && t.Field.Attr == attr })
}

// LateAttributes returns the attributes of the old form that stand on a row which has replaced an
// old row in place. An application that knows only the old form has written them since.
func LateAttributes(mk *model.Making, row value.Item) value.Item {
	if !row.Has(owntable.Moved) {
		return nil
	}
	return row.Filter(func(name string) bool {
		return mk.Migration.From.Attribute(name) != nil && mk.Into.Attribute(name) == nil && !isKey(mk.Into.Table, name) && !testsAttribute(mk.Into.Where, name)
	})
}

// MoveLate returns the values that such late attributes have on another row that the
// migration makes.
func MoveLate(mk *model.Making, late value.Item) (out []value.Attr) {
	for i := range mk.Rule.Fields {
		f := &mk.Rule.Fields[i]
		if f.Expr.Field != nil && f.Expr.Field.Key == nil && late.Has(f.Expr.Field.Attr) && mk.Into.Attribute(f.Name) != nil {
			out = append(out, value.Attr{Name: f.Name, Value: givenValue(mk, f, late)})
		}
	}
	return out
}

// WrittenRow returns the row as the application wrote it, without bookkeeping and without
// the values that weir derives on it.
func WrittenRow(e *model.Entity, row value.Item) value.Item {
	return OwnRow(e, row).Filter(func(name string) bool { return !owntable.IsOurs(name) && !IsDerived(e, name) })
}

// isMigration reports whether a migration made this change: it made the row, or updated it
// after its old row. History records no such change, since nothing happened to the data.
func (c *Change) isMigration() bool {
	mark := c.New.Get(owntable.Moved)
	return !mark.IsMissing() && !value.Equal(mark, c.Old.Get(owntable.Moved))
}

// KeyMade returns the key of a row that a migration made from an old row. It reads the
// key from at, the row that replaced the old row in place.
func KeyMade(mk *model.Making, at value.Item) (store.Key, bool) {
	m := making{mk.Rule, func(f *model.Assign) value.Value { return EvaluateExpr(nil, &f.Expr, at) }, RawOf(at)}
	return mk.Into.Key(func(name string) value.Value { return m.keyPart(name, primaryKeyOf(mk.Into, name)) })
}

// WithKeys returns the row with the index keys that its fields make. The row gets no key
// attributes of an index whose key is incomplete.
func WithKeys(e *model.Entity, row value.Item) value.Item {
	for i := range e.Table.Indexes {
		attrs, whole := KeysOf(e, &e.Table.Indexes[i], row)
		if !whole {
			for j := range attrs {
				attrs[j].Value = value.Value{}
			}
		}
		row = row.With(attrs...)
	}
	return row
}

// KeysOf returns the key attributes of an index that templates make from a row. whole is
// false if a template lacks a value.
func KeysOf(e *model.Entity, ix *store.Index, row value.Item) (attrs []value.Attr, whole bool) {
	whole = true
	for _, ka := range [...]store.KeyAttr{ix.Key.Partition, ix.Key.Sort} {
		kt := e.KeyTemplate(ka.Name)
		if ka.Name == "" || kt == nil || slices.Contains(e.PrimaryKey(), kt) || e.Attribute(ka.Name) != nil || IsDerived(e, ka.Name) {
			continue
		}
		v, ok := kt.Build(func(name string) value.Value {
			f := e.Field(name)
			if v := f.Stored(row); f.Typed() && v.Kind() == value.String {
				return value.OfString(kt.Template.Escape(v.Text()))
			}
			return f.InKey(row, kt.Template)
		})
		attrs, whole = append(attrs, value.Attr{Name: ka.Name, Value: v}), whole && ok
	}
	return attrs, whole
}

// OldRow is an old row that a migration may have to move.
type OldRow struct {
	Migration *model.Migration
	Row       store.Ref
	// Was lists the new rows of earlier states of the row: those may have to go. Their images do not matter.
	Was []Moved
}

// OldRows returns the rows that migrations must check after a change. The row is or was
// an old row, or an application that knows only the old form wrote to a row that has
// replaced an old one. A migration's own changes ask for nothing.
func OldRows(c *Change) (out []OldRow) {
	ask := func(g *model.Migration) {
		r := OldRow{Migration: g, Row: c.Row}
		if c.Was == g.From && g.InPlace() == nil {
			r.Was, _ = MoveRow(g, c.Old)
		}
		out = append(out, r)
	}
	var asked []*model.Migration
	for _, e := range [...]*model.Entity{c.Is, c.Was} {
		if e == nil {
			continue
		}
		for _, g := range e.Migrations {
			if !slices.Contains(asked, g) && !isOwnMigration(g, c) {
				asked = append(asked, g)
				ask(g)
			}
		}
	}
	if c.Is != nil {
		for _, mk := range c.Is.Replaces {
			if len(LateAttributes(mk, c.New)) > 0 && !slices.Contains(asked, mk.Migration) {
				ask(mk.Migration)
			}
		}
	}
	return out
}

// isOwnMigration reports whether the migration itself made the change: it only marked the row,
// or replaced it.
func isOwnMigration(g *model.Migration, c *Change) bool {
	mark := c.New.Get(owntable.Moved).Text()
	if p := g.InPlace(); p != nil {
		return c.Is == p.Into && mark != "" && len(LateAttributes(p, c.New)) == 0
	}
	return c.Is == g.From && mark != "" && c.Was == g.From && WrittenState(g.From, c.Old) == WrittenState(g.From, c.New)
}

// WrittenState returns a name for the attributes that the application wrote to a row. Two states that
// differ in anything that the application writes have different names.
func WrittenState(e *model.Entity, row value.Item) string {
	return owntable.Hash(string(value.AppendItem(nil, WrittenRow(e, row))))
}
