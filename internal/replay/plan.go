package replay

import (
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// plan is the writes of one entry: its row, or the row's known changes (writes); or for a removal (removes) the mark
// and, if the row exists, the removal itself.
type plan struct {
	writes, removes bool
	write, mark     store.Write
	before          *store.Write // of a removal: it says whether a recorded change made it
}

// images returns the entry's images, without derived attributes.
func (e *entry) images() (old, image stripped) {
	return stripDerived(e.table, e.Record.Old), stripDerived(e.table, e.Record.New)
}

// planEntry decides an entry by its images and by the batch's knowledge of its row, and
// updates that knowledge.
func (e *entry) planEntry(old, image stripped) (p plan) {
	if image.ours || old.ours && image.row == nil {
		return p
	}
	if !e.stripped {
		e.stored, e.stripped = stripDerived(e.table, e.now).row, true
		e.digest = digestItem(e.stored)
	}
	l := linkOf(e.Entry, digestItem(old.row), digestItem(image.row))
	if l.rowStays(e.table, e.now) {
		return p
	}
	l.moved = e.now.Has(owntable.Moved)
	l.kept = keepsHistory(image.entity) || keepsHistory(e.table.Classify(e.now))
	v := e.decideLink(l, e.digest)
	e.gap, e.applied, e.told = v.gap, v.applied, v.told && l.kind == aChange
	switch v.outcome {
	case skipped, nothing:
		return p
	case noted:
		p.writes = true
		if p.write = e.removalWrite(e.ref, true); e.now != nil {
			p.write = store.Write{Ref: e.ref, If: e.unseenCondition(), Ops: []store.Op{{Kind: store.Set, Attr: owntable.SeenMark, Value: e.value()}}, Origin: e.originOf()}
			e.now = e.now.With(value.Attr{Name: owntable.SeenMark, Value: e.value()})
		}
		return p
	case removal:
		// The row keeps its known changes: after a crash before the removal, the same decides again.
		if k := knownOf(e.now); e.now != nil && (k.flags&lacking != 0) != (l.kind == aRow || v.told) {
			k.flags ^= lacking
			p.before = &store.Write{Ref: e.ref, If: e.unseenCondition(), Ops: []store.Op{{Kind: store.Set, Attr: owntable.SeenMark, Value: k.value()}}, Origin: e.originOf()}
			e.now = e.now.With(value.Attr{Name: owntable.SeenMark, Value: k.value()})
		}
		p.removes, p.mark = true, e.removalWrite(e.ref, false)
		p.write = store.Write{Ref: e.ref, If: e.unseenCondition(), Delete: true, Origin: e.originOf()}
		e.now = nil
	case written:
		next := image.dressRow(e.now, e.value())
		p.writes = true
		p.write = store.Write{Ref: e.ref, If: e.unseenCondition(), Origin: e.originOf()}
		if e.now == nil {
			p.write.Put = next
		} else {
			p.write.Ops = store.Difference(e.now, next)
			p.write.If = append(p.write.If, e.sameNotes()...)
		}
		e.now = next
	}
	e.stored, e.digest = image.row, l.new
	return p
}

// linkOf is an entry's link of its row, given the digests of its own images.
func linkOf(e *events.Entry, old, new digest) link {
	l := link{mark: markFrom(&e.Record), old: old, new: new, note: e.Note}
	switch {
	case e.Note == noteTwin:
		l.kind = aTwin
	case !e.Record.Export:
		if l.position.IsZero() {
			l.id = idOf(&e.Record, old, new)
		}
	case e.Export != nil && e.Export.Full:
		l.kind, l.time = aRow, e.Export.To.UnixMicro()
	case e.Record.Time.IsZero():
		l.kind = aBare
	default:
		l.kind = aNet
	}
	return l
}

// keepsHistory reports whether entries of a history are made from changes of an entity's rows.
func keepsHistory(e *model.Entity) bool {
	return e != nil && slices.ContainsFunc(e.Rules, func(r *model.RowRule) bool { return len(r.Keep) > 0 })
}

// unseenCondition is the condition that no other replay has written the row since it was read.
// Derived attributes may have changed.
func (w *row) unseenCondition() store.Cond {
	key := w.table.Key.Partition.Name
	if w.now == nil {
		return store.Cond{{{Attr: key, Is: store.Absent}}}
	}
	return store.Cond{{{Attr: key, Is: store.Exists}}, {store.AsRead(owntable.SeenMark, w.now.Get(owntable.SeenMark))}}
}

// sameNotes is the condition that owntable.Own is as it was read: the values that the application
// wrote under the status that the row shows. The update replaces that attribute as a
// whole, so a change made since would be lost.
func (w *row) sameNotes() store.Cond {
	if e := w.table.Classify(w.now); e == nil || len(e.Covered()) == 0 {
		return nil
	}
	return store.Cond{{store.AsRead(owntable.Own, w.now.Get(owntable.Own))}}
}

// originOf is the origin that the stream shall give the write: the time and position of the recorded change,
// and whether TTL made it.
func (e *entry) originOf() *store.Origin {
	r := &e.Record
	return &store.Origin{Time: r.Time, Position: positionOf(r), Expired: r.Expired}
}
