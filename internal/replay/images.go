package replay

import (
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
)

// Images returns a record's images of its row without derived attributes, as changes: the row as it is, that the old image is removed and
// that the new one is inserted, as far as there are such images. None is returned of a row that only weir writes, and of an entry that
// cannot be used.
func Images(m *model.Model, e *events.Entry, table string) (out []projections.Change) {
	t, key, err := (&Replay{Model: m}).locateRecord(e, table)
	if err != nil || e.Bad != nil {
		return nil
	}
	c := projections.Change{
		Table: t, Row: store.Ref{Table: t.Name, Key: key},
		Position: e.Record.Position, Origin: e.Record.Position, Time: e.Record.Time, Record: &e.Record,
	}
	was, is := stripDerived(t, e.Record.Old), stripDerived(t, e.Record.New)
	if was.row != nil {
		c.Was, c.Old = was.entity, was.row
	}
	if is.row != nil {
		c.Is, c.New = is.entity, is.row
	}
	if was.row != nil || is.row != nil {
		out = append(out, c)
	}
	if was.row != nil && is.row != nil {
		removal, insert := c, c
		removal.Is, removal.New, insert.Was, insert.Old = nil, nil, nil, nil
		out = append(out, removal, insert)
	}
	return out
}
