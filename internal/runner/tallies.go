package runner

import (
	"context"
	"errors"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// tallies adds each target's steps to its book, and publishes what the books then
// say. The book holds the position of this lane up to which it has counted, in the
// same row and the same write as the accumulators: so a step counts once, however
// often it comes. A crash between the two writes leaves a book that is ahead of
// its target; the batch comes again and publishes.
func (w *work) tallies(ctx context.Context) error {
	books := map[*projections.Target]value.Item{}
	pending := make([]*projections.Target, 0, len(w.Targets))
	steps := map[*projections.Target][]projections.Step{}
	for _, t := range w.Targets {
		if len(t.Steps) > 0 {
			pending = append(pending, t)
			steps[t] = t.Steps
		}
	}
	if w.ByItem {
		if err := w.countMarked(ctx, pending, books); err != nil {
			return err
		}
		pending = nil
	}
	for len(pending) > 0 {
		again, err := w.count(ctx, pending, books)
		if err != nil {
			return err
		}
		pending = again
	}
	for t := range books { // what was seen before is still of this batch
		t.Steps = steps[t]
	}
	if err := w.prune(ctx, books); err != nil {
		return err
	}
	for _, t := range w.Targets {
		if b, ok := books[t]; ok {
			if _, err := w.unshown(ctx, book.Of(w.Model.Name, t.Row), t.Row, t.Entity, b, false); err != nil {
				return err
			}
		}
	}
	for t := range books { // such a row shows all that is derived on it at once
		if len(t.Entity.Steps) > 0 {
			t.Look = t.Look || projections.Publishes(t.Entity)
			delete(books, t)
		}
	}
	if err := w.readBooks(ctx, books); err != nil {
		return err
	}
	return w.publish(ctx, books)
}

// count sends statement 1 for each target, and sorts out the answers. It returns
// the targets to be sent again.
func (w *work) count(ctx context.Context, targets []*projections.Target, books map[*projections.Target]value.Item) (again []*projections.Target, err error) {
	ws := make([]store.Write, 0, len(targets))
	sent := make([]*projections.Target, 0, len(targets))
	for _, t := range targets {
		ws = append(ws, w.countWrite(t, t.Total()))
		sent = append(sent, t)
	}
	if err := w.fresh(); err != nil {
		return nil, err
	}
	out, err := w.write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i, t := range sent {
		switch {
		case out[i].Err == nil:
			books[t] = out[i].Row
		case errors.Is(out[i].Err, store.ErrRefused):
			again, err = w.uncounted(ctx, t, out[i].Err, again)
		default:
			again, err = w.counted(ctx, t, out[i].Row, books, again)
		}
		if err != nil {
			return nil, err
		}
	}
	return again, nil
}

// uncounted makes room in a ledger that refused the steps, or parks them where that
// is not why.
func (w *work) uncounted(ctx context.Context, t *projections.Target, refused error, again []*projections.Target) ([]*projections.Target, error) {
	spread, err := w.respread(ctx, book.Of(w.Model.Name, t.Row))
	switch {
	case err != nil:
		return again, err
	case spread:
		return append(again, t), nil
	}
	return again, w.park(ctx, t, refused.Error())
}

// countWrite is statement 1: the book takes the sum of the steps, unless it has
// seen the first of them, or effects are parked before them.
func (w *work) countWrite(t *projections.Target, total []value.Attr) store.Write {
	lane := book.Lane(w.Lane)
	first, last := t.Steps[0].Position, t.Steps[len(t.Steps)-1].Position
	ops := make([]store.Op, 0, len(total)+2)
	ops = append(ops,
		store.Op{Kind: store.Set, Attr: lane, Value: last.Value()},
		store.Op{Kind: store.Add, Attr: book.Count, Value: value.OfInt(1), From: value.OfInt(w.Now().UnixMicro())})
	for _, a := range total {
		ops = append(ops, store.Op{Kind: store.Add, Attr: a.Name, Value: a.Value})
	}
	return store.Write{
		Ref: book.Of(w.Model.Name, t.Row), Ops: ops, Return: true,
		If: store.Cond{below(lane, first.Value()), open()},
	}
}

// counted looks at a book that refused the steps: they were all seen (publish what
// it holds), some were (leave those out and send again), or effects are parked
// before them (park these too).
func (w *work) counted(ctx context.Context, t *projections.Target, row value.Item, books map[*projections.Target]value.Item, again []*projections.Target) ([]*projections.Target, error) {
	seen := events.PositionFrom(row.Get(book.Lane(w.Lane)))
	before := t.Steps
	for len(t.Steps) > 0 && t.Steps[0].Position.Compare(seen) <= 0 {
		t.Steps = t.Steps[1:]
	}
	if !isParked(row) {
		if len(t.Steps) > 0 {
			return append(again, t), nil
		}
		books[t] = row
		return again, nil
	}
	t.Check = false
	if err := w.wasParked(ctx, t, before[:len(before)-len(t.Steps)]); err != nil {
		return nil, err
	}
	return again, w.park(ctx, t, "effects that came before are parked")
}

// readBooks reads the books of the targets that only came by themselves.
func (w *work) readBooks(ctx context.Context, books map[*projections.Target]value.Item) error {
	var refs []store.Ref
	var of []*projections.Target
	for _, t := range w.Targets {
		if _, have := books[t]; t.Check && !have {
			refs = append(refs, book.Of(w.Model.Name, t.Row))
			of = append(of, t)
		}
	}
	rows, err := w.get(ctx, refs)
	if err != nil {
		return err
	}
	for i, t := range of {
		if !isParked(rows[i]) {
			books[t] = rows[i]
		}
	}
	return nil
}

// publish sends statement 2 for each book at hand.
func (w *work) publish(ctx context.Context, books map[*projections.Target]value.Item) error {
	var ws []store.Write
	var of []*projections.Target
	for _, t := range w.Targets {
		b, ok := books[t]
		if !ok {
			continue
		}
		wr := PublishWrite(t.Row, t.Entity, b)
		if len(wr.Ops) == 0 || t.Check && shows(t.Image, &wr) {
			continue
		}
		wr.Return = t.Check
		ws = append(ws, wr)
		of = append(of, t)
	}
	out, err := w.write(ctx, ws)
	if err != nil {
		return err
	}
	for i, t := range of {
		switch e := out[i].Err; {
		case errors.Is(e, store.ErrRefused):
			err = w.parkTarget(ctx, t, e.Error())
		case e != nil && t.Check:
			if err = w.reclaim(ctx, t.Row, t.Entity, out[i].Row); errors.Is(err, store.ErrRefused) {
				err = w.parkTarget(ctx, t, err.Error())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reclaim publishes on a row whose version weir never gave it, such as one that
// was made as a copy of another row: no version of its own book would ever be
// above that one. The book is read after the row, so that it is not behind what
// somebody else may have published there meanwhile.
func (r *Runner) reclaim(ctx context.Context, target store.Ref, e *model.Entity, row value.Item) error {
	shown := row.Get(book.Version)
	if shown.IsMissing() {
		return nil
	}
	rows, err := r.get(ctx, []store.Ref{book.Of(r.Model.Name, target)})
	if err != nil {
		return err
	}
	wr := PublishWrite(target, e, rows[0])
	wr.If = store.Cond{{{Attr: book.Version, Is: store.Eq, Value: shown}}}
	out, err := r.write(ctx, []store.Write{wr})
	if err == nil && errors.Is(out[0].Err, store.ErrRefused) {
		err = out[0].Err
	}
	return err
}

// versionOf is a book's version; one that was never written has 0.
func versionOf(b value.Item) value.Value {
	if n := b.Get(book.Count); !n.IsMissing() {
		return n
	}
	return value.OfInt(0)
}

// shows reports whether the row is already as the write would make it.
func shows(row value.Item, wr *store.Write) bool {
	for _, op := range wr.Ops {
		if !value.Equal(row.Get(op.Attr), op.Value) {
			return false
		}
	}
	return true
}

// PublishWrite is statement 2: the target shows what its book says, if it is there
// and shows nothing newer; where it shows the same, nothing is changed, and no
// record comes of it. It has no Ops when the entity shows nothing. A target
// that is not there is no failure: its own record, when it comes, makes us publish.
func PublishWrite(target store.Ref, e *model.Entity, b value.Item) store.Write {
	attrs, _ := projections.Published(e, b)
	if len(attrs) == 0 {
		return store.Write{}
	}
	n := versionOf(b)
	wr := store.Write{Ref: target}
	for _, a := range attrs {
		wr.Ops = append(wr.Ops, set(a.Name, a.Value))
	}
	wr.Ops = append(wr.Ops, set(book.Version, n))
	wr.If = store.Cond{
		{{Attr: e.Table.Key.Partition.Name, Is: store.Exists}},
		{{Attr: book.Version, Is: store.Absent}, {Attr: book.Version, Is: store.Le, Value: n}},
	}
	return wr
}
