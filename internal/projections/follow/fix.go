package follow

import (
	"context"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Fixes returns the values that our own table keeps of a row's fields, and the lists that a row of history is on, as far as the
// row itself says which value it follows: of a copy, its source row says so. Of a row of our own table, it returns the value that
// it keeps, of a row that may exist no more, or the follower whose entry it is. An entry that names no row is left out: the row is
// then on no list, and a LinkFix finds that.
func (Kind) Fixes(m *model.Model, c *projections.Change) (out []runner.Fix) {
	if c.Table == nil {
		return ofOwnRow(m, c.New)
	}
	for _, v := range Fold(c, nil) {
		out = append(out, &ValueFix{Source: v.Source, Entity: v.Entity, Field: v.Field})
	}
	if c.Is == nil {
		return out
	}
	if len(c.Is.Follows) > 0 {
		fix := &ShownFix{Row: c.Row}
		for _, f := range c.Is.Follows {
			if of, ok := FollowedBy(f, c.New); ok {
				fix.Follows = append(fix.Follows, projections.Following{Follow: f, Of: of})
			}
		}
		out = append(out, fix)
	}
	for _, rule := range c.Is.MadeBy {
		for i := range rule.Fields {
			f := rule.Fields[i].Expr.Follow
			if f == nil || len(rule.Keep) == 0 || rule.Into.Attribute(f.Attr) == nil {
				continue
			}
			if of, ok := FollowedBy(f, c.New); ok {
				out = append(out, &LinkFix{Row: c.Row, Following: projections.Following{Follow: f, Of: of}})
			}
		}
	}
	return out
}

// ofOwnRow returns the fixes of a row of our own table.
func ofOwnRow(m *model.Model, row value.Item) []runner.Fix {
	list := row.Get(owntable.Partition).Text()
	f := seq.Find(m.Follows, func(f *model.Follow) bool {
		return strings.HasPrefix(list, owntable.FollowedOf(m.Name, FieldName(f.Source, f.Field.Name)))
	})
	if f == nil {
		return nil
	}
	if owntable.IsEntry(row.Get(owntable.Sort).Text()) {
		if ref, attr, ok := followerOf(m, row); ok {
			return []runner.Fix{&FollowerFix{Row: ref, Attr: attr, List: owntable.FollowedList(list)}}
		}
		return nil
	}
	is := owntable.FollowedFrom(row)
	source, ok := owntable.RowOf(strings.TrimPrefix(list, owntable.FollowedOf(m.Name, FieldName(f.Source, f.Field.Name))))
	if ok {
		ok = m.Table(source.Table) != nil
	} else { // the name of the list is a hash
		source, ok = projections.RowOf(m, is.Row)
	}
	if !ok || is.Gone {
		return nil
	}
	return []runner.Fix{&ValueFix{Source: source, Entity: f.Source, Field: f.Field.Name}}
}

// onList reports whether a row says that its attribute follows the value of a list.
func onList(row value.Item, attr, list string) bool {
	return value.Equal(row.Get(owntable.FollowsAttr(attr)), listMark(list))
}

// isStale reports whether an attribute of a row shows something else than the list that it is on keeps. If nothing is kept
// there, a row that keeps last values may show the last one.
func isStale(m *model.Model, at store.Ref, row value.Item, attr, list string, v kept) bool {
	keeps := KeepsLast(m, m.Table(at.Table).Classify(row), attr, list)
	if !v.Existed() && keeps && row.Has(owntable.FollowVersion(attr)) {
		return false
	}
	return !value.Equal(v.shownValue(keeps), row.Get(attr))
}

// ValueFix makes our own table keep the present value of a field that rows follow.
type ValueFix struct {
	Source store.Ref // the row with the field
	Entity *model.Entity
	Field  string
}

// Describe returns the row and the field.
func (f *ValueFix) Describe() string { return owntable.RowText(f.Source) + "\x00" + f.Field }

// valueRef is the row that keeps the value.
func (f *ValueFix) valueRef(m *model.Model) store.Ref {
	return owntable.Followed(m.Name, FieldName(f.Entity, f.Field), f.Source)
}

// Phase returns StageValues.
func (*ValueFix) Phase() runner.FixPhase { return runner.PhaseValues }

// MadeBy returns nil.
func (*ValueFix) MadeBy() *model.RowRule { return nil }

// RowsRead returns the list and the row.
func (f *ValueFix) RowsRead(m *model.Model) []store.Ref { return []store.Ref{f.valueRef(m), f.Source} }

// IsRight reports whether the list keeps the value that the row has, or that the row is gone. Nothing has to be kept of a row that
// is gone, or has no value.
func (f *ValueFix) IsRight(r *runner.Runner, rows []value.Item) bool {
	v, gone := keptIn(rows[0]), r.Model.Table(f.Source.Table).Classify(rows[1]) != f.Entity
	if gone {
		return rows[0] == nil || v.Gone
	}
	return !v.Gone && value.Equal(v.Value, ValueOf(f.Entity, f.Entity.Field(f.Field), rows[1]))
}

// Correct makes our own table keep the field's present value, or the fact that the source
// row does not exist; then a last value stays the one that is kept. A job that the same
// transaction creates gives the value to all followers. It is needed because a change that
// is still to come may be below the floor, and would then give its value to no follower.
func (f *ValueFix) Correct(ctx context.Context, r *runner.Runner, floor events.Position) (done, differs bool, err error) {
	list := f.valueRef(r.Model)
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
		Value: ValueOf(f.Entity, f.Entity.Field(f.Field), row), Position: runner.FixedAt(was.Position, floor), Row: projections.KeyedRowOf(r.Model, f.Source),
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
	done, err = runner.TransactionOutcome(r.Store.Transact(ctx, []store.Write{was.Replace(list, is), job.Begin(r.Model.Name, r.Now())}))
	return done, true, err
}

// LinkFix enters a row in the list of the row that it follows.
type LinkFix struct {
	Row store.Ref
	projections.Following
}

// Describe returns the row, the attribute and the row that it follows.
func (f *LinkFix) Describe() string {
	return owntable.RowText(f.Row) + "\x00" + f.Attr + "\x00" + owntable.RowText(f.Of)
}

// Phase returns StageLinks.
func (*LinkFix) Phase() runner.FixPhase { return runner.PhaseLinks }

// MadeBy returns the rule that makes the row.
func (f *LinkFix) MadeBy() *model.RowRule { return f.Rule }

// RowsRead returns the row and its entry.
func (f *LinkFix) RowsRead(m *model.Model) []store.Ref {
	return []store.Ref{f.Row, owntable.Follower(listOf(m, f.Following), f.Attr, f.Row)}
}

// IsRight reports whether the row is on the list, and says so. A follower that is on no list gets no new value, not even if the row
// that it follows is created later.
func (f *LinkFix) IsRight(r *runner.Runner, rows []value.Item) bool {
	list := listOf(r.Model, f.Following).Key.Partition.Text()
	return rows[0] == nil || isFollower(r.Model, rows[1], f.Row, f.Attr) && onList(rows[0], f.Attr, list)
}

// Correct enters the row in the list of the value that its attribute follows, and makes the row show
// the value there.
func (f *LinkFix) Correct(ctx context.Context, r *runner.Runner, floor events.Position) (done, differs bool, err error) {
	row, err := r.GetRow(ctx, f.Row)
	if err != nil || row == nil {
		return true, false, err
	}
	list := listOf(r.Model, f.Following)
	if is, ok := FollowedBy(f.Follow, row); !onList(row, f.Attr, list.Key.Partition.Text()) && (!ok || !projections.SameRow(is, f.Of)) {
		return true, false, nil
	}
	w := correctionWork(r)
	puts := []*projections.Put{{Row: f.Row, Follows: []projections.Following{f.Following}}}
	entry, err := r.GetRow(ctx, owntable.Follower(list, f.Attr, f.Row))
	if err != nil {
		return false, false, err
	}
	if f.IsRight(r, []value.Item{row, entry}) {
		return true, false, nil
	}
	if err := w.EnterLists(ctx, puts); err != nil {
		return false, true, err
	}
	values, err := w.ReadValues(ctx, puts)
	if err != nil {
		return false, true, err
	}
	ops := w.FollowOps(puts[0], f.Follow, values)
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
	cond := store.Cond{r.ExistsCondition(f.Row.Table)}
	for _, name := range []string{owntable.Version, owntable.FollowsAttr(f.Attr), owntable.FollowVersion(f.Attr)} {
		cond = append(cond, []store.Test{store.AsRead(name, row.Get(name))})
	}
	done, err = r.WriteIf(ctx, store.Write{Ref: f.Row, Ops: ops, If: cond})
	if err == nil && done {
		err = w.CompareAgain(ctx, puts, values, map[*projections.Put]bool{puts[0]: true}, events.Position{})
	}
	return done, true, err
}

// FollowerFix makes an attribute of a row show the value of the list that it is on.
type FollowerFix struct {
	Row  store.Ref
	Attr string
	List store.Ref
}

// Describe returns the row, the attribute and the list.
func (f *FollowerFix) Describe() string {
	return owntable.RowText(f.Row) + "\x00" + f.Attr + "\x00" + owntable.RowText(f.List)
}

// Phase returns StageFollowers.
func (*FollowerFix) Phase() runner.FixPhase { return runner.PhaseFollowers }

// MadeBy returns nil: it does not go by the row's rule.
func (*FollowerFix) MadeBy() *model.RowRule { return nil }

// RowsRead returns the list and the row.
func (f *FollowerFix) RowsRead(*model.Model) []store.Ref { return []store.Ref{f.List, f.Row} }

// IsRight reports whether the attribute shows the value of the list, or follows another one.
func (f *FollowerFix) IsRight(r *runner.Runner, rows []value.Item) bool {
	list := f.List.Key.Partition.Text()
	return rows[1] == nil || !onList(rows[1], f.Attr, list) || !isStale(r.Model, f.Row, rows[1], f.Attr, list, keptIn(rows[0]))
}

// Correct makes the attribute show the value that our own table keeps on the list, if the
// row follows that list and shows no newer value.
func (f *FollowerFix) Correct(ctx context.Context, r *runner.Runner, _ events.Position) (done, differs bool, err error) {
	rows, err := r.Get(ctx, f.RowsRead(r.Model))
	if err != nil {
		return false, false, err
	}
	if f.IsRight(r, rows) {
		return true, false, nil
	}
	text, v := f.List.Key.Partition.Text(), keptIn(rows[0])
	keeps := KeepsLast(r.Model, r.Model.Table(f.Row.Table).Classify(rows[1]), f.Attr, text)
	shows, version := v.shownValue(keeps), owntable.FollowVersion(f.Attr)
	if at := events.PositionFrom(rows[1].Get(version)); rows[0] != nil && v.Position.Compare(at) < 0 {
		// The list that the row has this position from has expired since, and a repair made
		// it again. A change of the source that is still to come is above both.
		done, err = r.WriteIf(ctx, v.Raise(f.List, at))
		if !done || err != nil {
			return false, true, err
		}
		v.Position = at
	}
	wr := serveWrite(text, f.Row, f.Attr, v.Position, shows)
	wr.If[1] = store.NotAbove(version, v.Position.Value())
	if rows[0] == nil { // nothing is known of the followed row, not even that it is gone
		wr.Ops = []store.Op{store.Assign(f.Attr, value.Value{})}
		wr.If[1] = []store.Test{store.AsRead(version, rows[1].Get(version))}
	}
	done, err = r.WriteIf(ctx, wr)
	return done, true, err
}
