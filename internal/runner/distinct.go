package runner

import (
	"context"
	"errors"
	"slices"

	"weir/internal/contribution"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A distinct has a row of our own table for each of its values (owntable.ValueRow), and
// their number in the ledger. Whatever counts in a ledger changes both in one transaction: the
// values on condition that they are as they were read, the ledger on its own conditions. So all that is
// true of a ledger is true of its values: an effect counts once, by the ledger's positions, by marks
// beside it, or by contribution; amounts of a letter are in neither; and the ledger's version rises when a
// value changes. A crash leaves both as they were, or both changed.

// spreading is the work of amounts for a ledger.
type spreading struct {
	ledger  store.Ref
	amounts []value.Attr
	adds    []value.Attr        // the amounts that the ledger adds
	values  []store.Write       // the writes of its values, in the same transaction
	read    []owntable.ValueRow // that these depend on
}

// spreadLedger is spreadAll for one ledger.
func (r *Runner) spreadLedger(ctx context.Context, ledger store.Ref, amounts []value.Attr) (spreading, error) {
	all := []spreading{{ledger: ledger, amounts: amounts}}
	err := r.spreadAll(ctx, all)
	return all[0], err
}

// spreadAll reads the values that amounts are for, and sets the additions of their ledgers and the writes
// of these values. Amounts without values stay as they are, and nothing is read for them.
func (r *Runner) spreadAll(ctx context.Context, all []spreading) error {
	var refs []store.Ref
	for i := range all {
		for _, a := range all[i].amounts {
			if owntable.IsHeld(a.Name) {
				refs = append(refs, owntable.ValueAt(all[i].ledger, a.Name))
			}
		}
	}
	rows, err := r.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i := range all {
		s := &all[i]
		n := owntable.CountHeld(s.amounts)
		if err := s.decideAmounts(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// decideAmounts decides on the amounts, by the rows of their values in the same order.
func (s *spreading) decideAmounts(rows []value.Item) error {
	if len(rows) == 0 {
		s.adds = s.amounts
		return nil
	}
	s.adds, s.values, s.read = nil, nil, nil
	for _, a := range s.amounts {
		if !owntable.IsHeld(a.Name) {
			s.adds = append(s.adds, a)
			continue
		}
		is, err := owntable.ValueFrom(s.ledger, a.Name, rows[0])
		if err != nil {
			return err
		}
		rows = rows[1:]
		w, more, err := is.Add(a.Value)
		if err != nil {
			return err
		}
		attr, _ := owntable.HeldIn(a.Name)
		s.values, s.read = append(s.values, w), append(s.read, is)
		s.adds = append(s.adds, value.Attr{Name: owntable.SumAccumulator(attr), Value: value.OfInt(more)})
	}
	s.adds = contribution.Sum(s.adds)
	return nil
}

// isMoved reports whether the values that a transaction depended on are other than they were read.
func (r *Runner) isMoved(ctx context.Context, was spreading) (bool, error) {
	now, err := r.spreadLedger(ctx, was.ledger, was.amounts)
	if err != nil {
		return false, err
	}
	return !slices.EqualFunc(was.read, now.read, func(a, b owntable.ValueRow) bool { return a.Same(&b) }), nil
}

// counting is the part of a batch that is counted by position in one ledger, at a time.
type counting struct {
	target projections.Target
	total  []value.Attr
}

// spreadAtOnce is how many transactions of ledgers with values are sent at a time.
const spreadAtOnce = 8

// countWrites does statement 1 (countWrite) for each target and returns its outcomes, with the
// ledgers as they are then. It does one write where a target has no values of distincts,
// and otherwise a transaction, whose ErrCondition may also come from such a value: then the ledger has
// not seen the steps.
func (w *Work) countWrites(ctx context.Context, cs []counting) ([]store.Outcome, error) {
	var alone []store.Write
	var at []int // of alone in cs
	var all []spreading
	var of []int // of all in cs
	for i := range cs {
		if owntable.CountHeld(cs[i].total) > 0 {
			all, of = append(all, spreading{ledger: owntable.Ledger(w.Model.Name, cs[i].target.Row), amounts: cs[i].total}), append(of, i)
		} else {
			alone, at = append(alone, w.countWrite(&cs[i].target, cs[i].total)), append(at, i)
		}
	}
	if err := w.spreadAll(ctx, all); err != nil {
		return nil, err
	}
	if err := w.CheckAge(); err != nil {
		return nil, err
	}
	out := make([]store.Outcome, len(cs))
	done, err := w.Write(ctx, alone)
	if err != nil {
		return nil, err
	}
	for j, i := range at {
		out[i] = done[j]
	}
	refs := make([]store.Ref, len(all))
	err = parallel.Do(len(all), w.AtOnce(spreadAtOnce), func(j int) error {
		refs[j] = all[j].ledger
		err := w.Store.Transact(ctx, append(all[j].values, w.countWrite(&cs[of[j]].target, all[j].adds)))
		switch {
		case errors.Is(err, store.ErrConflict):
			err = store.ErrCondition
		case err != nil && !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrRefused):
			return err
		}
		out[of[j]].Err = err
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows, err := w.Get(ctx, refs)
	for j := range rows {
		out[of[j]].Row = rows[j]
	}
	return out, err
}
