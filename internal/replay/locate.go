package replay

import (
	"fmt"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
)

// locateRecord finds the table and key of a record: by the table that it names, by the table
// that the file is of, or as the only table of the model with such a key. A key that
// the table cannot have is an error of this record alone; the store would refuse the
// whole call.
func (r *Replay) locateRecord(e *events.Entry, table string) (*model.Table, store.Key, error) {
	t, key, err := r.keyOfRecord(e, table)
	if err == nil {
		err = t.CheckKey(key)
	}
	return t, key, err
}

// Change returns the change that a record tells of, without looking at any row. table is as for Batch.
// The change shares the entry's images. The error says why the record is of no row of the model.
func (r *Replay) Change(e *events.Entry, table string) (projections.Change, error) {
	if e.Bad != nil {
		return projections.Change{}, e.Bad.Err
	}
	t, key, err := r.locateRecord(e, table)
	if err != nil {
		return projections.Change{}, err
	}
	e.Record.Table, e.Record.Keys = t.Name, t.Item(key)
	c, _ := projections.NewChange(t, &e.Record)
	return c, nil
}

// keyOfRecord finds the table of a record, and its key. A record that names no table takes the
// file's. A record of a table that the model does not have is refused, also where the model has
// one table: it may be of another application.
func (r *Replay) keyOfRecord(e *events.Entry, table string) (*model.Table, store.Key, error) {
	rec := &e.Record
	if rec.Table != "" {
		table = rec.Table
	}
	if table != "" {
		t := r.Model.Table(table)
		if t == nil {
			return nil, store.Key{}, fmt.Errorf("model %s has no table %s, it has %s; if one of them has that name where this was recorded, say --tables %s=%s",
				r.Model.Name, table, r.tableNames(), r.Model.Tables[0].Name, table)
		}
		key, ok := keyOf(t, rec)
		if !ok {
			return nil, store.Key{}, fmt.Errorf("the record has not the key of table %s: %s", t.Name, keyText(t))
		}
		return t, key, nil
	}
	var found *model.Table
	var at store.Key
	for _, t := range r.Model.Tables {
		key, ok := keyOf(t, rec)
		if !ok || len(rec.Keys) != 0 && len(rec.Keys) != len(t.Item(key)) {
			continue
		}
		if found != nil {
			return nil, store.Key{}, fmt.Errorf("the record names no table and could be of %s or of %s; say which on the command line, TABLE=FILE", found.Name, t.Name)
		}
		found, at = t, key
	}
	if found == nil {
		return nil, store.Key{}, fmt.Errorf("no table of model %s has a key like this record's", r.Model.Name)
	}
	return found, at, nil
}

// keyOf is the record's key in the table. Exports of rows have it only in the image.
func keyOf(t *model.Table, rec *events.Record) (store.Key, bool) {
	if len(rec.Keys) > 0 {
		return t.KeyOf(rec.Keys)
	}
	if rec.New != nil {
		return t.KeyOf(rec.New)
	}
	return t.KeyOf(rec.Old)
}

// keyText names the table's key with its types, for messages.
func keyText(t *model.Table) string {
	s := t.Key.Partition.Name + " (" + t.Key.Partition.Type.String() + ")"
	if t.Key.Sort.Name != "" {
		s += ", " + t.Key.Sort.Name + " (" + t.Key.Sort.Type.String() + ")"
	}
	return s
}

// tableNames lists the tables of the model, for messages.
func (r *Replay) tableNames() string {
	names := make([]string, len(r.Model.Tables))
	for i, t := range r.Model.Tables {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
