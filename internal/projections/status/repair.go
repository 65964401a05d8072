package status

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// FactFix makes a fact say what its row reports.
type FactFix struct {
	runner.UsualUnits
	List, Name string
	noted      owntable.FactRow
}

// Thing returns the fact's place.
func (f *FactFix) Thing() string { return f.List + "\x00" + f.Name }

// Stage returns StageFacts.
func (*FactFix) Stage() runner.Stage { return runner.StageFacts }

// ref is the row of the fact in the own table.
func (f *FactFix) ref(r *runner.Runner) store.Ref {
	return owntable.Fact(r.Model.Name, f.List, f.Name)
}

// Note reads the fact.
func (f *FactFix) Note(ctx context.Context, r *runner.Runner) error {
	row, err := r.GetRow(ctx, f.ref(r))
	f.noted = owntable.FactFrom(row)
	return err
}

// Correct writes the recounted fact, or that there is none. done is false if the fact has
// changed since it was noted.
func (f *FactFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	told := runner.RecountOf[*recount](now.Recounts).told(f.List, f.Name)
	if value.EqualItems(told, f.noted.Says) {
		return true, false, nil
	}
	is := owntable.FactRow{Says: told, Position: runner.RepairAt(f.noted.Position, now.Floor)}
	done, err = r.Did(ctx, f.noted.Replace(f.ref(r), is, r.Expiry()))
	if err == nil && done {
		err = f.forgetSkip(ctx, r)
	}
	return done, true, err
}

// forgetSkip takes away the skip of the target's ledger, in which the correction may have put a
// fact.
func (f *FactFix) forgetSkip(ctx context.Context, r *runner.Runner) error {
	derivation, target := owntable.CutFactList(f.List)
	for _, l := range r.Model.Latest {
		if l.Name == derivation {
			_, err := r.Write(ctx, []store.Write{owntable.RaiseLedger(owntable.LedgerAt(owntable.Ledgers(r.Model.Name)+target), r.First(), nil, owntable.Skip{Attr: l.Set[0].Name})})
			return err
		}
	}
	return nil
}
