package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
//
// A ledger that is full has no room to name it. The letter then stands without, under
// the id that comes of the target, and whoever counts in a large ledger looks for it.

// unshown makes the dead letter of a target agree with its ledger at ref, as read, and
// reports whether it did not. e is nil where nothing is counted for the target, which
// then need not be known. sure looks for a letter that the ledger does not name even
// where the ledger is small.
func (r *Runner) unshown(ctx context.Context, ref, target store.Ref, e *model.Entity, ledger value.Item, sure bool) (changed bool, err error) {
	why := projections.CannotShow(e, ledger)
	named, said, err := r.saidUnshown(ctx, target, ledger, why, sure)
	if err != nil || why == said {
		return false, err
	}
	id, mark := unshownID(target), value.Value{}
	ws := []store.Write{{Ref: r.letter(id), Delete: true}}
	if why != "" {
		letters, err := r.keeping(ctx, []Dead{{Kind: DeadNumber, Target: r.describe(target), Row: target, Reason: why}})
		if err != nil {
			return false, err
		}
		ws, mark = letters[0], value.OfString(id+" "+why)
		ws[0].If = nil // one that stands gives another reason
	}
	if named != "" && named != id {
		ws = append(ws, store.Write{Ref: r.letter(named), Delete: true})
	}
	as := store.Cond{{store.AsRead(book.Count, ledger.Get(book.Count))}}
	alone := append(slices.Clip(ws), store.Write{Ref: ref, Check: true, If: as})
	marked := append(slices.Clip(ws), store.Write{Ref: ref, Ops: []store.Op{set(book.Unshown, mark)}, If: as})
	if why == "" && named == "" {
		marked = alone // there is no mark to take away
	}
	if err = r.Store.Transact(ctx, marked); errors.Is(err, store.ErrRefused) { // the ledger is full
		err = r.Store.Transact(ctx, alone)
	}
	if err != nil && !errors.Is(err, store.ErrCondition) { // a condition: who counted meanwhile does it
		return true, fmt.Errorf("noting what cannot be shown of %s: %w", ref, err)
	}
	return true, nil
}

// unshownID is the id of the letter that says what cannot be shown on a target.
func unshownID(target store.Ref) string {
	d := Dead{Kind: DeadNumber, Row: target}
	d.identify()
	return d.ID
}

// mayStandAlone is the size of a ledger from which on a letter may stand that it does
// not name: no change makes a full one shrink to half.
const mayStandAlone = store.MaxItemBytes / 2

// saidUnshown is the letter that a ledger names, and what is said of what cannot be
// shown on its target: why, where that is what a letter says that stands alone.
func (r *Runner) saidUnshown(ctx context.Context, target store.Ref, ledger value.Item, why string, sure bool) (named, said string, err error) {
	named, said = projections.SaidUnshown(ledger)
	if said != "" && said == why || !sure && ledger.Size() <= mayStandAlone {
		return named, said, nil
	}
	rows, err := r.get(ctx, []store.Ref{r.letter(unshownID(target))})
	if err != nil || rows[0] == nil {
		return named, said, err
	}
	if said = rows[0].Get(reasonAttr).Text(); said == shortened(why) {
		said = why
	}
	return named, said, nil
}

// SaidUnshown is what is said of what cannot be shown on a target, in its ledger or by a
// dead letter: why, where that is said.
func (r *Runner) SaidUnshown(ctx context.Context, target store.Ref, ledger value.Item, why string) (said string, err error) {
	_, said, err = r.saidUnshown(ctx, target, ledger, why, false)
	return said, err
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

// retryUnshown shows a target again. Its dead letter goes when all can be shown, and one
// that another has replaced goes in any case.
func (r *Runner) retryUnshown(ctx context.Context, d *Dead) (done int, err error) {
	if err := r.show(ctx, d.Row); err != nil {
		return 0, err
	}
	ref := book.Of(r.Model.Name, d.Row)
	rows, err := r.get(ctx, []store.Ref{r.letter(d.ID), ref})
	if err != nil {
		return 0, err
	}
	named, _ := projections.SaidUnshown(rows[1])
	switch current := d.ID == named || d.ID == unshownID(d.Row); {
	case rows[0] == nil:
		return 1, nil
	case current && projections.CannotShow(r.publisher(d.Row), rows[1]) != "":
		return 0, fmt.Errorf("%s: %s: %w", d.ID, d.Reason, ErrStands)
	}
	err = r.Store.Transact(ctx, append(r.forget(d), store.Write{
		Ref: ref, Check: true, If: store.Cond{{store.AsRead(book.Count, rows[1].Get(book.Count))}},
	}))
	if err != nil {
		return 0, fmt.Errorf("settling %s: %w", d.ID, err)
	}
	return 1, r.dropped(ctx, *d)
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
