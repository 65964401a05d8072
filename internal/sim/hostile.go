package sim

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// The hostile application overwrites, deletes and restores rows that
// only weir writes, and writes back a row that it read long ago.

// overwriteRow writes back a row as it was read at some time, or writes over a row that only
// weir writes, or deletes such a row.
func (a *app) overwriteRow(d *dice) {
	if d.chance(0.3) && a.restoreOlder(d) {
		return
	}
	if derived := a.derivedRows(); len(derived) > 0 && d.chance(0.5) {
		s := pick(d, derived)
		a.copies = append(a.copies, s)
		w := store.Write{Ref: store.Ref{Table: s.table.Name, Key: s.key}, Delete: true}
		if e := s.table.Classify(s.row); len(e.Attributes) > 0 && d.chance(0.6) {
			at := pick(d, e.Attributes)
			if inKey(e, at.Name) || isStamped(e, at.Name) || !isRuled(e, at.Name) {
				return
			}
			w.Delete, w.Put = false, s.row.With(value.Attr{Name: at.Name, Value: a.words.valueFor(e, at.Name, d)})
		}
		a.writeRow(s.table, w, nil)
		return
	}
	if d.chance(0.3) && a.misstateRow(d) || len(a.copies) == 0 {
		return
	}
	s := pick(d, a.copies)
	if e := s.table.Classify(s.row); e != nil && e.Derived && (isHistory(e) || a.isOutdated(&s)) {
		return
	}
	a.writeRow(s.table, store.Write{Ref: store.Ref{Table: s.table.Name, Key: s.key}, Put: s.row}, s.own)
}

// isOutdated reports whether a copy is of a row that may have been deleted so long ago that
// weir has no tombstone of it when it reads the copy's record. Where streams keep all records,
// it may read that at any time.
func (a *app) isOutdated(s *snapshot) bool {
	if a.base.tables[s.table.Name].get(s.key) != nil {
		return false
	}
	ref := store.Ref{Table: s.table.Name, Key: s.key}
	return a.way == byFollower && a.days || a.hours > tombs && a.base.tables[owntable.TableName].get(owntable.Tombstone(ref).Key) == nil
}

// restoreOlder deletes a row that only weir writes and at once writes back an earlier version of
// it. This looks like weir's own write, and when weir reads the record of the deletion, the
// row exists again.
func (a *app) restoreOlder(d *dice) bool {
	standing := map[string]snapshot{}
	for _, s := range a.derivedRows() {
		standing[refName(store.Ref{Table: s.table.Name, Key: s.key})] = s
	}
	var past []snapshot
	for _, mt := range a.model.Tables {
		for _, sh := range a.base.tables[mt.Name].shards {
			for i := range sh.records {
				key, _ := mt.KeyOf(sh.records[i].Keys)
				s, ok := standing[refName(store.Ref{Table: mt.Name, Key: key})]
				if was := sh.records[i].New; ok && wentDown(s.row, was, owntable.Version) && !value.EqualItems(ownAttributes(was), ownAttributes(s.row)) {
					past = append(past, snapshot{table: s.table, key: s.key, row: was})
				}
			}
		}
	}
	if len(past) == 0 {
		return false
	}
	s := pick(d, past)
	ref := store.Ref{Table: s.table.Name, Key: s.key}
	for range 1 + d.n(4)/3 {
		a.writeRow(s.table, store.Write{Ref: ref, Delete: true}, nil)
		a.writeRow(s.table, store.Write{Ref: ref, Put: s.row}, nil)
	}
	return true
}

// misstateRow overwrites the values that weir shows on a row, and keeps weir's version.
func (a *app) misstateRow(d *dice) bool {
	var rows []*ownRow
	for _, o := range a.standingRows(nil) {
		if e := o.table.Classify(o.image); e != nil && projections.Publishes(e) {
			rows = append(rows, o)
		}
	}
	if len(rows) == 0 {
		return false
	}
	o := pick(d, rows)
	attrs, _ := shownValues(o.table.Classify(o.image), nil)
	attr := pick(d, attrs)
	row := a.base.tables[o.table.Name].get(o.key).With(value.Attr{Name: attr.Name, Value: value.OfInt(int64(d.n(9)))})
	return a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Put: row}, o.image)
}

// isRuled reports whether the rules that make rows of an entity set the attribute. Any other
// attribute is the application's.
func isRuled(e *model.Entity, name string) bool {
	return e.Group != nil && isGroupValue(e, name) || slices.ContainsFunc(e.MadeBy, func(r *model.RowRule) bool {
		return slices.ContainsFunc(r.Fields, func(f model.Assign) bool { return f.Name == name })
	})
}

// derivedRows are the rows that weir makes and updates, without history.
func (a *app) derivedRows() (out []snapshot) {
	for _, t := range a.model.Tables {
		a.base.tables[t.Name].eachRow(func(k store.Key, row value.Item) {
			if e := t.Classify(row); e != nil && e.Derived && !isHistory(e) {
				out = append(out, snapshot{table: t, key: k, row: row})
			}
		})
	}
	return out
}

// isHistory reports whether rows of an entity are history: a rule with keep makes them.
func isHistory(e *model.Entity) bool {
	return slices.ContainsFunc(e.MadeBy, func(r *model.RowRule) bool { return len(r.Keep) > 0 })
}

// recreateRow deletes a row and writes it again: as it was, or as it was at an earlier time,
// with weir's own attributes or without them.
func (a *app) recreateRow(e *model.Entity, d *dice) {
	rows := a.standingRows(e)
	if len(rows) == 0 {
		return
	}
	o := pick(d, rows)
	ref, own := store.Ref{Table: o.table.Name, Key: o.key}, o.image
	row := own
	if past := a.deedsOf(o); d.chance(0.3) && len(past) > 0 { // as it was at an earlier time
		was := pick(d, past)
		row, own = was.record.New, was.is
	} else if stands := a.base.tables[o.table.Name].get(o.key); stands != nil && d.chance(0.5) {
		row = stands
	}
	a.writeRow(o.table, store.Write{Ref: ref, Delete: true}, nil)
	a.writeRow(o.table, store.Write{Ref: ref, Put: row}, own)
}

// deedsOf are the application's changes of a row after which it existed.
func (a *app) deedsOf(o *ownRow) (out []*deed) {
	for _, dd := range a.deeds {
		if dd.ownRow == o && dd.is != nil && dd.record.New != nil {
			out = append(out, dd)
		}
	}
	return out
}

// changeAndDelete changes a row and deletes it at once.
func (a *app) changeAndDelete(e *model.Entity, d *dice) {
	rows := a.standingRows(e)
	if len(rows) == 0 || len(e.Attributes) == 0 {
		return
	}
	o := pick(d, rows)
	at := pick(d, e.Attributes)
	if v := a.words.valueFor(e, at.Name, d); !inKey(e, at.Name) && !isStamped(e, at.Name) && !v.IsMissing() {
		a.changeRow(o, []store.Op{{Kind: store.Set, Attr: at.Name, Value: v}}, d.chance(0.5))
	}
	a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Delete: true}, nil)
}
