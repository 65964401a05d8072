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
	v := e.decide(markFrom(&e.Record), compared{
		saysOld: e.Record.Old != nil,
		old:     old.row != nil, stored: e.stored != nil, image: image.row != nil,
		oldIsStored: value.EqualItems(old.row, e.stored), storedIsImage: value.EqualItems(e.stored, image.row),
		oldIsImage: func() bool { return value.EqualItems(old.row, image.row) },
		digest:     func() value.Value { return owntable.Digest(old.row) },
	})
	if v.outcome == skipped {
		return p
	}
	e.gap, e.applied = v.gap, v.applied
	switch v.outcome {
	case nothing:
		return p
	case removal:
		p.removes, p.mark = true, v.mark.leave(e.ref)
		p.write = store.Write{Ref: e.ref, If: e.unseen(), Delete: true, Origin: e.origin()}
		e.now = nil
	case written:
		next := image.dress(e.now, v.mark)
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
	e.take(v)
	e.stored = image.row
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
