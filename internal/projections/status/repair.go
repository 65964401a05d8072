package status

import (
	"context"

	"weir/internal/book"
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
	f.noted, err = r.GetRow(ctx, book.Fact(r.Model.Name, f.List, f.Name))
	return err
}

// Correct writes the recounted fact.
func (f *FactFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	return r.RepairFact(ctx, f.List, f.Name, f.noted, runner.RecountOf[*recount](now.Recounts).told(f.List, f.Name), now.Floor)
}
