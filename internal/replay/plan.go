package replay

import (
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// plan is what one entry writes: its row (writes); or for a removal (removes) the mark
// and, if the row exists, the removal itself.
type plan struct {
	writes, removes bool
	write, mark     store.Write
}

// images returns the entry's images, without derived attributes.
func (e *entry) images() (old, image stripped) {
	return strip(e.table, e.Record.Old), strip(e.table, e.Record.New)
}

// plan decides an entry by its images and by what the batch knows of its row, and
// updates what the batch knows.
func (e *entry) plan(old, image stripped) (p plan) {
	if image.ours || old.ours && image.row == nil {
		return p
	}
	if !e.stripped {
		e.stored, e.stripped = strip(e.table, e.now).row, true
	}
	m := markFrom(&e.Record)
	if !m.after(e.seen, e.ever, old.row, e.stored) {
		return p
	}
	e.gap = e.gapIn(old.row)
	e.applied = !value.EqualItems(e.stored, image.row)
	if !e.applied && image.row != nil && value.EqualItems(old.row, image.row) {
		return p // nothing happened to the row, and it is as it should be
	}
	if image.row == nil {
		p.removes, p.mark = true, m.leave(e.ref)
		p.write = store.Write{Ref: e.ref, If: e.unseen(), Delete: true, Origin: e.origin()}
		e.now = nil
	} else {
		next := image.dress(e.now, m)
		p.writes = true
		p.write = store.Write{Ref: e.ref, If: e.unseen(), Origin: e.origin()}
		if e.now == nil {
			p.write.Put = next
		} else {
			p.write.Ops = store.Difference(e.now, next)
			p.write.If = append(p.write.If, e.sameNotes()...)
		}
		e.now = next
	}
	e.seen, e.ever, e.stored, e.swept = m, true, image.row, value.Value{}
	return p
}

// unseen is the condition that no other replay has written the row since it was read.
// Derived attributes may have changed.
func (w *row) unseen() store.Cond {
	key := w.table.Key.Partition.Name
	if w.now == nil {
		return store.Cond{{{Attr: key, Is: store.Absent}}}
	}
	return store.Cond{{{Attr: key, Is: store.Exists}}, {store.AsRead(owntable.SeenMark, w.now.Get(owntable.SeenMark))}}
}

// sameNotes is the condition that owntable.Own is as it was read: what the application
// wrote under the status that the row shows. The update replaces that attribute as a
// whole, so a change made since would be lost.
func (w *row) sameNotes() store.Cond {
	if e := w.table.Classify(w.now); e == nil || len(e.Statuses) == 0 {
		return nil
	}
	return store.Cond{{store.AsRead(owntable.Own, w.now.Get(owntable.Own))}}
}

// origin is what the stream shall say of the write: the time and position of the recorded change,
// and whether TTL made it.
func (e *entry) origin() *store.Origin {
	r := &e.Record
	return &store.Origin{Time: r.Time, Position: r.Position, Expired: r.Expired}
}

// gapIn compares the old image with the row in the store. It describes the gap, "" if
// there is none.
func (e *entry) gapIn(old value.Item) string {
	stored := e.stored
	switch {
	case !e.ever && stored == nil || e.Record.Position.IsZero() && e.Record.Old == nil:
		return "" // the recording begins here for this row, or holds rows only
	case old == nil && stored != nil:
		return "an insert of a row that was there: its removal is missing"
	case old != nil && stored == nil && value.Equal(e.swept, owntable.Digest(old)):
		return "" // it expired here before the recording said more of it
	case old != nil && stored == nil:
		return "a change of a row that was removed: its insertion is missing"
	case !value.EqualItems(old, stored):
		return "the old image is not the last one seen: a change is missing"
	}
	return ""
}
