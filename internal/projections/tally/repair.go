package tally

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// LedgerFix makes a ledger hold what the rows count, with the values of distincts beside
// it, and its dead letter say which sums its target cannot show.
type LedgerFix struct {
	runner.UsualUnits
	Name   string // its partition key
	noted  value.Item
	values []value.Item    // the rows of its values
	in     *owntable.Build // the generation that it is of, nil for the first one
}

// Thing returns the partition key.
func (f *LedgerFix) Thing() string { return f.Name }

// Stage returns StageCounts.
func (*LedgerFix) Stage() runner.Stage { return runner.StageCounts }

// ref is the ledger's row in the own table.
func (f *LedgerFix) ref() store.Ref { return owntable.LedgerAt(f.Name) }

// Note reads the ledger, and then its values: each change of these raises the ledger's version.
func (f *LedgerFix) Note(ctx context.Context, r *runner.Runner) (err error) {
	if f.noted, err = r.GetRow(ctx, f.ref()); err != nil {
		return err
	}
	f.values = nil
	return r.EachOwn(ctx, owntable.ValuesOfLedger(f.Name), func(row value.Item) error {
		f.values = append(f.values, row)
		return nil
	})
}

// Correct writes the recounted accumulators, without those that are 0, and then what its
// target cannot show of them. A ledger that a build has replaced since it was found is left.
func (f *LedgerFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	recounted := runner.RecountOf[*recount](now.Recounts)
	if !recounted.generation(f.Name) {
		return false, true, nil
	}
	if f.in != nil {
		r = r.In(*f.in)
	}
	of, sums := target{}, value.Item(nil)
	if t := recounted.expect[f.Name]; t != nil {
		of, sums = *t, t.ledger()
		sums = slices.DeleteFunc(sums, func(a value.Attr) bool { return a.Value.Sign() == 0 })
	}
	values := f.wrong(of.values)
	w, differs, err := owntable.LedgerRow(f.noted).Repair(f.ref(), sums, now.Applied, r.First(), len(values) > 0)
	switch {
	case !differs:
	case err != nil:
		return false, true, err
	default:
		if err := r.ForgetKept(ctx, of.row); err != nil {
			return false, true, err
		}
		if done, err := f.write(ctx, r, w, values); !done || err != nil {
			return false, true, err
		}
	}
	is, err := r.GetRow(ctx, f.ref())
	if err != nil {
		return false, true, err
	}
	wrong, err := r.NoteUnshown(ctx, f.ref(), of.row, of.entity, is)
	if err == nil && (differs || wrong) {
		err = f.expire(ctx, r)
	}
	return true, differs || wrong, err
}

// wrong returns the writes that make the values beside the ledger what the rows have, each on
// condition that it is as it was noted.
func (f *LedgerFix) wrong(want map[string]*held) (ws []store.Write) {
	at := map[string]value.Item{} // by sort key
	for _, row := range f.values {
		at[row.Get(owntable.Sort).Text()] = row
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		sort := owntable.ValueAt(f.ref(), name).Key.Sort.Text()
		if is, rows := owntable.ValueIn(at[sort]); at[sort] == nil || is != name || !value.Equal(rows, want[name].rows) {
			ws = append(ws, owntable.PutValue(f.ref(), name, at[sort], want[name].rows))
		}
		delete(at, sort)
	}
	for _, sort := range slices.Sorted(maps.Keys(at)) {
		ws = append(ws, owntable.DropValue(at[sort]))
	}
	return ws
}

// write writes the ledger, and as many values with it as a transaction takes. Each further one
// raises the ledger's version, on condition that nothing was counted since the one before: those that
// were written stay, and another attempt corrects the rest.
func (f *LedgerFix) write(ctx context.Context, r *runner.Runner, w store.Write, values []store.Write) (done bool, err error) {
	if len(values) == 0 {
		return r.Did(ctx, w)
	}
	own, ledger := owntable.Table(), f.noted
	for len(values) > 0 {
		n := min(owntable.ValuesAtOnce, len(values))
		done, err = runner.Transacted(r.Store.Transact(ctx, append(slices.Clip(values[:n]), w)))
		if !done || err != nil {
			return done, err
		}
		after := w.Put
		if after == nil {
			if after, err = own.Apply(&w, ledger); err != nil {
				return false, err
			}
		}
		ledger, values = after, values[n:]
		w = owntable.LedgerRow(ledger).Raise(f.ref())
	}
	return true, nil
}

// expire makes the ledger expire if it is empty and its target is gone: no record is to come
// that shows the target. A ledger whose name does not tell its target stays.
func (f *LedgerFix) expire(ctx context.Context, r *runner.Runner) error {
	target, ok := owntable.RowOf(strings.TrimPrefix(f.Name, owntable.Ledgers(r.Model.Name)))
	if !ok || r.Model.Table(target.Table) == nil {
		return nil
	}
	ledger, err := r.GetRow(ctx, f.ref())
	if err != nil {
		return err
	}
	return r.Expire(ctx, []store.Ref{target}, []value.Item{ledger})
}

// builtFix is that of a ledger that a build made and that has marks. What it holds is the sum
// of these, so it cannot be recounted alone.
type builtFix struct{ LedgerFix }

// Stage returns StageShown: nothing is recounted for it.
func (*builtFix) Stage() runner.Stage { return runner.StageShown }

// Note does nothing.
func (*builtFix) Note(context.Context, *runner.Runner) error { return nil }

// Correct says which command does it.
func (*builtFix) Correct(_ context.Context, r *runner.Runner, _ *runner.Recounted) (done, differs bool, err error) {
	return false, true, runner.Unfixable("it was built from the rows: " + r.Model.Command("build", "--again") + " builds it once more")
}
