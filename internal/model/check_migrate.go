package model

import (
	"slices"
	"strings"

	"weir/internal/condition"
)

// checkOldTables reports a bad name of a table that is only migrated from: it must be valid,
// and neither weir's own nor one of the model's.
// A table from which rows are only migrated has no entities in the file, so nothing may be derived
// from it.
func checkOldTables(c *compiler) {
	for i, d := range c.decl.Migrate {
		if !d.Table.given() {
			continue
		}
		twice := slices.ContainsFunc(c.decl.Migrate[:i], func(o *migrationDecl) bool { return o.Table.text == d.Table.text })
		switch name := d.Table.text; {
		case name == "weir":
			c.report(d.Table.pos, "", "the table weir is weir's own: it keeps its ledgers there")
		case !tableName.MatchString(name):
			c.report(d.Table.pos, "", "a table's name has 3 to 255 letters, digits, dots, hyphens and underscores, not %.60q", name)
		case twice:
			c.report(d.Table.pos, "name all that its rows become in one migration", "another migration is from the table %s already", name)
		case slices.ContainsFunc(c.Tables, func(t *Table) bool { return t.Name == name }):
			c.report(d.Table.pos, "rows: ENTITY", "%s is a table of the model: name the entity that its old rows are", name)
		}
	}
}

// checkMigrations reports a migration that cannot work. It must make complete rows of an
// entity that the application writes, and an old row must not fit two of them.
// Both images are needed: a deletion of an old row is known by its old image alone.
func checkMigrations(c *compiler, m *Migration) {
	d := m.decl
	if m.From.Derived {
		c.report(d.Rows.pos, "", "weir makes rows of %s by itself: change the rule, and they follow", m.From.Name)
	}
	if !m.From.Table.OldImage {
		c.report(d.name.pos, "leave stream out: it has new and old images then", "%s needs both images of old rows, and the stream of table %s has not", m.Name, m.From.Table.Name)
	}
	for i, mk := range m.Makes {
		at := mk.decl.entity.pos
		switch {
		case mk.Into == m.From:
			c.report(at, "", "rows of %s would become what they are", m.From.Name)
			continue
		case mk.Into.Derived:
			c.report(at, "", "weir makes rows of %s by itself; a migration makes rows that are the application's", mk.Into.Name)
			continue
		}
		c.makingWhole(mk)
		c.fittingTypes(mk.Rule, func(name string) pos { return c.makingPos(mk, name) })
		c.makingStamps(mk)
		for _, o := range m.Makes[:i] {
			if m.OneOf && !exclude(o.Where, mk.Where) {
				c.report(at, "give both a where that no row passes twice", "an old row could become %s and %s", o.Into.Name, mk.Into.Name)
			}
		}
	}
}

// makingWhole reports key names and required attributes that the new row would lack.
func (c *compiler) makingWhole(mk *Making) {
	at, from := mk.decl.entity.pos, mk.Migration.From
	hint := func(name string) string {
		return mk.Into.Name + ": {" + name + ": FIELD}; " + from.Name + " has " + strings.Join(c.fieldNames(from), ", ")
	}
	missing := mk.Into.KeyNames()
	for _, a := range mk.Into.Attributes {
		if a.Required && a.Default.IsMissing() && !slices.Contains(missing, a.Name) {
			missing = append(missing, a.Name)
		}
	}
	for _, name := range missing {
		if !mk.Rule.assigns(name) && mk.Into.fixed()[name] == "" {
			c.report(at, hint(name), "%s needs %q, and %s has no field of that name", mk.Into.Name, name, from.Name)
		}
	}
}

// makingStamps reports a value that the new entity's where writes already, and a where that
// allows several values, so that it is unknown which one to write.
func (c *compiler) makingStamps(mk *Making) {
	for _, t := range mk.Into.Where {
		if mk.Rule.assigns(t.Field.Name) && mk.Into.fixed()[t.Field.Name] != "" {
			c.report(c.makingPos(mk, t.Field.Name), "leave it out", "%q is stamped twice: the where of %s writes it already", t.Field.Name, mk.Into.Name)
		}
		if len(t.Is) == 1 && t.Is[0].Op == condition.Exists {
			continue // an old row without it becomes no such row; that is reported row by row
		}
		if _, ok := t.Only(); !ok {
			c.report(mk.decl.entity.pos, "", "it cannot be said what %q is in a new row of %s: its where allows more than one value", t.Field.Name, mk.Into.Name)
		}
	}
}

// makingPos returns the place where the file gives a name its value, or else where it names
// the entity.
func (c *compiler) makingPos(mk *Making, name string) pos {
	return placeOf(mk.decl.set, name, mk.decl.entity.pos)
}

// checkMigrationLoops reports migrations that would turn a row back into what it was.
// It stops at the first loop, since the others are mostly the same one.
func checkMigrationLoops(c *compiler) {
	for _, m := range c.Migrations {
		seen := map[*Entity]bool{}
		todo := []*Entity{m.From}
		for len(todo) > 0 {
			e := todo[0]
			todo = todo[1:]
			for _, next := range e.Migrations {
				for _, mk := range next.Makes {
					if mk.Into == m.From && m.From != e {
						c.report(m.decl.name.pos, "one of the migrations has to go", "a loop: rows of %s become rows of %s again", m.From.Name, m.From.Name)
						return
					}
					if !seen[mk.Into] {
						seen[mk.Into] = true
						todo = append(todo, mk.Into)
					}
				}
			}
		}
	}
}
