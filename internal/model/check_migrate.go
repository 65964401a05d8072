package model

import (
	"slices"

	"weir/internal/store"
	"weir/internal/value"
)

// checkOldTables reports a table that is only migrated from, if it is one of the model's or of another migration too.
// A table from which rows are only migrated has no entities in the file, so nothing may be derived
// from it.
func checkOldTables(c *compiler) {
	for i, d := range c.decl.Migrate {
		if !d.Table.isGiven() {
			continue
		}
		twice := slices.ContainsFunc(c.decl.Migrate[:i], func(o *migrationDecl) bool { return o.Table.text == d.Table.text })
		switch name := d.Table.text; {
		case twice:
			c.addFlaw(d.Table.pos, "name all that its rows become in one migration", "another migration is from the table %s already", name)
		case slices.ContainsFunc(c.Tables, func(t *Table) bool { return t.Name == name }):
			c.addFlaw(d.Table.pos, "rows: ENTITY", "%s is a table of the model: name the entity that its old rows are", name)
		}
	}
}

// checkMigrations reports a migration that cannot work. It must make complete rows of an
// entity that the application writes, and an old row must not fit two of them.
// Both images are needed: a deletion of an old row is known by its old image alone.
func checkMigrations(c *compiler, m *Migration) {
	d := m.decl
	if m.From.Derived {
		c.addFlaw(d.Rows.pos, "", "weir makes rows of %s by itself: change the rule, and they follow", m.From.Name)
	}
	if m.From.Table.Images != store.NewAndOldImages {
		c.addFlaw(d.name.pos, "leave stream out: it has new and old images then", "%s needs both images of old rows, and the stream of table %s has not", m.Name, m.From.Table.Name)
	}
	for i, mk := range m.Makes {
		at := mk.Rule.decl.name.pos
		switch {
		case mk.Into == m.From:
			c.addFlaw(at, "", "rows of %s would become what they are", m.From.Name)
			continue
		case mk.Into.Derived:
			c.addFlaw(at, "", "weir makes rows of %s by itself; a migration makes rows that are the application's", mk.Into.Name)
			continue
		}
		eachOf(c, []*RowRule{mk.Rule}, checkRowWhole, checkRowTypes, checkStamps)
		c.makingStamps(mk)
		for _, o := range m.Makes[:i] {
			if m.OneOf && !testsExclude(o.Where, mk.Where) {
				c.addFlaw(at, "give both a where that no row passes twice", "an old row could become %s and %s", o.Into.Name, mk.Into.Name)
			}
		}
	}
}

// makingStamps reports a where that allows several values, so that it is unknown which one to write.
func (c *compiler) makingStamps(mk *Making) {
	for _, t := range mk.Into.Where {
		if len(t.Is) == 1 && t.Is[0].Op == value.Exists {
			continue // an old row without it becomes no such row; that is reported row by row
		}
		if _, ok := t.Only(); !ok {
			c.addFlaw(mk.Rule.decl.name.pos, "", "it cannot be said what %q is in a new row of %s: its where allows more than one value", t.Field.Name, mk.Into.Name)
		}
	}
}

// checkMigrationLoops reports migrations that would turn a row back into its old form.
// It stops at the first loop, since the others are mostly the same one.
func checkMigrationLoops(c *compiler) {
	becomes := map[*Entity][]*Entity{}
	for _, m := range c.Migrations {
		for _, mk := range m.Makes {
			if mk.Into != m.From { // checkMigrations
				becomes[m.From] = append(becomes[m.From], mk.Into)
			}
		}
	}
	for _, m := range c.Migrations {
		if shortestLoop(becomes, m.From) != nil {
			c.addFlaw(m.decl.name.pos, "one of the migrations has to go", "a loop: rows of %s become rows of %s again", m.From.Name, m.From.Name)
			return
		}
	}
}
