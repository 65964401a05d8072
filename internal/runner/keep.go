package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/owntable"
	"weir/internal/store"
)

// keeping sets the ids of dead letters and returns the writes that keep them, all of which the caller must do in one
// transaction.
func (r *Runner) keeping(ds []Dead) (ws []store.Write) {
	for i := range ds {
		ds[i].identify()
		ws = append(ws, r.letterOf(&ds[i]).Rows(r.Model.Name)...)
	}
	return ws
}

// KeepAll keeps dead letters that no other write depends on.
// A letter that exists is kept as it is, so a batch that comes again changes nothing.
func (r *Runner) KeepAll(ctx context.Context, ds []Dead) error {
	var heads []store.Write
	for i := range ds {
		ws := r.keeping(ds[i : i+1])
		if len(ws) == 1 {
			heads = append(heads, ws[0])
			continue
		}
		err := store.ErrConflict
		for try := 0; errors.Is(err, store.ErrConflict) && try < MaxRounds; try++ { // with another worker that keeps it
			err = r.Store.Transact(ctx, ws)
		}
		if err != nil && !errors.Is(err, store.ErrCondition) {
			return fmt.Errorf("keeping what could not be applied: %w", err)
		}
	}
	out, err := r.Write(ctx, heads)
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			return fmt.Errorf("keeping what could not be applied: %w", out[i].Err)
		}
	}
	return err
}

// KeepDead keeps a dead letter that no other write depends on, and returns its id.
// Keeping the same letter again changes nothing.
func (r *Runner) KeepDead(ctx context.Context, d Dead) (id string, err error) {
	ds := []Dead{d}
	err = r.KeepAll(ctx, ds)
	return ds[0].ID, err
}

// remove deletes a dead letter, in one transaction with other writes. The error wraps
// store.ErrCondition if there is no such letter any more, or if one of the writes fails.
func (r *Runner) remove(ctx context.Context, d *Dead, with ...store.Write) error {
	return r.Store.Transact(ctx, slices.Concat(r.forget(d), with))
}

// forget returns the writes that delete a dead letter, which the caller must do in one
// transaction.
func (r *Runner) forget(d *Dead) []store.Write {
	ws := []store.Write{{
		Ref: r.letter(d.ID), Delete: true,
		If: store.Cond{{{Attr: owntable.Partition, Is: store.Exists}}},
	}}
	for i := range d.parts {
		ws = append(ws, store.Write{Ref: owntable.DeadPart(r.Model.Name, d.ID, i), Delete: true})
	}
	return ws
}
