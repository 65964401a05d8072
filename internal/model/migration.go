package model

import "weir/internal/seq"

// Migration turns rows of an older form into rows of the model, while applications go on
// writing both. An old row becomes one row of each entity in Makes. With OneOf it becomes a
// row of only that entity whose Where it passes.
type Migration struct {
	Name  string
	From  *Entity // the entity of the old rows
	Makes []*Making
	OneOf bool

	decl *migrationDecl
}

// Making says how old rows become rows of one entity.
type Making struct {
	Migration *Migration
	Into      *Entity
	Where     []Test // with OneOf: which old rows become rows of Into
	// Rule has From as its source: it gives every attribute and key name of Into
	// that an old row can give.
	Rule *RowRule
	// InPlace means that the new row has the old row's key and replaces it.
	InPlace bool
}

// InPlace returns the Making that replaces the old row, nil if old rows stay.
func (m *Migration) InPlace() *Making {
	return seq.Find(m.Makes, func(mk *Making) bool { return mk.InPlace })
}

// Migration returns the migration with the name, nil if there is none.
func (m *Model) Migration(name string) *Migration {
	return seq.Find(m.Migrations, func(g *Migration) bool { return g.Name == name })
}

// AllTables returns the model's tables, followed by those that are only migrated from.
func (m *Model) AllTables() []*Table { return append(m.Tables[:len(m.Tables):len(m.Tables)], m.Old...) }

// Open reports whether rows of the entity may have any attributes. That is so in a table
// that is only migrated from, where no attributes are declared.
func (e *Entity) Open() bool { return e.open }
