package stage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
)

// ErrMap means that a record names a table by its logical name, and that this table has
// another name in the stage. Probably the map is wrong.
var ErrMap = errors.New("the table has another name in this stage")

// Names are the names of all tables that a program uses, in one stage. No two tables
// have one real name, so both ways lose nothing. The zero Names translate nothing.
type Names struct {
	stage   Stage
	tables  []string          // logical names, without the own table
	real    map[string]string // by logical name, of the own table too
	logical map[string]string // by real name, of the own table too
	same    bool              // all names are the same both ways
}

// New returns the names of the tables given: the own table and the models' tables, by
// their logical names. It refuses a map of a table that is not among them, a table that
// is mapped twice, and two tables with one real name.
func New(s Stage, tables []store.Table) (Names, error) {
	own := s.Own()
	n := Names{stage: s, real: map[string]string{}, logical: map[string]string{own: owntable.TableName}, same: own == owntable.TableName}
	for i := range tables {
		n.real[tables[i].Name] = tables[i].Name
		if tables[i].Name != owntable.TableName {
			n.tables = append(n.tables, tables[i].Name)
		}
	}
	n.real[owntable.TableName] = own
	mapped := map[string]string{}
	for _, p := range s.Tables {
		_, known := n.real[p.Logical]
		before, twice := mapped[p.Logical]
		switch mapped[p.Logical] = p.Real; {
		case twice:
			return Names{}, fmt.Errorf("the table %s is mapped twice, to %s and to %s; leave one out", p.Logical, before, p.Real)
		case p.Logical == owntable.TableName:
			return Names{}, fmt.Errorf("the own table %s is mapped to %s: its name follows from the stage alone, and is %s; take it out of the map", p.Logical, p.Real, own)
		case !known:
			return Names{}, fmt.Errorf("the table %s is mapped to %s, and no model of this command has such a table; the tables are %s", p.Logical, p.Real, strings.Join(n.tables, ", "))
		case p.Real == owntable.TableName:
			return Names{}, fmt.Errorf("the table %s is mapped to %s, which is the own table of the stage %s; map it to another one", p.Logical, p.Real, Default)
		}
		n.real[p.Logical] = p.Real
		n.same = n.same && p.Logical == p.Real
	}
	for _, t := range n.tables {
		real := n.real[t]
		switch other, taken := n.logical[real]; {
		case taken && other == owntable.TableName:
			return Names{}, fmt.Errorf("the table %s would be %s, which is the own table of this stage; choose another stage, or map the table to another one", t, real)
		case taken:
			return Names{}, fmt.Errorf("the tables %s and %s would both be %s; map each to a table of its own", other, t, real)
		}
		n.logical[real] = t
	}
	return n, nil
}

// Stage is the stage that the names are of.
func (n *Names) Stage() Stage { return n.stage }

// Own is the real name of the own table.
func (n *Names) Own() string { return n.stage.Own() }

// Real is the real name of a table by its logical name.
func (n *Names) Real(logical string) string {
	if real, ok := n.real[logical]; ok {
		return real
	}
	return logical
}

// Shown is a table for people: its logical name, and the real one in parentheses if that
// is another one.
func (n *Names) Shown(logical string) string {
	if real := n.Real(logical); real != logical {
		return logical + " (" + real + ")"
	}
	return logical
}

// Said is the table that a user names, who may know it by either name. A name of the
// model is taken for that.
func (n *Names) Said(table string) string {
	if _, ok := n.real[table]; ok {
		return table
	}
	return n.of(table)
}

// Has reports whether a table that a recording names is one of the model's, by either name.
func (n *Names) Has(table string) bool {
	_, ok := n.real[n.Said(table)]
	return ok
}

// of is the logical name of a real one; the name itself for a table that is not ours.
func (n *Names) of(real string) string {
	if logical, ok := n.logical[real]; ok {
		return logical
	}
	return real
}

// Mapped are the tables with other names than the model's, for people, in their order.
func (n *Names) Mapped() (shown []string) {
	for _, t := range n.tables {
		if n.real[t] != t {
			shown = append(shown, n.Shown(t))
		}
	}
	return shown
}

// Tables are the tables under their real names.
func (n *Names) Tables(tables []store.Table) []store.Table {
	out := slices.Clone(tables)
	for i := range out {
		out[i].Name = n.Real(out[i].Name)
	}
	return out
}

// Logical is the logical name of a table that a record or an event names. A table that
// is neither the model's nor mapped keeps its name. The error wraps ErrMap if the table
// is the logical name of one that is elsewhere: the record is not of this stage.
func (n *Names) Logical(table string) (string, error) {
	if n.same || table == "" {
		return table, nil
	}
	if logical, ok := n.logical[table]; ok && logical != owntable.TableName {
		return logical, nil
	}
	if real, ok := n.real[table]; ok && table != owntable.TableName {
		return table, fmt.Errorf("%w: the record is of a table %s, and %s in the stage %s is the table %s; correct the map (--tables or WEIR_TABLES), or leave it out for a recording under the model's names",
			ErrMap, table, table, n.stage.name(), real)
	}
	return table, nil
}

// Entries gives the entries' records the logical names of their tables. It stops at the
// first one whose table has an error (Logical), and names its place.
func (n *Names) Entries(entries []events.Entry) error {
	if n.same || len(n.real) == 0 {
		return nil
	}
	was, is := "", ""
	for i := range entries {
		rec := &entries[i].Record
		if rec.Table != was {
			logical, err := n.Logical(rec.Table)
			if err != nil {
				return fmt.Errorf("%s: %w", entries[i].Location, err)
			}
			was, is = rec.Table, logical
		}
		rec.Table = is
	}
	return nil
}
