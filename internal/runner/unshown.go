package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A ledger holds every sum exactly, and a target row holds numbers of 38 digits. A
// sum or a mean that needs more is not shown, alone of all that is derived there,
// and a dead letter says so for as long as that lasts. The ledger names the letter,
// and both change in one transaction under the ledger's version: whoever counts next
// knows from the ledger that it stands, and takes it away with the last such number.

// unshown makes the dead letter of a target agree with its ledger at ref, as read. e is
// nil where nothing is counted for the target, which then need not be known.
func (r *Runner) unshown(ctx context.Context, ref, target store.Ref, e *model.Entity, ledger value.Item) error {
	why := projections.CannotShow(e, ledger)
	id, said := projections.SaidUnshown(ledger)
	if why == said {
		return nil
	}
	mark, letter := value.Value{}, store.Write{Ref: book.Ref(book.Dead(r.Model.Name), id), Delete: true}
	if why != "" {
		d := []Dead{{Kind: DeadNumber, Target: r.describe(target), Row: target, Reason: why}}
		letters, err := r.keeping(ctx, d)
		if err != nil {
			return err
		}
		letter, letter.If = letters[0][0], nil // one that stands gives another reason
		mark = value.OfString(d[0].ID + " " + why)
	}
	err := r.Store.Transact(ctx, []store.Write{letter, {
		Ref: ref, Ops: []store.Op{set(book.Unshown, mark)},
		If: store.Cond{{store.AsRead(book.Count, ledger.Get(book.Count))}},
	}})
	if err != nil && !errors.Is(err, store.ErrCondition) { // a condition: who counted meanwhile does it
		return fmt.Errorf("noting what cannot be shown of %s: %w", ref, err)
	}
	return nil
}

// publisher is the entity that rows with the key of a target are of, if anything is
// published on them.
func (r *Runner) publisher(target store.Ref) *model.Entity {
	for _, e := range r.Model.Entities {
		if e.Table.Name == target.Table && projections.Publishes(e) && e.MatchKey(e.Table.Item(target.Key)) && e.Takes(target.Key) {
			return e
		}
	}
	return nil
}

// ErrStands says that no retry ends a dead letter, but a correction does.
var ErrStands = errors.New("correct the rows that the value comes of, and this goes by itself")

// retryUnshown shows a target again. Its dead letter goes when all can be shown.
func (r *Runner) retryUnshown(ctx context.Context, d *Dead) (done int, err error) {
	if err := r.show(ctx, d.Row); err != nil {
		return 0, err
	}
	rows, err := r.get(ctx, []store.Ref{book.Ref(book.Dead(r.Model.Name), d.ID)})
	switch {
	case err != nil:
		return 0, err
	case rows[0] != nil:
		return 0, fmt.Errorf("%s: %s: %w", d.ID, d.Reason, ErrStands)
	}
	return 1, nil
}

// respread moves the digits of a ledger's sums into the bands that they belong to,
// where they are not. It reports whether the ledger is another one now: not so where
// nothing is to be moved, or the ledger has no room for more bands.
func (r *Runner) respread(ctx context.Context, ledger store.Ref) (bool, error) {
	rows, err := r.get(ctx, []store.Ref{ledger})
	if err != nil {
		return false, err
	}
	parts := book.Respread(rows[0])
	if len(parts) == 0 {
		return false, nil
	}
	w := store.Write{Ref: ledger, If: store.Cond{{store.AsRead(book.Count, rows[0].Get(book.Count))}}, Ops: []store.Op{
		{Kind: store.Add, Attr: book.Count, Value: value.OfInt(1), From: value.OfInt(r.Now().UnixMicro())},
	}}
	for _, p := range parts {
		w.Ops = append(w.Ops, set(p.Name, p.Value))
	}
	out, err := r.write(ctx, []store.Write{w})
	if err != nil {
		return false, err
	}
	return !errors.Is(out[0].Err, store.ErrRefused), nil // a condition: somebody else wrote it
}
