package follow

import (
	"context"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/store"
)

// ValueFix makes our own table keep the present value of a field that rows follow.
type ValueFix struct {
	runner.BaseFix
	Source store.Ref // the row with the field
	Entity *model.Entity
	Field  string
}

// Thing returns the row and the field.
func (f *ValueFix) Thing() string { return book.RowText(f.Source) + "\x00" + f.Field }

// Stage returns StageValues.
func (*ValueFix) Stage() runner.Stage { return runner.StageValues }

// Correct writes the value.
func (f *ValueFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	return r.RepairFollowed(ctx, f.Entity, f.Field, f.Source, now.Floor)
}

// LinkFix enters a row in the list of the row that it follows.
type LinkFix struct {
	runner.BaseFix
	Row, Of store.Ref
	Follow  *model.Follow
}

// Thing returns the row, and the row that it follows.
func (f *LinkFix) Thing() string { return book.RowText(f.Row) + "\x00" + book.RowText(f.Of) }

// Stage returns StageLinks.
func (*LinkFix) Stage() runner.Stage { return runner.StageLinks }

// Correct enters the row.
func (f *LinkFix) Correct(ctx context.Context, r *runner.Runner, _ *runner.Recounted) (done, differs bool, err error) {
	return r.RepairLink(ctx, f.Row, f.Follow, f.Of)
}

// FollowerFix makes an attribute of a row show the value of the list that it is on.
type FollowerFix struct {
	runner.BaseFix
	Row  store.Ref
	Attr string
	List store.Ref
}

// Thing returns the row, the attribute and the list.
func (f *FollowerFix) Thing() string {
	return book.RowText(f.Row) + "\x00" + f.Attr + "\x00" + book.RowText(f.List)
}

// Stage returns StageFollowers.
func (*FollowerFix) Stage() runner.Stage { return runner.StageFollowers }

// Correct writes the value.
func (f *FollowerFix) Correct(ctx context.Context, r *runner.Runner, _ *runner.Recounted) (done, differs bool, err error) {
	return r.RepairFollowing(ctx, f.Row, f.Attr, f.List)
}
