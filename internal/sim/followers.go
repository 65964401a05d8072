package sim

import (
	"slices"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/value"
)

// following are the deeds of those who are in lists for certain: what they did last
// is applied, and known to be.
func (a *app) following() (out []*deed) {
	if !slices.ContainsFunc(a.model.Rows, func(r *model.RowRule) bool { return r.Each != nil }) {
		return nil
	}
	for _, o := range a.standing(nil) {
		if e := o.table.Classify(o.image); e != nil && len(e.Told) > 0 && o.last != nil && a.applied(o.last) {
			out = append(out, o.last)
		}
	}
	return out
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
// certain before it and do so still, may all who ever did. In between it depends on
// when the deed is handled.
func (t *truth) tell(r *model.RowRule, image value.Item, d *deed, want, may map[string]*known) {
	for _, f := range t.deeds {
		if f.table.Classify(f.is) != r.Each.Of || !t.finds(r, image, f.is) {
			continue
		}
		t.who = f.is
		if k, ok := t.made(r, image, d); ok {
			may[k.name()] = k
		}
	}
	for _, f := range d.sure {
		if f.ownRow.last != f || f.table.Classify(f.is) != r.Each.Of || !t.finds(r, image, f.is) {
			continue
		}
		t.who = f.is
		if k, ok := t.made(r, image, d); ok {
			want[k.name()] = k
		}
	}
	t.who = nil
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
