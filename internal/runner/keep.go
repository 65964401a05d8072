package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/book"
	"weir/internal/store"
	"weir/internal/value"
)

// A dead letter whose body has parts is written and removed under a note, a row of its
// own among the jobs: first the note, then the parts, and then the head, in one
// transaction with the note's removal. Its removal is the same the other way round: the
// head goes in one transaction with the note that its parts are to go. So a crash
// leaves a note wherever it leaves parts without a head, and whoever works through the
// jobs removes both: at once where the letter is gone, and once nobody can be writing it
// any more where it was never there.

// keepingLife is how long after its note a letter may still be being written: longer
// than a batch may be applied.
const keepingLife = 4 * batchLife

// Attributes of a note.
const (
	noteOf    = "dead" // the letter's id
	noteSince = "time"
	noteGone  = "gone" // the parts are being removed
)

func (r *Runner) note(id string) store.Ref { return book.Keeping(r.Model.Name, id) }

// notGone is the condition that the parts that a note is of are not being removed.
func notGone() []store.Test { return []store.Test{{Attr: noteGone, Is: store.Absent}} }

// keeping stores the parts of what is too large for a row, and returns for each of ds
// the writes that make it visible, to be done in one transaction. Done twice, each is
// kept once.
func (r *Runner) keeping(ctx context.Context, ds []Dead) ([][]store.Write, error) {
	out := make([][]store.Write, len(ds))
	for i := range ds {
		d := &ds[i]
		d.identify()
		head, parts := r.deadRows(d)
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
		out[i] = append(out[i], store.Write{
			Ref: r.note(d.ID), Delete: true, If: store.Cond{{{Attr: noteOf, Is: store.Exists}}, notGone()},
		})
	}
	return out, nil
}

// noteKeeping notes that the parts of a letter are being written, after the removal of
// an earlier one with the id is done.
func (r *Runner) noteKeeping(ctx context.Context, id string) error {
	for range maxRounds {
		done, err := r.did(ctx, store.Write{
			Ref: r.note(id), If: store.Cond{notGone()},
			Ops: []store.Op{set(noteOf, value.OfString(id)), set(noteSince, value.OfInt(r.Now().UnixMicro()))},
		})
		if done || err != nil {
			return err
		}
		if err := r.dropParts(ctx, id); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: it is removed as often as it is kept", id)
}

// keep keeps things that stand by themselves.
func (r *Runner) keep(ctx context.Context, ds []Dead) error {
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
		done, err := transacted(r.Store.Transact(ctx, ws))
		if err == nil && !done {
			err = r.isKept(ctx, ds[i].ID)
		}
		if errors.Is(err, store.ErrCondition) { // parts of it may have been written after the others went
			err = errors.Join(err, r.noteKeeping(ctx, ds[i].ID))
		}
		if err != nil {
			return fmt.Errorf("keeping what could not be applied: %w", err)
		}
	}
	return r.taken(ctx, heads)
}

// isKept settles the note of a letter that is there already. The error is
// store.ErrCondition where it is not, so that it has to be kept again.
func (r *Runner) isKept(ctx context.Context, id string) error {
	rows, err := r.get(ctx, []store.Ref{r.letter(id)})
	switch {
	case err != nil:
		return err
	case rows[0] == nil:
		return fmt.Errorf("%s was removed while it was kept: %w", id, store.ErrCondition)
	}
	_, err = r.did(ctx, store.Write{Ref: r.note(id), Delete: true, If: store.Cond{notGone()}})
	return err
}

// taken does writes of our own table, which nothing may refuse.
func (r *Runner) taken(ctx context.Context, ws []store.Write) error {
	out, err := r.write(ctx, ws)
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

// KeepDead keeps something that stands by itself; keeping it again changes nothing.
func (r *Runner) KeepDead(ctx context.Context, d Dead) (id string, err error) {
	ds := []Dead{d}
	err = r.keep(ctx, ds)
	return ds[0].ID, err
}

// forget are the writes, of one transaction, that take a kept thing away; its parts go
// with dropped.
func (r *Runner) forget(d *Dead) []store.Write {
	ws := []store.Write{{
		Ref: r.letter(d.ID), Delete: true,
		If: store.Cond{{{Attr: book.Partition, Is: store.Exists}}},
	}}
	if d.parts > 0 {
		ws = append(ws, store.Write{Ref: r.note(d.ID), Ops: []store.Op{set(noteOf, value.OfString(d.ID)), set(noteGone, value.OfBool(true))}})
	}
	return ws
}

// dropped removes the parts of letters that were taken away.
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

// dropParts removes the parts of a letter whose note says that they go, and the note.
func (r *Runner) dropParts(ctx context.Context, id string) error {
	q := store.Query{Table: book.TableName, Partition: book.DeadPart(r.Model.Name, id, 0).Key.Partition}
	for {
		page, err := r.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		ws := make([]store.Write, len(page.Rows))
		for i, row := range page.Rows {
			ws[i] = store.Write{Ref: book.Ref(q.Partition.Text(), row.Get(book.Sort).Text()), Delete: true}
		}
		if _, err := r.write(ctx, ws); err != nil {
			return err
		}
		if q.After = page.Next; q.After == nil {
			break
		}
	}
	_, err := r.did(ctx, store.Write{Ref: r.note(id), Delete: true, If: store.Cond{{{Attr: noteGone, Is: store.Exists}}}})
	return err
}

// keepOn does what a note is for: it removes the parts of a letter that is gone, and of
// one that nobody can be writing any more.
func (r *Runner) keepOn(ctx context.Context, note value.Item) error {
	id := note.Get(noteOf).Text()
	if !note.Has(noteGone) {
		since, _ := note.Get(noteSince).Int64()
		if r.Now().Sub(time.UnixMicro(since)) < keepingLife {
			return nil
		}
		if err := r.isKept(ctx, id); !errors.Is(err, store.ErrCondition) {
			return err
		}
		done, err := r.did(ctx, store.Write{
			Ref: r.note(id), Ops: []store.Op{set(noteGone, value.OfBool(true))},
			If: store.Cond{notGone(), {{Attr: noteSince, Is: store.Eq, Value: note.Get(noteSince)}}},
		})
		if err != nil || !done {
			return err
		}
	}
	return r.dropParts(ctx, id)
}
