package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// A write that can never succeed parks its target: the effect becomes a dead letter, and
// the ledger counts it in its attribute q. From then on every effect on that target
// queues behind it, while all other targets continue. One transaction keeps the effect
// and moves the ledger's position past it, so it is neither lost nor kept twice. The
// target stays parked until retries or discards have emptied the queue.

// parkAtOnce is the most dead letters in a transaction. Their heads, of 85 KB at most, and a
// ledger stay below store.MaxTransactBytes.
const parkAtOnce = 40

// park keeps the target's steps as dead letters instead of adding them to the ledger.
// Each part is a transaction of letters and ledger, so a crash leaves every step either parked or
// to be parked by the repetition. Afterwards the target has no steps left.
func (w *Work) park(ctx context.Context, t *projections.Target, reason string) error {
	for len(t.Steps) > 0 {
		steps := t.Steps[:min(parkAtOnce, len(t.Steps))]
		ws, err := w.parkWrites(ctx, t, steps, reason)
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
			return fmt.Errorf("parking %s: %w", w.Describe(t.Row), err)
		}
		for _, s := range steps {
			w.Kept(s.Change, s.Of()...)
		}
		t.Steps = t.Steps[len(steps):]
	}
	t.Check = false
	return nil
}

// parkWrites returns the writes, for one transaction, that park steps: their dead
// letters, and the ledger's position past them and its higher count of waiting effects.
func (w *Work) parkWrites(ctx context.Context, t *projections.Target, steps []projections.Step, reason string) ([]store.Write, error) {
	ds := make([]Dead, 0, len(steps))
	for _, s := range steps {
		ds = append(ds, w.parked(t, s, reason))
	}
	if err := w.Fresh(); err != nil {
		return nil, err
	}
	letters, err := w.keeping(ctx, ds)
	ws := slices.Concat(letters...)
	first, last := steps[0].Position, steps[len(steps)-1].Position
	ledger := owntable.Ledger(w.Model.Name, t.Row)
	return append(ws, owntable.ParkLedger(ledger, w.ShardKey, first, last, len(steps), w.First(), w.epoch(ledger))), err
}

// parked returns the dead letter of a step of a tally that its target cannot take. It has the
// amounts, so it can be retried without the images of the record.
func (w *Work) parked(t *projections.Target, s projections.Step, reason string) Dead {
	c := &w.Changes[s.Change]
	d := Dead{
		Kind: DeadParked, Target: w.Describe(t.Row), Row: t.Row, Reason: reason,
		ShardKey: w.ShardKey, Position: s.Position, Time: c.Time, Record: keysOf(c), Adds: s.Adds,
	}
	return d
}

// dropSeen leaves out the steps that the ledger has seen, whether counted or parked.
func (w *Work) dropSeen(ctx context.Context, t *projections.Target) error {
	ref := owntable.Ledger(w.Model.Name, t.Row)
	ledger, err := w.GetRow(ctx, ref)
	if err != nil {
		return err
	}
	w.look(ref, ledger)
	if err := w.passed(ctx); err != nil {
		return err
	}
	before := t.Steps
	t.Steps = unseen(t.Steps, w.seen(ledger))
	return w.wasParked(ctx, t, before[:len(before)-len(t.Steps)])
}

// wasParked finds out which of the seen steps are parked, so that their records count as
// kept, however often they are delivered.
func (w *Work) wasParked(ctx context.Context, t *projections.Target, steps []projections.Step) error {
	refs := make([]store.Ref, len(steps))
	for i, s := range steps {
		d := w.parked(t, s, "")
		d.identify()
		refs[i] = w.letter(d.ID)
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row != nil {
			w.Kept(steps[i].Change, steps[i].Of()...)
		}
	}
	return nil
}

// ParkTarget parks a target whose row refuses the value that its ledger holds. The ledger
// has counted everything; only showing it waits.
func (w *Work) ParkTarget(ctx context.Context, t *projections.Target, refused error) error {
	for _, s := range t.Steps {
		w.Kept(s.Change, s.Of()...)
	}
	for _, change := range t.Asked {
		w.Kept(change, t.Entity.Recomputes()...)
	}
	return w.ParkShown(ctx, t.Row, refused.Error())
}

// ParkShown parks a target, with a dead letter that says that its row refuses what it
// must show.
func (r *Runner) ParkShown(ctx context.Context, row store.Ref, reason string) error {
	letters, err := r.keeping(ctx, []Dead{{Kind: DeadPublish, Target: r.Describe(row), Row: row, Reason: reason}})
	if err != nil {
		return err
	}
	err = r.Store.Transact(ctx, append(slices.Concat(letters...), owntable.WaitLedger(owntable.Ledger(r.Model.Name, row), 1)))
	// A failed condition means that it is already parked for this.
	if err != nil && !errors.Is(err, store.ErrCondition) {
		return fmt.Errorf("parking %s: %w", r.Describe(row), err)
	}
	return nil
}

// Retry applies a dead letter again. For a parked target it applies the whole queue in
// order, up to the first effect that is refused again. done is the number of dead letters
// that were settled. Package replay retries what a replay could not use.
func (r *Runner) Retry(ctx context.Context, id string) (done int, err error) {
	r, d, err := r.holding(ctx, id)
	if err != nil {
		return 0, err
	}
	switch {
	case r.isReplaced(&d):
		return 1, r.Forget(ctx, &d)
	case d.Kind == DeadParked, d.Kind == DeadPublish:
		return r.retryTarget(ctx, d.Row)
	case d.Kind == DeadNumber:
		return r.retryUnshown(ctx, &d)
	case d.Kind == DeadStatus:
		return r.retryShown(ctx, &d)
	default:
		err = r.retryKind(ctx, &d)
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// retryKind has the kind of projection retry a dead letter to which the letter belongs.
func (r *Runner) retryKind(ctx context.Context, d *Dead) error {
	for _, k := range r.Kinds {
		if slices.Contains(k.Letters(), d.Kind) {
			return k.Retry(ctx, r, d)
		}
	}
	return fmt.Errorf("%s: %s: %w", d.ID, d.Reason, ErrNoRetry)
}

// Forget deletes a dead letter after its effect has been applied.
func (r *Runner) Forget(ctx context.Context, d *Dead) error {
	err := r.remove(ctx, d)
	if errors.Is(err, store.ErrCondition) { // another worker deleted it
		err = r.dropped(ctx, *d)
	}
	if err != nil {
		return fmt.Errorf("settling %s: %w", d.ID, err)
	}
	return nil
}

// ErrNoRetry says that another attempt cannot have another result.
var ErrNoRetry = errors.New("a retry would end the same way; correct what it came from, then discard this")

// Discard deletes a dead letter without applying it. The result of discarding a parked
// effect is as if its record had added nothing.
func (r *Runner) Discard(ctx context.Context, id string) error {
	r, d, err := r.holding(ctx, id)
	if err != nil {
		return err
	}
	if r.isReplaced(&d) {
		return r.Forget(ctx, &d)
	}
	var with []store.Write
	if d.Kind == DeadParked || d.Kind == DeadPublish {
		if err := r.show(ctx, d.Row); err != nil && !errors.Is(err, store.ErrRefused) {
			return err
		}
		with = append(with, r.unpark(d.Row, 1))
	}
	if err := r.remove(ctx, &d, with...); err != nil {
		return fmt.Errorf("discarding %s: %w", id, err)
	}
	return nil
}

// unpark returns the write that takes n effects out of a target's queue. The target is
// open again when q has reached 0.
func (r *Runner) unpark(target store.Ref, n int) store.Write {
	return owntable.WaitLedger(owntable.Ledger(r.Model.Name, target), -n)
}

// isParked reports whether effects wait for the ledger's target.
func isParked(b value.Item) bool { return owntable.LedgerRow(b).Parked() }

// retryTarget applies a target's queue and then shows what the ledger holds. Until the value is shown, the
// queue has a DeadPublish, so a crash on the way leaves a dead letter to retry.
func (r *Runner) retryTarget(ctx context.Context, target store.Ref) (done int, err error) {
	var queue []Dead
	publish := Dead{Kind: DeadPublish, Target: r.Describe(target), Row: target, Reason: "a retry of its queue was broken off, or its row refused to show the result"}
	publish.identify()
	standing := false
	err = r.Dead(ctx, func(d Dead) error {
		switch {
		case d.ID == publish.ID:
			standing, done = true, 1
		case d.Kind == DeadParked && projections.SameRow(d.Row, target):
			queue = append(queue, d)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(queue, func(a, b Dead) int { return a.Position.Compare(b.Position) })
	for len(queue) > 0 && err == nil {
		n := 0
		if n, err = r.unqueue(ctx, queue, publish, standing); err == nil {
			done, queue, standing = done+n, queue[n:], true
		}
	}
	if !standing {
		return done, err
	}
	if shown := r.show(ctx, target); shown != nil {
		return max(0, done-1), errors.Join(err, fmt.Errorf("%s: %w", publish.Target, shown))
	}
	end := r.Store.Transact(ctx, append(r.forget(&publish), r.unpark(target, 1)))
	if errors.Is(end, store.ErrCondition) { // settled by another worker
		end = nil
	}
	return done, errors.Join(err, end)
}

// unqueue applies the front of a queue: as many effects as a transaction can hold or, if
// they cannot be applied together, only the first one.
func (r *Runner) unqueue(ctx context.Context, queue []Dead, publish Dead, standing bool) (n int, err error) {
	n = r.fit(queue)
	err = r.applyQueued(ctx, queue[:n], publish, standing)
	if n > 1 && (errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrCondition)) {
		n = 1
		err = r.applyQueued(ctx, queue[:n], publish, standing)
	}
	switch {
	case errors.Is(err, store.ErrCondition): // settled by another worker
		return n, nil
	case err != nil:
		return 0, fmt.Errorf("%s: %w", queue[0].Target, err)
	}
	return n, r.dropped(ctx, queue[:n]...)
}

// fit returns how many effects at the front of a queue one transaction can settle,
// together with a DeadPublish and the ledger.
func (r *Runner) fit(queue []Dead) (n int) {
	adds := 0
	for writes := 2; n < min(parkAtOnce, len(queue)); n++ {
		adds += len(queue[n].Adds)
		for _, a := range queue[n].Adds {
			if owntable.IsHeld(a.Field) {
				writes++
			}
		}
		if writes += len(r.forget(&queue[n])); (writes > store.MaxTransact || adds > addsAtOnce) && n > 0 {
			break
		}
	}
	return n
}

// load reads the amounts of a dead letter that its head has no room for. The error is
// store.ErrCondition if another worker settled the letter.
func (r *Runner) load(ctx context.Context, d *Dead) error {
	if !d.more {
		return nil
	}
	whole, err := r.deadByID(ctx, d.ID)
	if errors.Is(err, ErrNoDead) {
		err = store.ErrCondition
	}
	if err != nil {
		return err
	}
	*d = whole
	return nil
}

// applyQueued applies effects and deletes their dead letters in one transaction. The
// transaction also adds the DeadPublish, unless there already is one.
func (r *Runner) applyQueued(ctx context.Context, queue []Dead, publish Dead, standing bool) error {
	var adds []projections.Add
	var ws []store.Write
	for i := range queue {
		d := &queue[i]
		if err := r.load(ctx, d); err != nil {
			return err
		}
		adds = append(adds, d.Adds...)
		ws = append(ws, r.forget(d)...)
	}
	out := len(queue)
	if !standing {
		letters, err := r.keeping(ctx, []Dead{publish})
		if err != nil {
			return err
		}
		ws, out = append(ws, slices.Concat(letters...)...), out-1
	}
	ledger := owntable.Ledger(r.Model.Name, queue[0].Row)
	for {
		s, err := r.spread(ctx, ledger, projections.Sum(adds))
		if err != nil {
			return err
		}
		err = r.Store.Transact(ctx, slices.Concat(ws, s.values, []store.Write{owntable.UnparkLedger(ledger, out, s.adds, r.First())}))
		if !errors.Is(err, store.ErrCondition) {
			return err
		}
		// The effects were settled, or values are not as they were read.
		if again, failed := r.moved(ctx, s); failed != nil || !again {
			return errors.Join(err, failed)
		}
	}
}

// ShowLedger publishes a target's ledger. A target that refuses it is parked, and one that is parked is left.
// It reads both once.
func (r *Runner) ShowLedger(ctx context.Context, target store.Ref) error {
	rows, err := r.Get(ctx, []store.Ref{target, owntable.Ledger(r.Model.Name, target)})
	if err != nil || isParked(rows[1]) {
		return err
	}
	if err = r.showRead(ctx, target, rows[0], rows[1]); errors.Is(err, store.ErrRefused) {
		return r.ParkShown(ctx, target, err.Error())
	}
	return err
}

// show publishes a target's ledger.
// A row that does not exist, or is of no entity that shows anything, is left alone, without an
// error.
func (r *Runner) show(ctx context.Context, target store.Ref) error {
	rows, err := r.Get(ctx, []store.Ref{target, owntable.Ledger(r.Model.Name, target)})
	if err != nil {
		return err
	}
	return r.showRead(ctx, target, rows[0], rows[1])
}

// showRead is show of a target and its ledger as they were read together.
// The write is conditional on what was read. If the row has changed since, it is shown by what it is now (reclaim), so a later
// value is never replaced by an earlier one. ErrRefused says that the row has no room.
func (r *Runner) showRead(ctx context.Context, target store.Ref, row, ledger value.Item) error {
	e := r.publisher(target)
	if _, err := r.unshown(ctx, owntable.Ledger(r.Model.Name, target), target, e, ledger); err != nil {
		return err
	}
	if isGroup(e) {
		return r.showSummary(ctx, target, e, row, ledger)
	}
	if row == nil {
		return nil
	}
	e = r.Model.Table(target.Table).Classify(row)
	if e == nil {
		return nil
	}
	if k := r.shower(e); k != nil {
		return k.Show(ctx, r, target, true)
	}
	wr := r.PublishWrite(target, e, r.based(ledger))
	if len(wr.Ops) == 0 {
		return nil
	}
	wr.Return = true
	out, err := r.showOn(ctx, []store.Write{wr}, []*model.Entity{e})
	switch {
	case err != nil:
		return err
	case errors.Is(out[0].Err, store.ErrRefused):
		return out[0].Err
	case out[0].Err != nil:
		return r.reclaim(ctx, target, e, out[0].Row, ledger)
	}
	return nil
}

// ChangeOf returns the change that a dead letter keeps. The error wraps ErrNoRetry if the
// model has no such rows any more.
func (r *Runner) ChangeOf(d *Dead) (projections.Change, error) {
	rec := d.ChangeRecord()
	t := r.Model.Table(rec.Table)
	if t == nil {
		return projections.Change{}, fmt.Errorf("%s: the record is of no table of the model any more: %w", d.ID, ErrNoRetry)
	}
	c, ok := projections.NewChange(t, &rec)
	if !ok || c.Is == nil && c.Was == nil {
		return c, fmt.Errorf("%s: the record is of none of the model's entities any more: %w", d.ID, ErrNoRetry)
	}
	return c, nil
}

// RetryFix corrects a thing for which a change of its source row is kept as a dead letter. The
// source is read after the position of the change, so the thing has no older one afterwards.
// refused reports that the thing was refused again.
func (r *Runner) RetryFix(ctx context.Context, d *Dead, f Fix) (refused bool, err error) {
	err = r.Correct(ctx, f, d.ID+": "+d.Target, func() events.Position { return RepairAt(d.Position, r.Store.Tip().Seen) })
	var unfixable Unfixable
	switch {
	case errors.Is(err, store.ErrRefused), errors.Is(err, search.ErrRefused):
		return true, nil
	case errors.As(err, &unfixable): // what is there is not ours
		return false, nil
	}
	return false, err
}

// Settle deletes a dead letter whose change was applied again, unless something of it was
// refused and kept once more.
func (r *Runner) Settle(ctx context.Context, d *Dead, kept bool) error {
	if kept {
		return fmt.Errorf("%s: %w again, and is still kept", d.ID, store.ErrRefused)
	}
	return r.Forget(ctx, d)
}
