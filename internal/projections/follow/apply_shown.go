package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// SettleRows makes rows of the application show the values that they follow, as the rows are when they are read: each write has the
// condition that nothing has changed of the row that decides it. A row is entered on the list after it is written, and then the value is
// read again (CompareAgain), so of a new value and a new follower at least one sees the other. SettleRows may be repeated: of a row that is
// right it checks the entry and the value. It reports whether a table refused a row, of which dead letters are kept then.
func (w *Work) SettleRows(ctx context.Context, rows []Unsettled) (refused bool, err error) {
	for range store.MaxRounds {
		if len(rows) == 0 {
			return refused, nil
		}
		some := false
		if rows, some, err = w.settleOnce(ctx, rows); err != nil {
			return false, err
		}
		refused = refused || some
	}
	return false, fmt.Errorf("%s changes all the time", w.DescribeRow(rows[0].Row))
}

// settleOnce settles rows once, and returns those that changed meanwhile.
func (w *Work) settleOnce(ctx context.Context, rows []Unsettled) (again []Unsettled, refused bool, err error) {
	is, err := w.Get(ctx, seq.Map(rows, func(u Unsettled) store.Ref { return u.Row }))
	if err != nil {
		return nil, false, err
	}
	puts := make([]*projections.Put, len(rows))
	for i, u := range rows {
		puts[i] = &projections.Put{Row: u.Row, Position: u.Position, Image: is[i]}
		if e := w.Model.Table(u.Row.Table).Classify(is[i]); e != nil {
			for _, f := range e.Follows {
				if of, ok := FollowedBy(f, is[i]); ok {
					puts[i].Follows = append(puts[i].Follows, projections.Following{Follow: f, Of: of})
				}
			}
		}
	}
	values, err := w.ReadValues(ctx, puts)
	if err != nil {
		return nil, false, err
	}
	waits, err := w.awaitedLists(ctx, puts, values)
	if err != nil {
		return nil, false, err
	}
	var ws []store.Write
	var of []int
	for i, u := range rows {
		if wr := w.settlingWrite(&u, puts[i], values, waits); len(wr.Ops) > 0 {
			ws, of = append(ws, wr), append(of, i)
		}
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return nil, false, err
	}
	for n, i := range of {
		switch e := out[n].Err; {
		case e == nil:
			continue
		case errors.Is(e, store.ErrRefused):
			refused, err = true, w.keepUnsettled(ctx, puts[i], e.Error())
		default:
			again = append(again, rows[i])
		}
		if err != nil {
			return nil, false, err
		}
		puts[i] = nil
	}
	puts = seq.Where(puts, func(p *projections.Put) bool { return p != nil })
	return again, refused, w.CompareAgain(ctx, puts, values, nil, events.Position{})
}

// awaitedLists reports of which lists nothing is kept although the row followed exists: its own change, or a build, is still to give
// its value.
func (w *Work) awaitedLists(ctx context.Context, puts []*projections.Put, values Values) (map[string]bool, error) {
	var refs []store.Ref
	var of []projections.Following
	for _, p := range puts {
		for _, f := range p.Follows {
			if _, known := values[listOf(w.Model, f).Key.Partition.Text()]; !known {
				refs, of = append(refs, f.Of), append(of, f)
			}
		}
	}
	rows, err := w.Get(ctx, refs)
	waits := map[string]bool{}
	for i, row := range rows {
		waits[listOf(w.Model, of[i]).Key.Partition.Text()] = w.Model.Table(refs[i].Table).Classify(row) == of[i].Source
	}
	return waits, err
}

// settlingWrite is the write that makes a row show the values that it follows, without operations if it does. The attribute of a row that
// follows nothing goes. A value that is still to come stays as it is. A row that is no longer of its entity keeps the values that it
// shows, and no longer follows.
func (w *Work) settlingWrite(u *Unsettled, p *projections.Put, values Values, waits map[string]bool) store.Write {
	wr := store.Write{Ref: p.Row, If: store.Cond{w.ExistsCondition(p.Row.Table)}}
	e, asked := w.Model.Table(p.Row.Table).Classify(p.Image), map[string]bool{}
	asRead := func(names ...string) {
		for _, name := range names {
			if name != "" && !asked[name] {
				asked[name] = true
				wr.If = append(wr.If, []store.Test{store.AsRead(name, p.Image.Get(name))})
			}
		}
	}
	set := func(ops ...store.Op) (changed bool) {
		for _, op := range ops {
			if !value.Equal(op.Value, p.Image.Get(op.Attr)) {
				wr.Ops, changed = append(wr.Ops, op), true
			}
		}
		return changed
	}
	gone := func(names []string) []store.Op {
		return seq.Map(names, func(name string) store.Op { return store.Assign(name, value.Value{}) })
	}
	if e != nil {
		for _, f := range e.Follows {
			ops := gone(markNames(f.Attr))
			for _, of := range p.Follows {
				if of.Follow == f {
					if ops = w.FollowOps(p, f, values); waits[listOf(w.Model, of).Key.Partition.Text()] {
						ops = ops[1:]
					}
				}
			}
			if set(ops...) {
				asRead(markNames(f.Attr)[1:]...)
				for _, by := range f.Input.Fields {
					asRead(by.Attrs()...)
				}
				for _, t := range e.Where {
					asRead(t.Field.Attr)
				}
			}
		}
	}
	if u.Was != nil && u.Was != e {
		for _, f := range u.Was.Follows {
			if e == nil || seq.Find(e.Follows, func(o *model.Follow) bool { return o.Attr == f.Attr }) == nil {
				if names := markNames(f.Attr)[1:]; set(gone(names)...) {
					asRead(names...)
				}
			}
		}
	}
	return wr
}

// keepUnsettled keeps a dead letter for each value that a row follows and that its table refuses there.
func (w *Work) keepUnsettled(ctx context.Context, p *projections.Put, reason string) error {
	w.keptAt(p.Position)
	return w.Letters().KeepAll(ctx, seq.Map(p.Follows, func(f projections.Following) deadletter.Letter {
		return unservedLetter(w.Runner, serving{list: listOf(w.Model, f).Key.Partition.Text(), row: p.Row, attr: f.Attr}, reason)
	}))
}

// ShownFix makes the attributes of a row of the application follow the rows that its fields say.
type ShownFix struct {
	Row     store.Ref
	Follows []projections.Following // by the row as it was compared
}

// Describe returns the row.
func (f *ShownFix) Describe() string { return owntable.RowText(f.Row) }

// Phase returns StageLinks.
func (*ShownFix) Phase() runner.FixPhase { return runner.PhaseLinks }

// MadeBy returns nil.
func (*ShownFix) MadeBy() *model.RowRule { return nil }

// RowsRead returns the row and its entries.
func (f *ShownFix) RowsRead(m *model.Model) []store.Ref {
	return append([]store.Ref{f.Row}, seq.Map(f.Follows, func(of projections.Following) store.Ref { return owntable.Follower(listOf(m, of), of.Attr, f.Row) })...)
}

// IsRight reports whether the row is on the lists of the rows that it follows, and says so, and has nothing of an attribute that follows
// nothing. Its values of these are FollowerFix's.
func (f *ShownFix) IsRight(r *runner.Runner, rows []value.Item) bool {
	e := r.Model.Table(f.Row.Table).Classify(rows[0])
	if e == nil {
		return true
	}
	for _, follow := range e.Follows {
		of, ok := FollowedBy(follow, rows[0])
		at := slices.IndexFunc(f.Follows, func(was projections.Following) bool { return was.Follow == follow })
		switch {
		case !ok && slices.ContainsFunc(markNames(follow.Attr), rows[0].Has), ok && (at < 0 || !projections.SameRow(of, f.Follows[at].Of)):
			return false
		case ok && !(onList(rows[0], follow.Attr, listOf(r.Model, f.Follows[at]).Key.Partition.Text()) && isFollower(r.Model, rows[at+1], f.Row, follow.Attr)):
			return false
		}
	}
	return true
}

// Correct settles the row.
func (f *ShownFix) Correct(ctx context.Context, r *runner.Runner, _ events.Position) (done, differs bool, err error) {
	rows, err := r.Get(ctx, f.RowsRead(r.Model))
	if err != nil || f.IsRight(r, rows) {
		return true, false, err
	}
	refused, err := correctionWork(r).SettleRows(ctx, []Unsettled{{Row: f.Row}})
	if err == nil && refused {
		err = store.ErrRefused
	}
	return true, true, err
}

// correctionWork is the state of a correction, which belongs to no batch.
func correctionWork(r *runner.Runner) *Work {
	return &Work{runner.NewWork(r, runner.Batch{}, projections.NewGathered(0)), NewGathered(r.Model)}
}
