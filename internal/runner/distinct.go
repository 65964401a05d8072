package runner

import (
	"context"
	"errors"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// The ledger of a target has a count for each value of a distinct, unless it is of any size
// (spread.go). A count that comes to 0 is
// removed after the batch that brought it there. A distinct with more values than its max is
// not shown (unshown.go), and is counted on, so it is shown again when there are fewer. With
// more than twice as many, or if the ledger has no room for them, its values are dropped: the
// ledger says so, and counts no value of it, only how many rows have one. When no row has one
// any more, or a repair has counted all rows again, it counts values again. Everything else in
// the ledger goes on.

// keepsValues is how many values a ledger holds of a distinct, for each that it may have.
const keepsValues = 2

// bound is how many values of a distinct a ledger holds.
type bound struct {
	attr string
	most int
}

// distincts returns the bounds of the distincts of a model, each attribute once.
func (r *Runner) distincts() (out []bound) {
	for _, e := range r.Model.Entities {
		for _, t := range e.Values {
			if !t.Kind.Values {
				continue
			}
			most := keepsValues * t.Max
			if i := slices.IndexFunc(out, func(b bound) bool { return b.attr == t.Attr }); i >= 0 {
				out[i].most = max(out[i].most, most)
			} else {
				out = append(out, bound{t.Attr, most})
			}
		}
	}
	return out
}

// trimLedgers is trimValues for the ledgers that were counted in, of targets that have a distinct.
func (w *Work) trimLedgers(ctx context.Context, ledgers map[*projections.Target]value.Item) error {
	var of []*projections.Target
	var rows []value.Item
	for _, t := range w.Targets {
		if row, have := ledgers[t]; have && hasDistinct(t) {
			of, rows = append(of, t), append(rows, row)
		}
	}
	rows, err := w.trimValues(ctx, rows)
	for i := range rows {
		ledgers[of[i]] = rows[i]
	}
	return err
}

// hasDistinct reports whether the target shows a distinct, whose values may have to be dropped.
func hasDistinct(t *projections.Target) bool {
	return slices.ContainsFunc(projections.Tallies(t.Entity), func(t *model.Tally) bool { return t.Kind.Values })
}

// trimValues removes the counts of 0 from ledgers, drops the values of a distinct that has too
// many, and returns the ledgers as they are then. One that another worker changes meanwhile
// stays: the next batch trims it.
func (w *Work) trimValues(ctx context.Context, ledgers []value.Item) ([]value.Item, error) {
	if len(ledgers) == 0 {
		return ledgers, nil
	}
	bounds := w.distincts()
	if len(bounds) == 0 {
		return ledgers, nil
	}
	out := slices.Clone(ledgers)
	open := make([]int, len(out))
	for i := range open {
		open[i] = i
	}
	for len(open) > 0 {
		var ws []store.Write
		var of []int
		for _, i := range open {
			wr, ok, err := trimWrite(out[i], bounds, w.First())
			if err != nil {
				return nil, err
			}
			if ok {
				ws, of = append(ws, wr), append(of, i)
			}
		}
		done, err := w.Write(ctx, ws)
		if err != nil {
			return nil, err
		}
		open = nil
		for j, i := range of {
			if done[j].Err == nil {
				out[i], open = done[j].Row, append(open, i)
			}
		}
	}
	return out, nil
}

// trimWrite returns the next write that trims a ledger, or that has it count the values of a
// distinct again; ok is false if there is none.
func trimWrite(row value.Item, bounds []bound, before value.Value) (w store.Write, ok bool, err error) {
	ledger := owntable.LedgerRow(row)
	if row == nil || ledger.Parked() {
		return w, false, nil
	}
	at := owntable.LedgerAt(row.Get(owntable.Partition).Text())
	for _, b := range bounds {
		if n, dropped := ledger.Values(b.attr); n > b.most && !dropped {
			w, err = ledger.DropValues(at, b.attr, before)
			return w, err == nil, ignoreRefused(err)
		}
		if w, ok = ledger.ForgetValues(at, b.attr); ok {
			return w, true, nil
		}
		if w, ok = ledger.RestoreValues(at, b.attr, before); ok {
			return w, true, nil
		}
	}
	return w, false, nil
}

// roomTries is how often a batch sends a write again to a ledger that refused it and has room
// for it when it is read.
const roomTries = 20

// room prepares a ledger for adds that it refused: it moves digits of its sums into the bands
// that they belong to, removes accumulators that hold 0, or drops the values of a distinct.
// ready says that the caller should send them again; full, that there is no room.
func (w *Work) room(ctx context.Context, target store.Ref, adds []value.Attr) (ready, full bool, err error) {
	adds = owntable.InLedger(adds)
	if ready, err = w.respread(ctx, owntable.Ledger(w.Model.Name, target)); ready || err != nil {
		return ready, false, err
	}
	if ready, full, err = w.trim(ctx, target, adds); ready || err != nil {
		return ready, false, err
	}
	ready, dropped, err := w.drop(ctx, target, adds)
	if ready || !dropped || err != nil {
		return ready, full, err
	}
	// Another worker dropped values between the refusal and the reading of the ledger. If it
	// refuses for another reason, this ends too.
	if w.fits == nil {
		w.fits = map[string]int{}
	}
	at := owntable.RowText(target)
	w.fits[at]++
	return w.fits[at] <= roomTries, false, nil
}

// drop drops the values of the distinct that takes the most room in a ledger, if it takes
// much, and the ledger has no room for adds. ready says that the ledger should be written
// again; before, that it has room, and has dropped a distinct before.
func (r *Runner) drop(ctx context.Context, target store.Ref, adds []value.Attr) (ready, before bool, err error) {
	bounds := r.distincts()
	if len(bounds) == 0 {
		return false, false, nil
	}
	ref := owntable.Ledger(r.Model.Name, target)
	row, err := r.GetRow(ctx, ref)
	if err != nil {
		return false, false, err
	}
	ledger := owntable.LedgerRow(row)
	var attrs []string
	for _, b := range bounds {
		attrs = append(attrs, b.attr)
		_, dropped := ledger.Values(b.attr)
		before = before || dropped
	}
	attr, bytes := ledger.Largest(attrs)
	full := row.Size()+value.Item(adds).Size()+parkRoom > store.MaxItemBytes
	before = before && !full
	if !full || bytes < store.MaxItemBytes/4 { // something else fills it
		return false, before, nil
	}
	w, err := ledger.DropValues(ref, attr, r.First())
	if err != nil {
		return false, before, ignoreRefused(err)
	}
	out, err := r.Write(ctx, []store.Write{w})
	if err != nil {
		return false, before, err
	}
	// A failed condition means that another worker wrote it.
	return !errors.Is(out[0].Err, store.ErrRefused), before, nil
}

// ignoreRefused returns nil for a ledger whose version another writer spoilt.
func ignoreRefused(err error) error {
	if errors.Is(err, store.ErrRefused) {
		return nil
	}
	return err
}
