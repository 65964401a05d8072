package runner

import (
	"context"
	"errors"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// What rows tell of steps is kept in our table, one row for each, and the newest
// position of its source wins. A target is looked at after that: its book's
// version is raised, then everything it goes by is read strongly, then what comes
// of that is shown under the version raised. So the look with the highest version
// sees all that was told before any lower one, and nothing lower is shown over it:
// streams may come in any order, and a batch any number of times. What the row
// itself says is part of it, and guarded as it was read.

// facts keeps what the batch's rows tell, before anything is looked at.
func (w *work) facts(ctx context.Context) error {
	ws := make([]store.Write, len(w.Facts))
	for i := range w.Facts {
		ws[i] = w.factWrite(&w.Facts[i])
	}
	out, err := w.write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if !errors.Is(out[i].Err, store.ErrRefused) {
			continue
		}
		c := &w.Changes[w.FactOf[i]]
		w.kept[w.FactOf[i]] = true
		d := Dead{Kind: DeadImage, Target: w.Facts[i].List, Reason: out[i].Err.Error(), Lane: w.Lane, Position: c.Position, Record: recordJSON(c), Time: c.Time}
		if _, err := w.KeepDead(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// factWrite keeps what is told, or that it was taken back, for as long as something
// older may still come.
func (w *work) factWrite(f *projections.Fact) store.Write {
	wr := store.Write{
		Ref: book.Fact(w.Model.Name, f.List, f.Name), If: store.Cond{below(book.Position, f.Position.Value())},
		Ops: []store.Op{set(book.Position, f.Position.Value())},
	}
	if f.Told == nil {
		wr.Ops = append(wr.Ops, set(book.Told, value.Value{}), set(book.Expiry, w.expiry()))
	} else {
		wr.Ops = append(wr.Ops, set(book.Told, value.OfMap(f.Told)), set(book.Expiry, value.Value{}))
	}
	return wr
}

// steps looks at the targets of the batch, and at those of lists that changed. A
// long list becomes a job, so that other targets need not wait for it.
func (w *work) steps(ctx context.Context) error {
	var refs []store.Ref
	var of []*projections.Target
	for _, t := range w.Targets {
		if t.Look {
			refs, of = append(refs, t.Row), append(of, t)
		}
	}
	refused, err := w.look(ctx, refs, false)
	if err != nil {
		return err
	}
	for i, reason := range refused {
		if reason == nil {
			continue
		}
		for _, change := range of[i].Asked {
			w.kept[change] = true
		}
		if err := w.parkTarget(ctx, of[i], reason.Error()); err != nil {
			return err
		}
	}
	for _, list := range w.Lists {
		last, err := w.lookAll(ctx, list, "")
		if err == nil && last != "" {
			err = w.startLooking(ctx, list, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
