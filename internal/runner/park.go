package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A ledger that refuses an addition keeps its steps as dead letters with their amounts. One transaction keeps the letters and moves the
// ledger's position past the steps, so none is lost or kept twice. Others go on: a sum is the same in any order. A row that refuses
// values of its ledger has one letter, which its ledger names (unshown.go); the ledger goes on counting.

// passAtOnce is the most dead letters in a transaction. They have no rows besides their heads, of 85 KB at most, so
// they and a ledger stay below store.MaxTransactBytes.
const passAtOnce = 40

// passSteps keeps the target's steps as dead letters instead of adding them to the ledger.
// Each part is a transaction of letters and ledger, so a crash leaves every step either kept or
// to be kept by the repetition. Afterwards the target has no steps left.
func (w *Work) passSteps(ctx context.Context, t *projections.Target, reason string) error {
	for len(t.Steps) > 0 {
		steps := t.Steps[:min(passAtOnce, len(t.Steps))]
		ws, err := w.passWrites(ctx, t, steps, reason)
		if err == nil {
			err = w.Store.Transact(ctx, ws)
		}
		if errors.Is(err, store.ErrCondition) {
			before, epoch := len(t.Steps), w.epoch(owntable.Ledger(w.Model.Name, t.Row))
			if err := w.dropSeen(ctx, t); err != nil {
				return err
			}
			if len(t.Steps) < before || !value.Equal(epoch, w.epoch(owntable.Ledger(w.Model.Name, t.Row))) {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("keeping what %s cannot count: %w", w.DescribeRow(t.Row), err)
		}
		for _, s := range steps {
			w.CountKept(s.Change, s.Derivations()...)
		}
		t.Steps = t.Steps[len(steps):]
	}
	return nil
}

// passWrites returns the writes, for one transaction, that keep steps: their dead
// letters, and the ledger's position past them.
func (w *Work) passWrites(ctx context.Context, t *projections.Target, steps []projections.Step, reason string) ([]store.Write, error) {
	ds := seq.Map(steps, func(s projections.Step) deadletter.Letter { return w.parkedLetter(t, s, reason) })
	if err := w.CheckAge(); err != nil {
		return nil, err
	}
	first, last := steps[0].Position, steps[len(steps)-1].Position
	ledger := owntable.Ledger(w.Model.Name, t.Row)
	return append(w.Letters().Keeping(ds), owntable.PassLedger(ledger, w.ShardKey, first, last, w.FirstVersion(), w.epoch(ledger))), nil
}

// parkedLetter returns the dead letter of a step of a tally that its target cannot take. It has the
// amounts, so it can be retried without the images of the record.
func (w *Work) parkedLetter(t *projections.Target, s projections.Step, reason string) deadletter.Letter {
	c := &w.Changes[s.Change]
	return deadletter.Letter{
		Kind: deadletter.Parked, Target: w.DescribeRow(t.Row), Row: t.Row, Reason: reason,
		ShardKey: w.ShardKey, Position: s.Position, Time: c.Time, Record: deadletter.KeysOf(c), Adds: s.Adds,
	}
}

// dropSeen leaves out the steps that the ledger has seen, whether counted or kept.
func (w *Work) dropSeen(ctx context.Context, t *projections.Target) error {
	ref := owntable.Ledger(w.Model.Name, t.Row)
	ledger, err := w.GetRow(ctx, ref)
	if err != nil {
		return err
	}
	w.noteEpoch(ref, ledger)
	if err := w.readFrontier(ctx); err != nil {
		return err
	}
	t.Steps = unseenSteps(t.Steps, w.seenPosition(ledger))
	return nil
}

// KeptBy notes that the records of a batch that count for a target have a dead letter.
func (w *Work) KeptBy(t *projections.Target) {
	for _, s := range t.Steps {
		w.CountKept(s.Change, s.Derivations()...)
	}
	for _, change := range t.Asked {
		w.CountKept(change, t.Entity.Recomputes()...)
	}
}

// RetryLetter applies a dead letter again, and settles it. Package replay retries records that a replay could not use.
func (r *Runner) RetryLetter(ctx context.Context, id string) error {
	r, d, err := r.findLetter(ctx, id)
	if err != nil {
		return err
	}
	if r.isReplaced(&d) {
		return r.Letters().Forget(ctx, &d)
	}
	if what, is := lacks[d.Kind]; is {
		return r.retryStale(ctx, &d, what)
	}
	if d.Kind != deadletter.Parked && !d.Expired {
		return r.retryKind(ctx, &d)
	}
	if err := d.Whole(); err != nil {
		return err
	}
	return r.addKept(ctx, &d)
}

// retryKind has the kind of projection to which a dead letter belongs retry it, and deletes the letter.
func (r *Runner) retryKind(ctx context.Context, d *deadletter.Letter) error {
	for _, k := range r.Kinds {
		if slices.Contains(k.Letters(), d.Kind) {
			kept, err := k.Retry(ctx, r, d)
			if err == nil && kept {
				err = fmt.Errorf("%s: %w again, and is still kept", d.ID, store.ErrRefused)
			}
			if err != nil {
				return err
			}
			return r.Letters().Forget(ctx, d)
		}
	}
	return fmt.Errorf("%s: %s: %w", d.ID, d.Reason, deadletter.ErrNoRetry)
}

// DiscardLetter deletes a dead letter without applying it. The result of discarding an
// effect is as if its record had added nothing.
func (r *Runner) DiscardLetter(ctx context.Context, id string) error {
	r, d, err := r.findLetter(ctx, id)
	if err != nil {
		return err
	}
	if r.isReplaced(&d) {
		return r.Letters().Forget(ctx, &d)
	}
	var with []store.Write
	if d.Kind == deadletter.Publish { // a later refusal is said again
		with = append(with, owntable.ForgetLack(owntable.LacksAll, owntable.Ledger(r.Model.Name, d.Row)))
	}
	return store.Wrap(r.Letters().Remove(ctx, &d, with...), "discarding %s", id)
}

// addKept adds the amounts of a dead letter to the ledger that refused them, deletes the letter in the same transaction, and shows
// the ledger. Until it is shown the row has a deadletter.Publish, so a crash in between leaves a dead letter to retry.
func (r *Runner) addKept(ctx context.Context, d *deadletter.Letter) error {
	ledger := owntable.Ledger(r.Model.Name, d.Row)
	for {
		s, err := r.spreadLedger(ctx, ledger, projections.SumAdds(d.Adds))
		if err != nil {
			return err
		}
		is, err := r.GetRow(ctx, ledger)
		if err != nil {
			return err
		}
		add, stale := owntable.AddLedger(ledger, s.adds, r.FirstVersion()), []store.Write(nil)
		if named, _ := owntable.LedgerRow(is).LackOf(owntable.LacksAll); named == "" {
			const why = "a retry was broken off"
			stale = r.lackLetterWrites(lackOfAll, d.Row, why)
			add.Ops = append(add.Ops, owntable.LedgerRow(is).NoteLack(owntable.LacksAll, ledger, lackOfAll.letterID(d.Row), why).Ops[0])
		}
		err = r.Letters().Remove(ctx, d, slices.Concat(stale, s.values, []store.Write{add})...)
		if err == nil {
			return r.ShowLedger(ctx, d.Row)
		}
		if !errors.Is(err, store.ErrCondition) {
			return fmt.Errorf("%s: %w", d.Target, err)
		}
		// The letter was settled, or values are not as they were read.
		if again, failed := r.isMoved(ctx, s); failed != nil || !again {
			return errors.Join(err, failed)
		}
	}
}

// ShowLedger is show of a target that may refuse the values of its ledger.
func (r *Runner) ShowLedger(ctx context.Context, target store.Ref) error {
	if err := r.publishLedger(ctx, target); !errors.Is(err, store.ErrRefused) {
		return err
	}
	return nil
}

// publishLedger publishes a target's ledger, and keeps or settles the letter of a row that refuses it; then the error wraps ErrRefused.
// A row that does not exist, or is of no entity that shows anything, is left alone, without an
// error. It reads both once.
func (r *Runner) publishLedger(ctx context.Context, target store.Ref) error {
	rows, err := r.Get(ctx, []store.Ref{target, owntable.Ledger(r.Model.Name, target)})
	if err != nil {
		return err
	}
	refused := r.showRead(ctx, target, rows[0], rows[1])
	if refused != nil && !errors.Is(refused, store.ErrRefused) {
		return refused
	}
	if _, err := r.NoteShown(ctx, target, rows[1], refused); err != nil {
		return err
	}
	return refused
}

// showRead is show of a target and its ledger as they were read together.
// The write is conditional on the row that was read. If the row has changed since, it is shown as it is now (reclaim), so a later
// value is never replaced by an earlier one. ErrRefused says that the row has no room.
func (r *Runner) showRead(ctx context.Context, target store.Ref, row, ledger value.Item) error {
	e := r.publishedEntity(target)
	if _, err := r.settleUnshown(ctx, owntable.Ledger(r.Model.Name, target), target, e, ledger); err != nil {
		return err
	}
	if !isGroup(e) {
		if row == nil {
			return nil
		}
		if e = r.Model.Table(target.Table).Classify(row); e == nil {
			return nil
		}
	}
	if k := r.showingKind(e); k != nil {
		return k.Show(ctx, r, target)
	}
	if isGroup(e) {
		return r.showSummary(ctx, target, e, row, ledger)
	}
	wr := r.publishWrite(target, e, r.withVersion(ledger))
	if len(wr.Ops) == 0 {
		return nil
	}
	_, err := r.showWrite(ctx, target, e, wr, ledger)
	return err
}

// showWrite does a write that shows a ledger, as it was read, on its target. ErrRefused says that the row has no room. moved says
// that another writer had changed the row before, so that the row was shown as it is now (reclaim).
func (r *Runner) showWrite(ctx context.Context, target store.Ref, e *model.Entity, wr store.Write, ledger value.Item) (moved bool, err error) {
	wr.Return = true
	out, err := r.showOn(ctx, []store.Write{wr}, []*model.Entity{e})
	switch {
	case err != nil || out[0].Err == nil:
		return false, err
	case errors.Is(out[0].Err, store.ErrRefused):
		return false, out[0].Err
	}
	return true, r.reclaimRow(ctx, target, e, out[0].Row, ledger)
}

// RetryFix corrects a thing for which a change of its source row is kept as a dead letter. The
// source is read after the position of the change, so the thing has no older one afterwards.
// refused reports that the thing was refused again.
func (r *Runner) RetryFix(ctx context.Context, d *deadletter.Letter, f Fix) (refused bool, err error) {
	err = r.ApplyFix(ctx, f, d.ID+": "+d.Target, func() events.Position { return FixedAt(d.Position, r.Store.Tip().Seen) })
	var unfixable Unfixable
	switch {
	case errors.Is(err, store.ErrRefused), errors.Is(err, search.ErrRefused):
		return true, nil
	case errors.As(err, &unfixable): // the row that is there is not ours
		return false, nil
	}
	return false, err
}
