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

// Correct writes the recounted fact.
func (f *FactFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	return repairFact(ctx, r, f.List, f.Name, f.noted, runner.RecountOf[*recount](now.Recounts).told(f.List, f.Name), now.Floor)
}

// repairFact makes a fact say what told says, or nothing if told is nil. done is false if
// the fact has changed since it was noted.
func repairFact(ctx context.Context, r *runner.Runner, list, name string, noted, told value.Item, floor events.Position) (done, differs bool, err error) {
	have := noted.Get(owntable.Told)
	if (told == nil) == have.IsMissing() && len(told) == len(have.Item()) && value.EqualItems(told.With(), have.Item().With()) {
		return true, false, nil
	}
	wr := factWrite(r, &Fact{List: list, Name: name, Told: told, Position: runner.RepairAt(events.PositionFrom(noted.Get(owntable.Position)), floor)})
	wr.If = runner.AsNoted(owntable.Position, noted)
	done, err = r.Did(ctx, wr)
	return done, true, err
}
