package copies

import (
	"context"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/store"
)

// RowFix makes a row what a rule makes of its source row, or deletes it.
type RowFix struct {
	runner.BaseFix
	Row, Source store.Ref
	Rule        *model.RowRule
}

// Thing returns the row and its source.
func (f *RowFix) Thing() string { return book.RowText(f.Row) + "\x00" + book.RowText(f.Source) }

// Stage returns StageRows.
func (*RowFix) Stage() runner.Stage { return runner.StageRows }

// Correct writes or deletes the row.
func (f *RowFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	return r.RepairCopy(ctx, f.Rule, f.Row, f.Source, now.Floor)
}
