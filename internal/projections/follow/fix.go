package follow

import (
	"context"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// ValueFix makes our own table keep the present value of a field that rows follow.
type ValueFix struct {
	runner.UsualUnits
	Source store.Ref // the row with the field
	Entity *model.Entity
	Field  string
}

// Thing returns the row and the field.
func (f *ValueFix) Thing() string { return owntable.RowText(f.Source) + "\x00" + f.Field }

// list is the row that keeps the value.
func (f *ValueFix) list(m *model.Model) store.Ref {
	return owntable.Followed(m.Name, FieldName(f.Entity, f.Field), f.Source)
}

// Stage returns StageValues.
func (*ValueFix) Stage() runner.Stage { return runner.StageValues }

// Correct makes our own table keep the field's present value, or the fact that the source
// row does not exist; then a last value stays the one that is kept. A job that the same
// transaction creates gives the value to all followers. It is needed because a change that
// is still to come may be below the floor, and would then give its value to no follower.
func (f *ValueFix) Correct(ctx context.Context, r *runner.Runner, floor events.Position) (done, differs bool, err error) {
	list := f.list(r.Model)
	noted, err := r.GetRow(ctx, list)
	if err != nil {
		return false, false, err
	}
	row, err := r.GetRow(ctx, f.Source)
	if err != nil {
		return false, false, err
	}
	was := keptIn(noted)
	is := owntable.FollowedRow{
		Value: ValueOf(f.Entity, f.Entity.Field(f.Field), row), Position: runner.FixedAt(was.Position, floor), Row: projections.Keyed(r.Model, f.Source),
	}
	if r.Model.Table(f.Source.Table).Classify(row) != f.Entity {
		is.Gone, is.Value = true, value.Value{}
		if KeptLast(f.Entity, f.Entity.Field(f.Field)) {
			is.Value = was.Value
		}
	}
	if noted != nil && value.Equal(was.Value, is.Value) && was.Gone == is.Gone || noted == nil && is.Gone {
		return true, false, nil
	}
	if is.Position == was.Position {
		// A change between that one and the value that was just read is at least at the next
		// position. The followers that show the old value take only a newer one.
		is.Position = is.Position.Next()
	}
	job := owntable.EntriesJob(list)
	job.Position = is.Position
	done, err = runner.Transacted(r.Store.Transact(ctx, []store.Write{was.Replace(list, is), job.Begin(r.Model.Name, r.Now())}))
	return done, true, err
}

// LinkFix enters a row in the list of the row that it follows.
type LinkFix struct {
	runner.UsualUnits
	Row store.Ref
	projections.Following
}

// Thing returns the row, the attribute and the row that it follows.
func (f *LinkFix) Thing() string {
	return owntable.RowText(f.Row) + "\x00" + f.Attr + "\x00" + owntable.RowText(f.Of)
}

// Stage returns StageLinks.
func (*LinkFix) Stage() runner.Stage { return runner.StageLinks }

// Correct enters the row in the list of what its attribute follows, and makes the row show
// the value there.
func (f *LinkFix) Correct(ctx context.Context, r *runner.Runner, floor events.Position) (done, differs bool, err error) {
	row, err := r.GetRow(ctx, f.Row)
	if err != nil || row == nil {
		return true, false, err
	}
	list := listOf(r.Model, f.Following)
	marked := onList(row, f.Attr, list.Key.Partition.Text())
	if is, ok := FollowedBy(f.Follow, row); !marked && (!ok || !projections.SameRow(is, f.Of)) {
		return true, false, nil
	}
	w := Work{runner.NewWork(r, runner.Batch{}, projections.NewGathered(0)), &Gathered{}}
	puts := []*projections.Put{{Row: f.Row, Follows: []projections.Following{f.Following}}}
	entry, err := r.GetRow(ctx, owntable.Follower(list, f.Attr, f.Row))
	if err != nil {
		return false, false, err
	}
	if isFollower(r.Model, entry, f.Row, f.Attr) && marked {
		return true, false, nil
	}
	if err := w.Enter(ctx, puts); err != nil {
		return false, true, err
	}
	values, err := w.Current(ctx, puts)
	if err != nil {
		return false, true, err
	}
	ops := w.Ops(puts[0], f.Follow, values)
	if _, kept := values[list.Key.Partition.Text()]; !kept {
		is, err := r.GetRow(ctx, f.Of)
		if err == nil && r.Model.Table(f.Of.Table).Classify(is) == f.Source {
			_, _, err = (&ValueFix{Source: f.Of, Entity: f.Source, Field: f.Field.Name}).Correct(ctx, r, floor)
			return false, true, err
		}
		if err != nil {
			return false, true, err
		}
		if f.Keep { // as far as is known, the row shows the last value
			ops = ops[1:]
		}
	}
	cond := store.Cond{r.Present(f.Row.Table)}
	for _, name := range []string{owntable.Version, owntable.Follows(f.Attr), owntable.FollowVersion(f.Attr)} {
		cond = append(cond, []store.Test{store.AsRead(name, row.Get(name))})
	}
	done, err = r.Did(ctx, store.Write{Ref: f.Row, Ops: ops, If: cond})
	if err == nil && done {
		err = w.Compare(ctx, puts, values, map[*projections.Put]bool{puts[0]: true}, events.Position{})
	}
	return done, true, err
}

// FollowerFix makes an attribute of a row show the value of the list that it is on.
type FollowerFix struct {
	runner.UsualUnits
	Row  store.Ref
	Attr string
	List store.Ref
}

// Thing returns the row, the attribute and the list.
func (f *FollowerFix) Thing() string {
	return owntable.RowText(f.Row) + "\x00" + f.Attr + "\x00" + owntable.RowText(f.List)
}

// Stage returns StageFollowers.
func (*FollowerFix) Stage() runner.Stage { return runner.StageFollowers }

// Correct makes the attribute show the value that our own table keeps on the list, if the
// row follows that list and shows no newer value.
func (f *FollowerFix) Correct(ctx context.Context, r *runner.Runner, _ events.Position) (done, differs bool, err error) {
	rows, err := r.Get(ctx, []store.Ref{f.List, f.Row})
	if err != nil {
		return false, false, err
	}
	text, v := f.List.Key.Partition.Text(), keptIn(rows[0])
	keeps := KeepsLast(r.Model, r.Model.Table(f.Row.Table).Classify(rows[1]), f.Attr, text)
	shows, version := v.shown(keeps), owntable.FollowVersion(f.Attr)
	if rows[1] == nil || !onList(rows[1], f.Attr, text) || !isStale(r.Model, f.Row, rows[1], f.Attr, text, v) {
		return true, false, nil
	}
	if at := events.PositionFrom(rows[1].Get(version)); rows[0] != nil && v.Position.Compare(at) < 0 {
		// The list that the row has this position from has expired since, and a repair made
		// it again. A change of the source that is still to come is above both.
		done, err = r.Did(ctx, v.Raise(f.List, at))
		if !done || err != nil {
			return false, true, err
		}
		v.Position = at
	}
	wr := serve(text, f.Row, f.Attr, v.Position, shows)
	wr.If[1] = store.NotAbove(version, v.Position.Value())
	if rows[0] == nil { // nothing is known of the followed row, not even that it is gone
		wr.Ops = []store.Op{store.Assign(f.Attr, value.Value{})}
		wr.If[1] = []store.Test{store.AsRead(version, rows[1].Get(version))}
	}
	done, err = r.Did(ctx, wr)
	return done, true, err
}
