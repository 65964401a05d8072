package status

import (
	"context"
	"errors"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
)

// What rows report about statuses is kept in our own table as facts, one row for each.
// The newest position of a fact's source wins. After that, weir recomputes the target: it
// raises the version of the target's ledger, then reads everything that the status
// depends on with strong consistency, and then shows the result under the raised version.
// So the recompute with the highest version has read everything that any lower one had,
// and no lower version is shown over it. Streams may arrive in any order, and a batch any
// number of times. What the target row itself says is part of the input, and the write
// fails if that has changed since it was read.

// keepFacts keeps the facts of the batch, before any status is recomputed.
func (w *work) keepFacts(ctx context.Context) error {
	ws := make([]store.Write, len(w.facts))
	for i := range w.facts {
		f := &w.facts[i]
		ws[i] = f.row().Keep(owntable.Fact(w.Model.Name, f.List, f.Name), w.Expiry())
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if !errors.Is(out[i].Err, store.ErrRefused) {
			continue
		}
		c := &w.Changes[w.factOf[i]]
		w.Kept(w.factOf[i])
		d := runner.Dead{Kind: runner.DeadImage, Target: w.facts[i].List, Reason: out[i].Err.Error(), ShardKey: w.ShardKey, Position: c.Position, Record: runner.RecordOf(c), Time: c.Time}
		if _, err := w.KeepDead(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// recomputeTargets recomputes the statuses of the batch's targets, and of all targets of groups that
// changed. A long list of targets becomes a job, so that other targets need not wait for
// it.
func (w *work) recomputeTargets(ctx context.Context) error {
	var refs []store.Ref
	var of []*projections.Target
	for _, t := range w.Targets {
		if t.Recompute {
			refs, of = append(refs, t.Row), append(of, t)
		}
	}
	refused, err := recompute(ctx, w.Runner, refs, false)
	if err != nil {
		return err
	}
	for i, reason := range refused {
		if reason == nil {
			continue
		}
		for _, change := range of[i].Asked {
			w.Kept(change)
		}
		if err := w.ParkTarget(ctx, of[i], reason.Error()); err != nil {
			return err
		}
	}
	for _, list := range w.lists {
		last, err := recomputeAll(ctx, w.Runner, list, "")
		if err == nil && last != "" {
			err = startJob(ctx, w.Runner, list, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
