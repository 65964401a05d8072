package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Some sources keep only the changes of one row in order and do not say which shard a
// change came from. A position in a ledger then says nothing about rows other than the
// one it came from. For such a source, each source row has a deduplication mark beside
// each ledger that it counts in: the position of its last counted change. Ledger and
// marks change in one transaction, so each change counts once, however often it is
// delivered. Marks expire after 48 hours, twice as long as a stream keeps its records.

// marksAtOnce keeps a transaction with marks, a ledger and dead letters below its limit.
const (
	marksAtOnce = 90
	parkMarked  = 20
	markTries   = 5
)

// countMarked is count with deduplication marks. It leaves no target to be sent again.
func (w *Work) countMarked(ctx context.Context, targets []*projections.Target, ledgers map[*projections.Target]value.Item) error {
	for _, t := range targets {
		for tries := 0; len(t.Steps) > 0; tries++ {
			if err := w.countSome(ctx, t, tries); err != nil {
				return fmt.Errorf("counting in the ledger of %s: %w", w.Describe(t.Row), err)
			}
		}
		ledger, err := w.GetRow(ctx, owntable.Ledger(w.Model.Name, t.Row))
		if err != nil {
			return err
		}
		if !isParked(ledger) {
			ledgers[t] = ledger
		}
	}
	return nil
}

// countSome counts the first steps. It leaves out steps that were counted before, and
// parks all steps if the target is parked.
func (w *Work) countSome(ctx context.Context, t *projections.Target, tries int) error {
	if err := w.Fresh(); err != nil {
		return err
	}
	steps := fitting(t.Steps[:min(marksAtOnce, len(t.Steps))], 1)
	part := projections.Target{Steps: steps}
	s, err := w.spread(ctx, owntable.Ledger(w.Model.Name, t.Row), part.Total())
	if err != nil {
		return err
	}
	err = w.Store.Transact(ctx, slices.Concat(w.marks(t, steps), s.values, []store.Write{owntable.AddLedger(s.ledger, s.adds, w.First())}))
	switch {
	case errors.Is(err, store.ErrRefused):
		_, err = w.uncounted(ctx, t, err, nil)
	case errors.Is(err, store.ErrCondition):
		most := markTries
		if len(s.values) > 0 { // other workers write these rows, too
			most = MaxRounds
		}
		return w.countedMarked(ctx, t, tries < most, err)
	case err == nil:
		t.Steps = t.Steps[len(steps):]
	}
	return err
}

// countedMarked finds out why the ledger, a mark or a value refused the steps. Without again, cause is
// the error if none of the steps was counted.
func (w *Work) countedMarked(ctx context.Context, t *projections.Target, again bool, cause error) error {
	before := len(t.Steps)
	if err := w.dropSeen(ctx, t); err != nil {
		return err
	}
	ledger, err := w.GetRow(ctx, owntable.Ledger(w.Model.Name, t.Row))
	switch {
	case err != nil:
		return err
	case isParked(ledger):
		return w.park(ctx, t, "effects that came before are parked")
	case len(t.Steps) == before && !again:
		return cause // it changes each time that it is tried
	}
	return nil
}

// marks returns the writes that move the marks of the steps' rows. Each fails if the
// row's mark has passed the first of the row's steps.
func (w *Work) marks(t *projections.Target, steps []projections.Step) []store.Write {
	var out []store.Write
	at := map[string]int{}
	for _, s := range steps {
		mark := owntable.MoveMark(w.markOf(t, s), s.Position, w.Expiry())
		id := mark.Ref.Key.Sort.Text()
		if i, ok := at[id]; ok {
			out[i].Ops = mark.Ops // the condition stays that of the row's first step
			continue
		}
		at[id] = len(out)
		out = append(out, mark)
	}
	return out
}

// markOf is the deduplication mark of a step's source row for a target.
func (w *Work) markOf(t *projections.Target, s projections.Step) store.Ref {
	return owntable.Mark(w.Model.Name, t.Row, w.Changes[s.Change].Row)
}

// unmarked splits steps into those that were counted or parked before, and the rest.
// Marks are read strongly. A step at or below its mark's position was counted, or parked.
func (w *Work) unmarked(ctx context.Context, t *projections.Target) (seen, left []projections.Step, err error) {
	var refs []store.Ref
	at := map[string]int{}
	of := make([]int, len(t.Steps))
	for i, s := range t.Steps {
		ref := w.markOf(t, s)
		id := ref.Key.Sort.Text()
		if _, ok := at[id]; !ok {
			at[id] = len(refs)
			refs = append(refs, ref)
		}
		of[i] = at[id]
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range t.Steps {
		if s.Position.Compare(owntable.MarkFrom(rows[of[i]])) <= 0 {
			seen = append(seen, s)
		} else {
			left = append(left, s)
		}
	}
	return seen, left, nil
}
