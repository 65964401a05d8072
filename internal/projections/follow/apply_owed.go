package follow

import (
	"context"
	"errors"
	"slices"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// A table of followers may take no writes for long (runner/outage.go). Then the list is owed, once for
// the table: when the table takes writes again, a job gives the present value to all followers. A row that has left a
// list is still as it was, so its place on the list is owed too, and goes after the row has changed.

// outlast returns the followers whose tables take writes, and notes that the list is owed to the others.
func outlast(ctx context.Context, r *runner.Runner, list string, of []serving) (rest []serving, err error) {
	var owed []runner.Owed
	met := map[string]bool{}
	for _, s := range of {
		switch {
		case r.IsOut(s.row.Table) == nil:
			rest = append(rest, s)
		case !met[s.row.Table]:
			met[s.row.Table] = true
			owed = append(owed, runner.Owed{Row: s.row, OwedRow: owntable.OwedRow{Kind: owntable.OwedFollow, List: list}})
		}
	}
	return rest, r.OweSmall(ctx, owed...)
}

// oweLeft notes that a row's place on a list is to be looked at again.
func oweLeft(ctx context.Context, r *runner.Runner, row store.Ref, attr, list string) error {
	return r.OweSmall(ctx, runner.Owed{Row: row, OwedRow: owntable.OwedRow{Kind: owntable.OwedLeft, Attr: attr, List: list}})
}

// isOwed reports whether followers in some table wait for the value of a list.
func isOwed(ctx context.Context, r *runner.Runner, list string) (bool, error) {
	var refs []store.Ref
	for _, f := range r.Model.Follows {
		if at := owntable.OwedFollowAt(r.Model.Name, f.Rule.Into.Table.Name, list); !slices.Contains(refs, at) {
			refs = append(refs, at)
		}
	}
	rows, err := r.Get(ctx, refs)
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if row != nil {
			return true, nil
		}
	}
	return false, nil
}

// Settle starts the job of a list that is owed, or takes a row off a list that it has left.
func (Kind) Settle(ctx context.Context, r *runner.Runner, o runner.Owed) (mine, done bool, err error) {
	switch o.Kind {
	case owntable.OwedFollow:
		done, err = settleList(ctx, r, o.List)
		return true, done, err
	case owntable.OwedLeft:
		done, err = settleLeft(ctx, r, &o)
		return true, done, err
	}
	return false, false, nil
}

// settleList starts a job for all followers. done is false while one of the same value is under way: it may have
// left these out.
func settleList(ctx context.Context, r *runner.Runner, list string) (done bool, err error) {
	row, err := r.GetRow(ctx, owntable.FollowedList(list))
	if err != nil || row == nil {
		return err == nil, err
	}
	return r.Did(ctx, owntable.BeginFollow(r.Model.Name, list, "", keptIn(row).Position))
}

// settleLeft takes a row off a list if it follows the value no longer. done is false while the row itself is
// owed: it may still come to follow the value.
func settleLeft(ctx context.Context, r *runner.Runner, o *runner.Owed) (done bool, err error) {
	rows, err := r.Get(ctx, []store.Ref{owntable.OwedCopyAt(r.Model.Name, o.Row), owntable.OwedEntryAt(r.Model.Name, o.Row)})
	if err != nil || rows[0] != nil || rows[1] != nil {
		return false, err
	}
	err = r.Store.Transact(ctx, takeOff(o.Row, o.Attr, o.List))
	switch {
	case errors.Is(err, store.ErrCondition): // it follows the value
		return true, nil
	case errors.Is(err, store.ErrConflict):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, unkept(ctx, r, owntable.FollowedList(o.List))
}
