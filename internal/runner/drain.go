package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A queue that a full ledger cannot take in order may still fit in the end: effects that
// give room, such as deletions, wait behind those that need it. Amounts come to the same in
// any order, so what has no room is left out, and tried again once others made room. The
// target shows nothing of it until the queue is empty.

// drain is a queue that is applied in the order in which its effects have room.
type drain struct {
	*Runner
	publish  Dead
	standing bool   // there is a dead letter publish
	full     bool   // the ledger has no room for the first effect
	done     int    // how many effects were settled
	left     []Dead // effects that the ledger has no room for
	refused  error  // of the last of these
}

// all applies a queue whose first effect was refused, as far as the ledger has room. It
// returns refused if that is not for want of room.
func (q *drain) all(ctx context.Context, queue []Dead, refused error) error {
	ledger, err := q.GetRow(ctx, owntable.Ledger(q.Model.Name, q.publish.Row))
	if err != nil {
		return err
	}
	if err := q.load(ctx, &queue[0]); err != nil && !errors.Is(err, store.ErrCondition) {
		return err
	}
	if q.full = ledger.Size()+value.Item(sumOf(queue[:1])).Size()+parkRoom > store.MaxItemBytes; !q.full {
		return refused
	}
	for q.left = queue; len(q.left) > 0; {
		todo, before := q.left, q.done
		q.left = nil
		for len(todo) > 0 {
			n := q.fit(todo)
			if err := q.some(ctx, todo[:n]); err != nil {
				return err
			}
			todo = todo[n:]
		}
		if q.done == before {
			return fmt.Errorf("%d of the queue are left: %w", len(q.left), fullLedger(q.refused))
		}
	}
	return nil
}

// some applies effects in one transaction or, if the ledger has no room for that or another
// worker settled one of them, one by one.
func (q *drain) some(ctx context.Context, effects []Dead) error {
	err := q.apply(ctx, effects)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrCondition):
		return err
	case len(effects) == 1:
		q.refused, q.left = err, append(q.left, effects...)
		return nil
	}
	for i := range effects {
		if err := q.some(ctx, effects[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// apply applies effects in one transaction. If the ledger has no room, it removes
// accumulators that hold 0.
func (q *drain) apply(ctx context.Context, effects []Dead) error {
	err := q.applyQueued(ctx, effects, q.publish, q.standing)
	for errors.Is(err, store.ErrRefused) {
		trimmed, _, failed := q.trim(ctx, effects[0].Row, sumOf(effects))
		if failed == nil && !trimmed {
			trimmed, _, failed = q.drop(ctx, effects[0].Row, sumOf(effects))
		}
		if failed != nil {
			return failed
		}
		if !trimmed {
			break
		}
		err = q.applyQueued(ctx, effects, q.publish, q.standing)
	}
	switch {
	case errors.Is(err, store.ErrCondition) && len(effects) == 1: // settled by another worker
		q.done++
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", q.publish.Target, err)
	}
	q.done, q.standing = q.done+len(effects), true
	return q.dropped(ctx, effects...)
}

// sumOf returns what effects add together.
func sumOf(effects []Dead) []value.Attr {
	var adds []projections.Add
	for i := range effects {
		adds = append(adds, effects[i].Adds...)
	}
	return owntable.InLedger(projections.Sum(adds))
}

// trim removes accumulators that hold 0, the largest first, from a ledger that has no room
// for adds. trimmed says that the caller should write the ledger again; full, that it has
// no room and there are none.
func (r *Runner) trim(ctx context.Context, target store.Ref, adds []value.Attr) (trimmed, full bool, err error) {
	ref := owntable.Ledger(r.Model.Name, target)
	ledger, err := r.GetRow(ctx, ref)
	if err != nil {
		return false, false, err
	}
	out := roomier{ledger: owntable.LedgerRow(ledger), need: ledger.Size() + value.Item(adds).Size() + parkRoom - store.MaxItemBytes}
	if out.need <= 0 {
		return false, false, nil
	}
	out.zeros()
	if len(out.gone) == 0 {
		return false, true, nil
	}
	done, err := r.Write(ctx, []store.Write{out.ledger.Without(ref, out.gone, 0, r.First())})
	if err != nil {
		return false, false, err
	}
	// A failed condition means that another worker wrote it.
	return !errors.Is(done[0].Err, store.ErrRefused), true, nil
}
