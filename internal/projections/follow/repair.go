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
	runner.BaseFix
	Source store.Ref // the row with the field
	Entity *model.Entity
	Field  string
}

// Thing returns the row and the field.
func (f *ValueFix) Thing() string { return owntable.RowText(f.Source) + "\x00" + f.Field }

// Stage returns StageValues.
func (*ValueFix) Stage() runner.Stage { return runner.StageValues }

// Correct writes the value.
func (f *ValueFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	return repairValue(ctx, r, f.Entity, f.Field, f.Source, now.Floor)
}

// LinkFix enters a row in the list of the row that it follows.
type LinkFix struct {
	runner.BaseFix
	Row, Of store.Ref
	Follow  *model.Follow
}

// Thing returns the row, and the row that it follows.
func (f *LinkFix) Thing() string { return owntable.RowText(f.Row) + "\x00" + owntable.RowText(f.Of) }

// Stage returns StageLinks.
func (*LinkFix) Stage() runner.Stage { return runner.StageLinks }

// Correct enters the row.
func (f *LinkFix) Correct(ctx context.Context, r *runner.Runner, _ *runner.Recounted) (done, differs bool, err error) {
	return repairLink(ctx, r, f.Row, f.Follow, f.Of)
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
	return owntable.RowText(f.Row) + "\x00" + f.Attr + "\x00" + owntable.RowText(f.List)
}

// Stage returns StageFollowers.
func (*FollowerFix) Stage() runner.Stage { return runner.StageFollowers }

// Correct writes the value.
func (f *FollowerFix) Correct(ctx context.Context, r *runner.Runner, _ *runner.Recounted) (done, differs bool, err error) {
	return repairFollower(ctx, r, f.Row, f.Attr, f.List)
}

// repairValue makes our own table keep the field's present value, or the fact that the
// source row does not exist; then a last value stays the one that is kept. A job that the
// same transaction creates gives the value to all followers. It is needed because a
// change that is still to come may be below the floor, and would then spread to no
// follower.
func repairValue(ctx context.Context, r *runner.Runner, e *model.Entity, field string, source store.Ref, floor events.Position) (done, differs bool, err error) {
	list := owntable.Followed(r.Model.Name, FieldName(e, field), source)
	noted, err := r.Get(ctx, []store.Ref{list})
	if err != nil {
		return false, false, err
	}
	now, err := r.Get(ctx, []store.Ref{source})
	if err != nil {
		return false, false, err
	}
	was := keptIn(noted[0])
	is := kept{value: e.Field(field).Get(now[0]), position: runner.RepairAt(was.position, floor)}
	if r.Model.Table(source.Table).Classify(now[0]) != e {
		is.gone, is.value = true, value.Value{}
		if KeptLast(e, e.Field(field)) {
			is.value = was.value
		}
	}
	if noted[0] != nil && value.Equal(was.value, is.value) && was.gone == is.gone || noted[0] == nil && is.gone {
		return true, false, nil
	}
	w := valueWrite(r, list, source, is)
	w.If, w.Return = runner.AsNoted(owntable.Position, noted[0]), false
	done, err = runner.Transacted(r.Store.Transact(ctx, []store.Write{w, jobWrite(r, list.Key.Partition.Text(), "", is.position)}))
	return done, true, err
}

// repairFollower makes an attribute of a row show the value that our own table keeps on
// a list, if the row follows that list and shows no newer value.
func repairFollower(ctx context.Context, r *runner.Runner, row store.Ref, name string, list store.Ref) (done, differs bool, err error) {
	rows, err := r.Get(ctx, []store.Ref{list, row})
	if err != nil {
		return false, false, err
	}
	text, v := list.Key.Partition.Text(), keptIn(rows[0])
	keeps := KeepsLast(r.Model, r.Model.Table(row.Table).Classify(rows[1]), name, text)
	shows, version := v.shown(keeps), owntable.FollowVersion(name)
	if rows[1] == nil || !value.Equal(rows[1].Get(owntable.Follows(name)), listMark(text)) || value.Equal(shows, rows[1].Get(name)) {
		return true, false, nil
	}
	if rows[0] == nil && keeps && rows[1].Has(version) {
		// The row was given a value, and nothing tells any more which was the last.
		return true, false, nil
	}
	if at := events.PositionFrom(rows[1].Get(version)); rows[0] != nil && v.position.Compare(at) < 0 {
		// The list that the row has this position from has expired since, and a repair made
		// it again. A change of the source that is still to come is above both.
		done, err = r.Did(ctx, store.Write{Ref: list, If: runner.AsNoted(owntable.Position, rows[0]), Ops: []store.Op{runner.Set(owntable.Position, at.Value())}})
		if !done || err != nil {
			return false, true, err
		}
		v.position = at
	}
	wr := serve(r, text, row, name, v.position, shows)
	wr.If[1] = runner.NotAbove(version, v.position.Value())
	if rows[0] == nil { // nothing is known of the followed row, not even that it is gone
		wr.Ops = []store.Op{runner.Set(name, value.Value{})}
		wr.If[1] = []store.Test{store.AsRead(version, rows[1].Get(version))}
	}
	done, err = r.Did(ctx, wr)
	return done, true, err
}

// repairLink enters a row in the list of what one of its attributes follows, and makes
// the row show the value there.
func repairLink(ctx context.Context, r *runner.Runner, row store.Ref, f *model.Follow, of store.Ref) (done, differs bool, err error) {
	rows, err := r.Get(ctx, []store.Ref{row})
	if err != nil || rows[0] == nil {
		return true, false, err
	}
	list := owntable.Followed(r.Model.Name, FieldName(f.Source, f.Field.Name), of)
	marked := value.Equal(rows[0].Get(owntable.Follows(f.Attr)), listMark(list.Key.Partition.Text()))
	if is, ok := FollowedBy(f, rows[0]); !marked && (!ok || !projections.SameRow(is, of)) {
		return true, false, nil
	}
	w := Work{runner.NewWork(r, runner.Batch{}, projections.NewGathered(0)), &Gathered{}}
	puts := []*projections.Put{{Row: row, Follows: []projections.Following{{Follow: f, Of: of}}}}
	member, err := r.Get(ctx, []store.Ref{owntable.Member(list, f.Attr, row)})
	if err != nil {
		return false, false, err
	}
	if IsFollower(r.Model, member[0], row, f.Attr) && marked {
		return true, false, nil
	}
	if err := w.Enter(ctx, puts); err != nil {
		return false, true, err
	}
	values, err := w.Current(ctx, puts)
	if err != nil {
		return false, true, err
	}
	ops := w.Ops(puts[0], f, values)
	if _, kept := values[list.Key.Partition.Text()]; !kept {
		is, err := r.Get(ctx, []store.Ref{of})
		if err != nil || r.Model.Table(of.Table).Classify(is[0]) == f.Source {
			return false, true, err // the followed value must be repaired first
		}
		if f.Keep { // as far as is known, the row shows the last value
			ops = ops[1:]
		}
	}
	cond := store.Cond{r.Present(row.Table)}
	for _, name := range []string{owntable.Version, owntable.Follows(f.Attr), owntable.FollowVersion(f.Attr)} {
		cond = append(cond, []store.Test{store.AsRead(name, rows[0].Get(name))})
	}
	done, err = r.Did(ctx, store.Write{Ref: row, Ops: ops, If: cond})
	if err == nil && done {
		err = w.Compare(ctx, puts, values, map[*projections.Put]bool{puts[0]: true}, events.Position{})
	}
	return done, true, err
}
