package runner

import (
	"context"
	"errors"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// CountTallies adds each target's steps to its ledger, and then publishes the values that the ledgers
// say. For each shard, the ledger holds the position up to which it has counted, in the
// same row and the same write as the accumulators. So a step counts once, however often
// it is delivered. A crash between the two writes leaves a ledger that is ahead of its
// target; the batch is then applied again and publishes.
func (w *Work) CountTallies(ctx context.Context) error {
	ledgers := map[*projections.Target]value.Item{}
	pending := make([]*projections.Target, 0, len(w.Targets))
	steps := map[*projections.Target][]projections.Step{}
	for _, t := range w.Targets {
		if len(t.Steps) > 0 {
			pending = append(pending, t)
			steps[t] = t.Steps
		}
	}
	pending, err := w.lookFirst(ctx, pending, ledgers)
	if err != nil {
		return err
	}
	for len(pending) > 0 {
		again, err := w.count(ctx, pending, ledgers)
		if err != nil {
			return err
		}
		pending = again
	}
	for t := range ledgers { // steps that were seen before still belong to this batch
		t.Steps = steps[t]
	}
	if err := w.prunePositions(ctx, ledgers); err != nil {
		return err
	}
	for _, t := range w.Targets {
		if b, ok := ledgers[t]; ok {
			if _, err := w.settleUnshown(ctx, owntable.Ledger(w.Model.Name, t.Row), t.Row, t.Entity, b); err != nil {
				return err
			}
		}
	}
	for t := range ledgers { // a row with a status shows everything derived on it at once
		if w.showingKind(t.Entity) != nil {
			t.Recompute = t.Recompute || projections.Publishes(t.Entity)
			delete(ledgers, t)
		}
	}
	if err := w.readLedgers(ctx, ledgers); err != nil {
		return err
	}
	return w.publishLedgers(ctx, ledgers)
}

// count does statement 1 (countWrite) for each target and handles the outcomes. It
// returns the targets that must be sent again.
func (w *Work) count(ctx context.Context, targets []*projections.Target, ledgers map[*projections.Target]value.Item) (again []*projections.Target, err error) {
	cs := make([]counting, len(targets))
	for i, t := range targets {
		part := projections.Target{Row: t.Row, Steps: fittingSteps(t.Steps)}
		cs[i] = counting{target: part, total: part.TotalAmounts()}
	}
	out, err := w.countWrites(ctx, cs)
	if err != nil {
		return nil, err
	}
	for i, t := range targets {
		if errors.Is(out[i].Err, store.ErrCondition) {
			w.noteEpoch(owntable.Ledger(w.Model.Name, t.Row), out[i].Row)
		}
	}
	if err := w.readFrontier(ctx); err != nil {
		return nil, err
	}
	for i, t := range targets {
		switch {
		case out[i].Err == nil && len(cs[i].target.Steps) < len(t.Steps):
			t.Steps = t.Steps[len(cs[i].target.Steps):]
			again = append(again, t)
		case out[i].Err == nil:
			ledgers[t] = out[i].Row
		case errors.Is(out[i].Err, store.ErrRefused):
			err = w.passSteps(ctx, t, out[i].Err.Error())
		default:
			again = w.counted(t, out[i].Row, ledgers, again)
		}
		if err != nil {
			return nil, err
		}
	}
	return again, nil
}

// addsAtOnce is how many accumulators of a ledger one write adds to: their expression stays
// below store.MaxExpressionBytes and store.MaxOperators.
const addsAtOnce = owntable.AddsAtOnce

// fittingSteps returns the first of some steps, as many as one write can add, and at least one. With
// values of a distinct that write is a transaction.
func fittingSteps(steps []projections.Step) []projections.Step {
	adds := 0
	for _, s := range steps {
		adds += len(s.Adds)
	}
	if adds <= owntable.ValuesAtOnce { // as nearly always
		return steps
	}
	met, values := map[string]bool{}, 0
	for i, s := range steps {
		for _, a := range s.Adds {
			if owntable.IsHeld(a.Field) && !met[a.Field] {
				values++
			}
			met[a.Field] = true
		}
		if i > 0 && (len(met) > addsAtOnce || values > owntable.ValuesAtOnce) {
			return steps[:i]
		}
	}
	return steps
}

// countWrite is statement 1: it adds the sum of the steps to the ledger, unless the
// ledger has seen the first of them.
func (w *Work) countWrite(t *projections.Target, total []value.Attr) store.Write {
	first, last := t.Steps[0].Position, t.Steps[len(t.Steps)-1].Position
	ledger := owntable.Ledger(w.Model.Name, t.Row)
	return owntable.CountLedger(ledger, w.ShardKey, first, last, total, w.FirstVersion(), w.epoch(ledger))
}

// counted handles a ledger whose condition failed. If it has seen all steps, its values
// are published. If it has seen some, these are left out and the rest is sent again.
func (w *Work) counted(t *projections.Target, row value.Item, ledgers map[*projections.Target]value.Item, again []*projections.Target) []*projections.Target {
	if t.Steps = unseenSteps(t.Steps, w.seenPosition(row)); len(t.Steps) > 0 {
		return append(again, t)
	}
	ledgers[t] = row
	return again
}

// unseenSteps leaves out the first steps, which are not behind an offset.
func unseenSteps(steps []projections.Step, seen events.Position) []projections.Step {
	for len(steps) > 0 && steps[0].Position.Compare(seen) <= 0 {
		steps = steps[1:]
	}
	return steps
}

// readLedgers reads the ledgers of targets that are checked without any step of their own.
func (w *Work) readLedgers(ctx context.Context, ledgers map[*projections.Target]value.Item) error {
	var refs []store.Ref
	var of []*projections.Target
	for _, t := range w.Targets {
		if _, have := ledgers[t]; t.Check && !have {
			refs = append(refs, owntable.Ledger(w.Model.Name, t.Row))
			of = append(of, t)
		}
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, t := range of {
		ledgers[t] = rows[i]
	}
	return nil
}

// publishLedgers does statement 2 (publishWrite) for each ledger that was read. An empty one whose
// target is gone will expire; that of a target which is there again is kept.
func (w *Work) publishLedgers(ctx context.Context, ledgers map[*projections.Target]value.Item) error {
	var ws, keep []store.Write
	var of []*projections.Target
	var entities []*model.Entity
	var gone []store.Ref
	var empty []value.Item
	for _, t := range w.Targets {
		b, ok := ledgers[t]
		if !ok {
			continue
		}
		ledger := owntable.LedgerRow(b)
		if t.Check && ledger.Expires() && !isGroup(t.Entity) {
			keep = append(keep, owntable.KeepLedger(owntable.Ledger(w.Model.Name, t.Row)))
		}
		wr := w.publishWrite(t.Row, t.Entity, b)
		quiet := showsNothing(&wr) || t.Check && AlreadyShows(t.Image, &wr)
		if quiet {
			if err := w.noteRefusal(ctx, t, ledgers, nil); err != nil {
				return err
			}
			b = ledgers[t]
		}
		if showsNothing(&wr) && !t.Check || wr.Delete && t.Check && t.Image == nil {
			gone, empty = append(gone, t.Row), append(empty, b)
		}
		if quiet {
			continue
		}
		wr.Return = t.Check || isGroup(t.Entity) || ledger.Empty()
		ws = append(ws, wr)
		of, entities = append(of, t), append(entities, t.Entity)
	}
	if _, err := w.Write(ctx, keep); err != nil {
		return err
	}
	out, err := w.showOn(ctx, ws, entities)
	if err != nil {
		return err
	}
	for i, t := range of {
		e, why := out[i].Err, error(nil)
		isGone := e == nil && ws[i].Delete || e != nil && ws[i].Return && out[i].Row == nil
		switch {
		case errors.Is(e, store.ErrRefused):
			isGone, why = false, e
		case e != nil && !isGone && (t.Check || notOurs(t.Entity, out[i].Row)):
			if err := w.reclaimRow(ctx, t.Row, t.Entity, out[i].Row, ledgers[t]); errors.Is(err, store.ErrRefused) {
				why = err
			} else if err != nil {
				return err
			}
		}
		if err := w.noteRefusal(ctx, t, ledgers, why); err != nil {
			return err
		}
		if isGone {
			gone, empty = append(gone, t.Row), append(empty, ledgers[t])
		}
	}
	return w.ExpireLedgers(ctx, gone, empty)
}

// noteRefusal notes that the row of a target refuses the values of its ledger, nil that it does not.
func (w *Work) noteRefusal(ctx context.Context, t *projections.Target, ledgers map[*projections.Target]value.Item, why error) (err error) {
	if why != nil {
		w.KeptBy(t)
	}
	ledgers[t], err = w.NoteShown(ctx, t.Row, ledgers[t], why)
	return err
}

// reclaimRow publishes on a row with a version that weir never gave it, for example a row
// that was made as a copy of another row. No version of its own ledger might ever be
// above that one. The ledger is read after the row, so it is not behind the values that another
// worker published there meanwhile. It may also be ahead of b, the ledger that the caller
// was to show.
func (r *Runner) reclaimRow(ctx context.Context, target store.Ref, e *model.Entity, row, b value.Item) error {
	shown := row.Get(owntable.Version)
	switch other := notOurs(e, row); {
	case !other && shown.IsMissing(), other && e.Group.RowsIn(b).Sign() <= 0:
		return nil
	case other && r.Model.Table(target.Table).Classify(row) != e:
		return notTheirs(e)
	case !isGroup(e) && r.Model.Table(target.Table).Classify(row) != e:
		return nil
	}
	if err := r.StillShows(ctx, e); err != nil { // the version may be of a build's ledger
		return err
	}
	ledger, err := r.GetRow(ctx, owntable.Ledger(r.Model.Name, target))
	if err != nil {
		return err
	}
	wr := r.publishWrite(target, e, r.withVersion(ledger))
	if showsNothing(&wr) {
		return nil
	}
	wr.If = append(r.IsOf(e), []store.Test{store.AsRead(owntable.Version, shown)})
	out, err := r.showOn(ctx, []store.Write{wr}, []*model.Entity{e})
	if err == nil && errors.Is(out[0].Err, store.ErrRefused) {
		err = out[0].Err
	}
	return err
}

// VersionOf returns a ledger's version, or 0 for a ledger that was never written.
func VersionOf(b value.Item) value.Value {
	if n := owntable.LedgerRow(b).Version(); !n.IsMissing() {
		return n
	}
	return value.OfInt(0)
}

// AlreadyShows reports whether the row is already as the write would make it.
func AlreadyShows(row value.Item, wr *store.Write) bool {
	if wr.Delete {
		return row == nil
	}
	return !slices.ContainsFunc(wr.Ops, func(op store.Op) bool { return !value.Equal(row.Get(op.Attr), op.Value) })
}

// publishWrite is statement 2: it makes the target show the values of its ledger, if the
// target exists, is a row of the entity (IsOf, showOn) and shows nothing newer. If the target already
// shows the same, the write changes nothing and leads to no stream record. The write has no Ops if the entity shows
// nothing. A missing target is no failure: when the row is inserted, its own record leads
// to a publication.
func (r *Runner) publishWrite(target store.Ref, e *model.Entity, b value.Item) store.Write {
	if isGroup(e) {
		return r.summaryWrite(target, e, b)
	}
	attrs, _ := projections.PublishedValues(r.ShownTallies(e), b)
	if len(attrs) == 0 {
		return store.Write{}
	}
	n := VersionOf(b)
	wr := store.Write{Ref: target}
	wr.Ops = append(wr.Ops, store.AssignAll(attrs)...)
	wr.Ops = append(wr.Ops, store.Assign(owntable.Version, n))
	wr.If = append(r.IsOf(e), []store.Test{{Attr: owntable.Version, Is: store.Absent}, {Attr: owntable.Version, Is: store.Le, Value: n}})
	return wr
}
