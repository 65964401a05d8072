package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/owntable"
	"weir/internal/store"
)

// A dead letter whose body has parts is written and deleted under a note: a row of its
// own, stored among the jobs. The runner writes first the note, then the parts, and then
// the head, in one transaction with the deletion of the note. It deletes a letter in the
// reverse order: one transaction deletes the head and writes a note that the parts must
// go. So wherever a crash leaves parts without a head, it also leaves a note, and the
// next worker that runs the jobs deletes both. It does so at once if the letter was
// deleted. If the letter was never completed, it waits until no process can still be
// writing the letter.

// keepingLife is how long after its note a letter may still be written. It is longer than
// the time for which a batch may be applied.
const keepingLife = 4 * batchLife

// keeping stores the parts of bodies that are too large for a row. For each of ds it
// returns the writes that complete the letter, which the caller must do in one
// transaction. Repeating all this keeps each letter once.
func (r *Runner) keeping(ctx context.Context, ds []Dead) ([][]store.Write, error) {
	out := make([][]store.Write, len(ds))
	for i := range ds {
		d := &ds[i]
		d.identify()
		head, parts := r.letterOf(d).Rows(r.Model.Name)
		out[i] = []store.Write{head}
		if d.parts = len(parts); d.parts == 0 {
			continue
		}
		if err := r.noteKeeping(ctx, d.ID); err != nil {
			return nil, err
		}
		if err := r.taken(ctx, parts); err != nil {
			return nil, err
		}
		out[i] = append(out[i], owntable.EndNote(r.Model.Name, d.ID))
	}
	return out, nil
}

// noteKeeping writes the note that the parts of a letter are being written. If an earlier
// letter with the id is being deleted, it finishes that first.
func (r *Runner) noteKeeping(ctx context.Context, id string) error {
	for range MaxRounds {
		done, err := r.Did(ctx, owntable.BeginNote(r.Model.Name, id, r.Now()))
		if done || err != nil {
			return err
		}
		if err := r.dropParts(ctx, id); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: it is removed as often as it is kept", id)
}

// KeepAll keeps dead letters that no other write depends on, and a large record once for all
// its letters.
// A letter that exists is kept as it is, so a batch that comes again changes nothing.
func (r *Runner) KeepAll(ctx context.Context, ds []Dead) error {
	var alone []Dead
	for i := range ds {
		ds[i].identify()
		head, record, ok := r.letterOf(&ds[i]).Sharing(r.Model.Name)
		if !ok {
			alone = append(alone, ds[i])
			continue
		}
		if err := r.keepShared(ctx, head, &record); err != nil {
			return fmt.Errorf("keeping what could not be applied: %w", err)
		}
	}
	return r.keepAlone(ctx, alone)
}

// keepShared keeps a letter that names a record, with the record if it is the first. Each
// round is a transaction that ends it, or one that another worker's letter was before.
func (r *Runner) keepShared(ctx context.Context, head store.Write, record *owntable.SharedRecord) error {
	for range MaxRounds {
		done, err := Transacted(r.Store.Transact(ctx, []store.Write{head, record.Refer()}))
		if done || err != nil {
			return err
		}
		if there, err := r.GetRow(ctx, head.Ref); there != nil || err != nil {
			return err
		}
		done, err = Transacted(r.Store.Transact(ctx, append(record.Keep(), head)))
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("a record comes and goes all the time: %w", store.ErrConflict)
}

// keepAlone keeps letters that have their bodies for themselves.
func (r *Runner) keepAlone(ctx context.Context, ds []Dead) error {
	letters, err := r.keeping(ctx, ds)
	if err != nil {
		return err
	}
	var heads []store.Write
	for i, ws := range letters {
		if len(ws) == 1 {
			heads = append(heads, ws[0])
			continue
		}
		done, err := Transacted(r.Store.Transact(ctx, ws))
		if err == nil && !done {
			err = r.isKept(ctx, ds[i].ID)
		}
		// Some parts may have been written after the letter's deletion.
		if errors.Is(err, store.ErrCondition) {
			err = errors.Join(err, r.noteKeeping(ctx, ds[i].ID))
		}
		if err != nil {
			return fmt.Errorf("keeping what could not be applied: %w", err)
		}
	}
	return r.taken(ctx, heads)
}

// isKept deletes the note of a letter that is already there. The error wraps
// store.ErrCondition if the letter is not there and must be kept again.
func (r *Runner) isKept(ctx context.Context, id string) error {
	head, err := r.GetRow(ctx, r.letter(id))
	switch {
	case err != nil:
		return err
	case head == nil:
		return fmt.Errorf("%s was removed while it was kept: %w", id, store.ErrCondition)
	}
	_, err = r.Did(ctx, owntable.DropNote(r.Model.Name, id))
	return err
}

// taken does writes to our own table; it is an error if the table refuses one.
func (r *Runner) taken(ctx context.Context, ws []store.Write) error {
	out, err := r.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			return fmt.Errorf("keeping what could not be applied: %w", out[i].Err)
		}
	}
	return nil
}

// KeepDead keeps a dead letter that no other write depends on, and returns its id.
// Keeping the same letter again changes nothing.
func (r *Runner) KeepDead(ctx context.Context, d Dead) (id string, err error) {
	ds := []Dead{d}
	err = r.KeepAll(ctx, ds)
	return ds[0].ID, err
}

// remove deletes a dead letter, in one transaction with other writes, and then its parts. The error wraps
// store.ErrCondition if there is no such letter any more, or if one of the writes fails.
func (r *Runner) remove(ctx context.Context, d *Dead, with ...store.Write) error {
	for range MaxRounds {
		released, err := r.release(ctx, d)
		if err != nil {
			return err
		}
		err = r.Store.Transact(ctx, slices.Concat(r.forget(d), released, with))
		switch {
		case err == nil:
			return r.dropped(ctx, *d)
		case d.shared == "" || !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrConflict):
			return err
		}
		if head, failed := r.GetRow(ctx, r.letter(d.ID)); failed != nil || head == nil {
			return errors.Join(err, failed)
		}
	}
	return fmt.Errorf("%s: letters of its record come and go all the time: %w", d.ID, store.ErrConflict)
}

// release returns the writes that count a letter out of those that name its record, or delete
// the record with its last letter.
func (r *Runner) release(ctx context.Context, d *Dead) ([]store.Write, error) {
	if d.shared == "" {
		return nil, nil
	}
	counting, err := r.GetRow(ctx, owntable.LetterRecord(r.Model.Name, d.shared))
	l := owntable.LetterRow{Shared: d.shared, SharedParts: d.sharedParts}
	return l.Release(r.Model.Name, counting), err
}

// forget returns the writes that delete a dead letter, which the caller must do in one
// transaction. Call dropped afterwards to delete the letter's parts. It is not for letters that
// name a record; none of those has amounts, or says what a row cannot show.
func (r *Runner) forget(d *Dead) []store.Write {
	ws := []store.Write{{
		Ref: r.letter(d.ID), Delete: true,
		If: store.Cond{{{Attr: owntable.Partition, Is: store.Exists}}},
	}}
	if d.parts > 0 {
		ws = append(ws, owntable.GoneNote(r.Model.Name, d.ID))
	}
	return ws
}

// dropped deletes the parts of letters that were deleted.
func (r *Runner) dropped(ctx context.Context, ds ...Dead) error {
	for i := range ds {
		if ds[i].parts == 0 {
			continue
		}
		if err := r.dropParts(ctx, ds[i].ID); err != nil {
			return fmt.Errorf("%s: its parts: %w", ds[i].ID, err)
		}
	}
	return nil
}

// dropParts deletes the parts of a letter whose note says that they must go, and then the
// note.
func (r *Runner) dropParts(ctx context.Context, id string) error {
	q := store.Query{Table: owntable.TableName, Partition: owntable.DeadPart(r.Model.Name, id, 0).Key.Partition}
	for rows, err := range store.Pages(ctx, r.Store, q) {
		if err != nil {
			return err
		}
		ws := make([]store.Write, len(rows))
		for i, row := range rows {
			ws[i] = store.Write{Ref: owntable.Ref(q.Partition.Text(), row.Get(owntable.Sort).Text()), Delete: true}
		}
		if _, err := r.Write(ctx, ws); err != nil {
			return err
		}
	}
	_, err := r.Did(ctx, owntable.EndGone(r.Model.Name, id))
	return err
}

// keepOn does what a note asks for: it deletes the parts of a letter that was deleted, or
// of an incomplete letter that no process can still be writing.
func (r *Runner) keepOn(ctx context.Context, note owntable.LetterNote) error {
	if !note.Gone {
		if r.Now().Sub(note.Since) < keepingLife {
			return nil
		}
		if err := r.isKept(ctx, note.ID); !errors.Is(err, store.ErrCondition) {
			return err
		}
		done, err := r.Did(ctx, note.GiveUp(r.Model.Name))
		if err != nil || !done {
			return err
		}
	}
	return r.dropParts(ctx, note.ID)
}
