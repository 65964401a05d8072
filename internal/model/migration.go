package model

// Migration turns rows of an older form into rows of the model, while applications
// go on writing both. An old row becomes a row of each entity that the migration
// makes, or, where OneOf says so, of the one whose where it passes.
type Migration struct {
	Name  string
	From  *Entity // what old rows are
	Makes []*Making
	OneOf bool
}

// Making is one entity that old rows become.
type Making struct {
	Migration *Migration
	Into      *Entity
	Where     []Test // of a OneOf: which old rows become one
	// Rule has From as its source: it gives every attribute and key name of Into
	// that an old row can give.
	Rule *RowRule
	// InPlace says that the row made has the old row's key, and takes its place.
	InPlace bool
}

// InPlace is the making that takes the old row's place, nil where old rows stay.
func (m *Migration) InPlace() *Making {
	for _, mk := range m.Makes {
		if mk.InPlace {
			return mk
		}
	}
	return nil
}

// Migration finds a migration by name, nil when there is none.
func (m *Model) Migration(name string) *Migration {
	for _, g := range m.Migrations {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// AllTables are the model's tables, and those that are only migrated from.
func (m *Model) AllTables() []*Table { return append(m.Tables[:len(m.Tables):len(m.Tables)], m.Old...) }

// Open reports whether rows of the entity have whatever attributes they have: of
// those in a table that is only migrated from none are declared.
func (e *Entity) Open() bool { return e.open }
