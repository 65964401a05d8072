package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/deadletter"
)

// Letters has the dead letters of the runner's model or, in the runner of a generation, of its build.
func (r *Runner) Letters() deadletter.Box {
	return deadletter.Box{Model: r.Model, Store: r.Store, TTL: r.LetterTTL, Now: r.Now}
}

// EachDeadLetter lists the dead letters page by page, without their records. Long texts are
// shortened. Those of ledgers that a build has replaced are left out.
func (r *Runner) EachDeadLetter(ctx context.Context, yield func(deadletter.Letter) error) error {
	all, err := r.allGenerations(ctx)
	for i := 0; i < len(all) && err == nil; i++ {
		err = all[i].Letters().Each(ctx, func(d deadletter.Letter) error {
			if all[i].isReplaced(&d) {
				return nil
			}
			return yield(d)
		})
	}
	return err
}

// DeadByID reads a whole dead letter, with its record. The error wraps deadletter.ErrNoDead if there
// is none.
func (r *Runner) DeadByID(ctx context.Context, id string) (deadletter.Letter, error) {
	_, d, err := r.findLetter(ctx, id)
	return d, err
}

// findLetter returns a whole dead letter, and the runner that has it. The same letter may wait for
// the ledger that a target shows and for one that a build has replaced: then it is the first.
func (r *Runner) findLetter(ctx context.Context, id string) (*Runner, deadletter.Letter, error) {
	all, err := r.allGenerations(ctx)
	if err != nil {
		return nil, deadletter.Letter{}, err
	}
	var replaced *Runner
	var old deadletter.Letter
	for _, r := range all {
		d, err := r.Letters().ByID(ctx, id)
		switch {
		case errors.Is(err, deadletter.ErrNoDead):
		case err == nil && r.isReplaced(&d):
			replaced, old = r, d
		default:
			return r, d, err
		}
	}
	if replaced == nil {
		return nil, deadletter.Letter{}, fmt.Errorf("%s: %w", id, deadletter.ErrNoDead)
	}
	return replaced, old, nil
}
