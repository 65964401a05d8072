package model

import (
	"slices"

	"weir/internal/seq"
	"weir/internal/store"
)

// compileMigrations compiles the migrations. Call it once all entities are known. A table
// that is only migrated from gets one entity for all its rows, which has no name in the
// file.
func (c *compiler) compileMigrations() {
	for _, d := range c.decl.Migrate {
		m := &Migration{Name: d.name.text, OneOf: d.Into.one, decl: d}
		if m.From = c.oldRows(d); m.From == nil {
			continue
		}
		for _, mk := range d.Into.rules {
			if into := c.findEntity(mk.name); into != nil && !c.broken[into] && !c.broken[m.From] {
				c.compileMaking(m, into, mk)
			}
		}
		c.Migrations = append(c.Migrations, m)
		m.From.Migrations = append(m.From.Migrations, m)
		if p := m.InPlace(); p != nil {
			p.Into.Replaces = append(p.Into.Replaces, p)
		}
	}
}

// oldRows returns the entity that a migration reads: one of the model, or one that stands for
// the rows of a table that the model does not have. The latter may have any attribute.
func (c *compiler) oldRows(d *migrationDecl) *Entity {
	if !d.Table.isGiven() {
		return c.findEntity(d.Rows)
	}
	t := &Table{Table: store.Table{Name: d.Table.text, Key: c.compileSchema(d.Key, map[string]store.KeyType{}), Stream: true}, Images: store.NewAndOldImages}
	if len(d.Key.parts) == 0 {
		return nil
	}
	e := &Entity{Name: t.Name, Table: t, open: true}
	e.Keys = seq.Map(t.KeyAttrs(), func(a store.KeyAttr) *KeyTemplate { return &KeyTemplate{Attr: a, Template: singleName(a.Name)} })
	t.Entities = []*Entity{e}
	c.Old = append(c.Old, t)
	return e
}

// compileMaking compiles how an old row becomes a row of the entity. Attributes and key names that
// the file does not set take their values from the old row's fields of the same names.
// A default of the new attribute is used where neither the file nor the old row gives a value.
func (c *compiler) compileMaking(m *Migration, into *Entity, d *rowDecl) {
	mk := &Making{Migration: m, Into: into, Rule: &RowRule{Name: m.Name, Source: m.From, Into: into, decl: d}}
	if m.OneOf {
		for _, t := range into.Where {
			if !into.Hides(t.Field.Name) {
				c.checkHidden(m.From, word{t.Field.Name, d.name.pos})
			}
			t.Field = m.From.Field(t.Field.Name)
			mk.Where = append(mk.Where, t)
		}
	}
	before := c.flaws
	for _, p := range d.Set {
		if !c.refuseUnknown(p.name, c.settableNames(into), "%s has no attribute and no key name %q", into.Name, p.name.text) {
			mk.Rule.Fields = append(mk.Rule.Fields, Assign{p.name.text, c.fromOld(m.From, p.value, into, p.name.text)})
		}
	}
	for _, name := range append(into.attributeNames(), into.KeyNames()...) {
		if c.setsName(mk.Rule, name) {
			continue
		}
		if m.From.open || c.hasField(m.From, name) {
			f := m.From.Field(name)
			if !m.From.open {
				f = c.fieldFor(m.From, word{name, d.name.pos}, into.Hides(name))
			}
			mk.Rule.Fields = append(mk.Rule.Fields, Assign{name, Expr{Field: f}})
		} else if a := into.Attribute(name); a != nil && !a.Default.IsMissing() {
			mk.Rule.Fields = append(mk.Rule.Fields, Assign{name, Expr{Const: a.Default}})
		}
	}
	for _, name := range into.IndexNames() {
		c.addFlaw(d.name.pos, "attributes: {"+name+": string}", "%s stands only in the key of an index of %s, and a migration makes such keys of attributes", name, into.Name)
	}
	for i := range mk.Rule.Fields {
		if a := &mk.Rule.Fields[i]; a.Expr.Field != nil && a.Expr.Field.Formula != nil {
			c.addFlaw(d.name.pos, "name an attribute that old rows have", "a migration moves what old rows have, and %s.%s is computed when it is read", m.From.Name, a.Expr.Field.Name)
		}
	}
	if c.flaws == before {
		mk.InPlace = sameKeyOf(mk.Rule)
		m.Makes = append(m.Makes, mk)
	}
}

// fromOld is expr over old rows. Rows of an entity without declarations may have any
// attribute.
func (c *compiler) fromOld(from *Entity, w word, into *Entity, name string) Expr {
	if from.open && w.isGiven() && w.text[0] != '=' {
		return Expr{Field: from.Field(w.text)}
	}
	return c.compileExpr(from, w, into, name)
}

// assignsName reports whether the rule gives the name a value.
func (r *RowRule) assignsName(name string) bool {
	return slices.ContainsFunc(r.Fields, func(a Assign) bool { return a.Name == name })
}

// sameKeyOf reports whether a rule makes a row at its source row's own key.
func sameKeyOf(r *RowRule) bool {
	if r.Source.Table != r.Into.Table {
		return false
	}
	for i, k := range r.Into.PrimaryKey() {
		if k.Template.String() != r.Source.PrimaryKey()[i].Template.String() {
			return false
		}
		for _, name := range k.Template.Names() {
			from := slices.IndexFunc(r.Fields, func(a Assign) bool { return a.Name == name })
			if from < 0 || r.Fields[from].Expr.Field == nil || r.Fields[from].Expr.Field.Name != name {
				return false
			}
		}
	}
	return true
}
