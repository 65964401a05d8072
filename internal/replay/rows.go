package replay

import (
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
)

// Rows follows rows through a recording as a replay into an empty store would, but
// without a store. It keeps the last image of every row in memory.
type Rows struct {
	Model *model.Model

	rows map[string]*row
}

// Images returns a record's own images, without derived attributes, as changes: the old
// image as a removal, the new one as an insert, each with the record's position and time.
// Each is nil if there is no such image.
func (r *Rows) Images(e *events.Entry, table string) (old, new *projections.Change, err error) {
	t, key, err := (&Replay{Model: r.Model}).locate(e, table)
	if err != nil {
		return nil, nil, err
	}
	c := projections.Change{
		Table: t, Row: store.Ref{Table: t.Name, Key: key},
		Position: e.Record.Position, Origin: e.Record.Position, Time: e.Record.Time, Record: &e.Record,
	}
	if im := strip(t, e.Record.Old); im.row != nil {
		removal := c
		removal.Was, removal.Old, old = im.entity, im.row, &removal
	}
	if im := strip(t, e.Record.New); im.row != nil {
		insert := c
		insert.Is, insert.New, new = im.entity, im.row, &insert
	}
	return old, new, nil
}

// Take follows a record, and returns what it changes; ok is false if a replay would skip it. The error is
// that of a record which has no table or key of the model; the rows are then as before.
func (r *Rows) Take(e *events.Entry, table string) (c projections.Change, ok bool, err error) {
	t, key, err := (&Replay{Model: r.Model}).locate(e, table)
	if err != nil {
		return c, false, err
	}
	ref := store.Ref{Table: t.Name, Key: key}
	name := owntable.RowText(ref)
	if r.rows == nil {
		r.rows = map[string]*row{}
	}
	w := r.rows[name]
	if w == nil {
		w = &row{ref: ref, table: t, stripped: true}
		r.rows[name] = w
	}
	old := w.stored
	it := entry{Entry: e, row: w}
	if p := it.plan(it.images()); !it.applied || !p.writes && !p.removes {
		return c, false, nil
	}
	c = projections.Change{
		Table: t, Row: ref, Was: t.Classify(old), Is: t.Classify(w.stored), Old: old, New: w.stored,
		Position: e.Record.Position, Origin: e.Record.Position, Time: e.Record.Time, Record: &e.Record,
	}
	return c, true, nil
}
