package sim

import (
	"slices"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/value"
)

// tells reports whether rows of the model are made for each follower.
func (a *app) tells() bool {
	return slices.ContainsFunc(a.model.Rows, func(r *model.RowRule) bool { return r.Each != nil })
}

// following are the deeds of those who are in lists for certain: what they did last
// is applied, and known to be.
func (a *app) following() (out []*deed) {
	if !a.tells() {
		return nil
	}
	for _, o := range a.standing(nil) {
		if e := o.table.Classify(o.image); e != nil && len(e.Told) > 0 && o.last != nil && a.applied(o.last) {
			out = append(out, o.last)
		}
	}
	return out
}

// over are the deeds about followers and what they are told that are applied by now,
// and known to be.
func (a *app) over() (out []*deed) {
	if !a.tells() {
		return nil
	}
	for _, d := range a.deeds {
		if !d.applied && d.tellsOrFollows() {
			d.applied = a.applied(d)
		}
		if d.applied {
			out = append(out, d)
		}
	}
	return out
}

func (d *deed) tellsOrFollows() bool {
	for _, image := range []value.Item{d.was, d.is} {
		if e := d.table.Classify(image); e != nil && (len(e.Told) > 0 || slices.ContainsFunc(e.Rules, func(r *model.RowRule) bool { return r.Each != nil })) {
			return true
		}
	}
	return false
}

// applied reports whether weir knows that it has applied a record.
func (w *world) applied(d *deed) bool {
	if w.mapping != nil {
		return w.mapping.finished(d)
	}
	row := w.base.tables[book.TableName].get(book.Checkpoint(w.model.Name, runner.GroupRows, d.table.Name, d.shard.ID).Key)
	return events.PositionFrom(row.Get(book.Position)).Compare(d.record.Position) >= 0
}

func (m *mapping) finished(d *deed) bool {
	for _, q := range m.queues {
		if q.shard != d.shard {
			continue
		}
		for _, i := range q.index[:q.done] {
			if q.shard.records[i].Position == d.record.Position {
				return true
			}
		}
	}
	return false
}

// tell adds the rows that followers get of a deed: want those who followed for
// certain before it and did so until it was applied, may all but those who for certain
// did not follow while it was. In between it depends on when the deed is handled.
func (t *truth) tell(r *model.RowRule, image value.Item, d *deed, want, may map[string]*known) {
	row := func(f *deed, into map[string]*known) {
		if f.table.Classify(f.is) != r.Each.Of || !t.finds(r, image, f.is) {
			return
		}
		t.who = f.is
		if k, ok := t.made(r, image, d); ok {
			into[k.name()] = k
		}
		t.who = nil
	}
	for _, f := range t.deeds {
		if !slices.Contains(f.over, d) && !(f.next != nil && slices.Contains(d.over, f.next)) {
			row(f, may)
		}
	}
	for _, f := range d.sure {
		stays, left := f.next == nil, f.next != nil && f.next.is == nil && f.next.next == nil
		if stays || left && slices.Contains(f.next.over, d) {
			row(f, want)
		}
	}
}

func (t *truth) finds(r *model.RowRule, image, follower value.Item) bool {
	for i := range r.Each.By {
		m := &r.Each.By[i]
		a, b := model.Scalar(m.Field.Get(follower)), model.Scalar(t.eval(&m.Expr, image, nil))
		if a == "" || a != b {
			return false
		}
	}
	return true
}
