package status

import (
	"context"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/value"
)

// FactFix makes a fact say what its row reports.
type FactFix struct {
	List, Name string
	noted      value.Item
}

// Thing returns the fact's place.
func (f *FactFix) Thing() string { return f.List + "\x00" + f.Name }

// Stage returns StageFacts.
func (*FactFix) Stage() runner.Stage { return runner.StageFacts }

// Note reads the fact.
func (f *FactFix) Note(ctx context.Context, r *runner.Runner) (err error) {
	f.noted, err = r.GetRow(ctx, owntable.Fact(r.Model.Name, f.List, f.Name))
	return err
}

// Correct writes the recounted fact, or that there is none. done is false if the fact has
// changed since it was noted.
func (f *FactFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	told := runner.RecountOf[*recount](now.Recounts).told(f.List, f.Name)
	have := f.noted.Get(owntable.Told)
	if (told == nil) == have.IsMissing() && len(told) == len(have.Item()) && value.EqualItems(told.With(), have.Item().With()) {
		return true, false, nil
	}
	wr := factWrite(r, &Fact{List: f.List, Name: f.Name, Told: told, Position: runner.RepairAt(events.PositionFrom(f.noted.Get(owntable.Position)), now.Floor)})
	wr.If = runner.AsNoted(owntable.Position, f.noted)
	done, err = r.Did(ctx, wr)
	return done, true, err
}
