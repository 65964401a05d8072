package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A repair puts derived data right from the rows that exist, while applications write and
// while changes are applied. There are two ways, depending on what a kind of projection
// keeps.
//
// Counts (ledgers, and nodes of sets) are first noted and then recounted. Then the repair
// waits until everything that was written before the recount ended is applied (Passed).
// Only then does it write the recount, on the condition that nothing was counted since
// the note. So a change that touches the target in between makes the attempt fail, but
// never makes the value wrong: the recount is the sum of all changes that were applied,
// and later changes add to it. The same write sets the positions of all shards, so a
// change that was given up as lost does not count if it is delivered after all.
//
// Everything that carries a position (copies, facts, subscribers, followed values,
// documents) is made again from its source, as the source is after the note. It keeps the
// position that it had, and the write fails if the position has changed. A change of the
// source that is still to come has a higher position and wins. A floor is a position that
// all changes had passed when the note was taken. If the store has one and it is higher,
// it becomes the position, so older changes that arrive late lose too.
//
// A Repair function reports done = false if a row changed between the note and the write; the
// caller may note and try again. differs reports whether there was anything to repair.

// ErrParked says that effects wait for a target. They must be retried or discarded before
// the target can be repaired.
var ErrParked error = Unfixable("effects on it are parked; see projector dead list")

// ErrNotOurs says that another program made a row, so weir does not delete it.
var ErrNotOurs error = Unfixable("weir did not write this row, and leaves it alone")

// ErrLag says that a store's streams may show a write after an unlimited delay. No wait
// is then long enough to be sure that all writes are applied.
var ErrLag error = Unfixable("the streams of this store may show a write late, so it is not known when all writes are applied")

// Passed waits until the rows group has applied everything that was written before the
// call, apart from records that were given up as lost. Some process must be applying
// changes, or Passed waits until ctx ends. The error is ErrLag if the store cannot tell.
func (r *Runner) Passed(ctx context.Context) error {
	if r.Store.Tip().Lag > 0 {
		return ErrLag
	}
	tables, err := r.Tables(ctx)
	if err != nil {
		return err
	}
	known := map[place]bool{}
	for _, t := range tables {
		shards, err := r.Store.Shards(ctx, t.Name)
		if err != nil {
			return err
		}
		for _, s := range shards {
			known[place{GroupRows, t.Name, s.ID}] = true
			if err := r.passedShard(ctx, t.Name, s); err != nil {
				return fmt.Errorf("waiting for shard %s of %s: %w", s.ID, t.Name, err)
			}
		}
	}
	for { // shards that the stream no longer lists
		places, err := r.Places(ctx, GroupRows)
		if err != nil {
			return err
		}
		waits := false
		for _, p := range places {
			waits = waits || !p.Done && !known[place{GroupRows, p.Table, p.Shard}]
		}
		if !waits {
			return nil
		}
		if err := pause(ctx, nil, passedEvery); err != nil {
			return err
		}
	}
}

// passedEvery is how often Passed checks how far a shard is applied.
const passedEvery = 20 * time.Millisecond

// passedShard waits until a shard is applied up to its present end.
func (r *Runner) passedShard(ctx context.Context, table string, s store.Shard) error {
	var end events.Position
	known := false
	for {
		at, err := r.Place(ctx, GroupRows, table, s.ID)
		if err != nil {
			return err
		}
		if at.Done || known && at.At.Compare(end) >= 0 {
			return nil
		}
		if !known {
			if end, known, err = r.endOf(ctx, table, s.ID, at.At); err != nil {
				return err
			}
			continue
		}
		if err := pause(ctx, nil, passedEvery); err != nil {
			return err
		}
	}
}

// endOf returns the position of the last record of a shard. ok is false if records after
// the given position were trimmed meanwhile.
func (r *Runner) endOf(ctx context.Context, table, shard string, after events.Position) (end events.Position, ok bool, err error) {
	for end = after; ; {
		page, err := r.Store.Read(ctx, table, shard, end, paces[GroupRows].records)
		switch {
		case errors.Is(err, store.ErrTrimmed):
			return end, false, pause(ctx, nil, passedEvery)
		case err != nil:
			return end, false, err
		case len(page.Records) > 0:
			end = page.Records[len(page.Records)-1].Position
		}
		if len(page.Records) < paces[GroupRows].records {
			return end, true, nil
		}
	}
}

// ByFunction reports whether a Lambda function reads the model's streams. A function
// keeps no checkpoints for which a caller could wait.
func (r *Runner) ByFunction(ctx context.Context) (bool, error) {
	page, err := r.Store.Query(ctx, store.Query{Table: book.TableName, Partition: value.OfString(book.Functions(r.Model.Name)), Limit: 1})
	return len(page.Rows) > 0, err
}

// Counted returns the checkpoints of those shards that ledgers and sets count from.
func (r *Runner) Counted(ctx context.Context) (out []Place, err error) {
	all, err := r.Places(ctx, GroupRows)
	counts := map[string]bool{}
	for _, e := range r.Model.Entities {
		counts[e.Table.Name] = counts[e.Table.Name] || len(e.Sources) > 0
	}
	for _, p := range all {
		if counts[p.Table] {
			out = append(out, p)
		}
	}
	return out, err
}

// lanesPassed returns the operations that move a row's positions of shards to where the
// shards are applied, and the conditions that these positions are still as noted.
func lanesPassed(noted value.Item, places []Place) (ops []store.Op, cond store.Cond) {
	for _, p := range places {
		name := book.Lane(Lane(p.Table, p.Shard))
		if p.At.Compare(events.PositionFrom(noted.Get(name))) > 0 {
			ops = append(ops, Set(name, p.At.Value()))
			cond = append(cond, []store.Test{store.AsRead(name, noted.Get(name))})
		}
	}
	return ops, cond
}

// AsNoted returns the condition that a row of our own table has not changed since the
// note, by the attribute name, which changes with every write of the row.
func AsNoted(name string, noted value.Item) store.Cond {
	if noted == nil {
		return book.NotThere()
	}
	return store.Cond{{{Attr: book.Partition, Is: store.Exists}}, {store.AsRead(name, noted.Get(name))}}
}

// Did does one conditional write. It reports false if the condition failed, and returns
// an error if the store refused the write.
func (r *Runner) Did(ctx context.Context, w store.Write) (bool, error) {
	out, err := r.Write(ctx, []store.Write{w})
	if err != nil {
		return false, err
	}
	if errors.Is(out[0].Err, store.ErrRefused) {
		return false, out[0].Err
	}
	return out[0].Err == nil, nil
}

// RepairBook makes a ledger hold exactly the given sums, and makes its dead letter say
// which of them a target of entity e cannot show. e is nil if nothing counts for the
// target. done is false if the ledger has changed since it was noted. differs is false if
// there was nothing to repair.
func (r *Runner) RepairBook(ctx context.Context, ref, target store.Ref, e *model.Entity, noted, sums value.Item, places []Place) (done, differs bool, err error) {
	if done, differs, err = r.repairSums(ctx, ref, noted, sums, places); err != nil || !done {
		return done, differs, err
	}
	now, err := r.Get(ctx, []store.Ref{ref})
	if err != nil {
		return false, true, err
	}
	wrong, err := r.unshown(ctx, ref, target, e, now[0], true)
	return true, differs || wrong, err
}

// repairSums makes a ledger hold exactly the given sums. The error is ErrParked if the
// ledger is wrong and effects wait for its target.
func (r *Runner) repairSums(ctx context.Context, ref store.Ref, noted, sums value.Item, places []Place) (done, differs bool, err error) {
	var ops []store.Op
	for _, a := range noted {
		if book.IsSum(a.Name) && !sums.Has(a.Name) && !value.Equal(a.Value, value.OfInt(0)) {
			ops = append(ops, store.Op{Kind: store.Remove, Attr: a.Name})
		}
	}
	for _, a := range sums {
		if !value.Equal(a.Value, noted.Get(a.Name)) {
			ops = append(ops, Set(a.Name, a.Value))
		}
	}
	switch {
	case len(ops) == 0:
		return true, false, nil
	case isParked(noted):
		return false, true, ErrParked
	}
	lanes, cond := lanesPassed(noted, places)
	ops = append(append(ops, lanes...), store.Op{Kind: store.Add, Attr: book.Count, Value: value.OfInt(1), From: value.OfInt(r.Now().UnixMicro())})
	done, err = r.Did(ctx, store.Write{Ref: ref, Ops: ops, If: append(append(AsNoted(book.Count, noted), Open()), cond...)})
	return done, true, err
}

// ShownFix makes a row show what its ledger holds, and the statuses that its facts lead
// to. Tallies and statuses of one row are written together.
type ShownFix struct {
	BaseFix
	Row store.Ref
}

// Thing returns the row.
func (f *ShownFix) Thing() string { return book.RowText(f.Row) }

// Stage returns StageShown.
func (*ShownFix) Stage() Stage { return StageShown }

// Correct shows the row again.
func (f *ShownFix) Correct(ctx context.Context, r *Runner, _ *Recounted) (done, differs bool, err error) {
	return r.repairShown(ctx, f.Row)
}

func (r *Runner) repairShown(ctx context.Context, target store.Ref) (done, differs bool, err error) {
	before, err := r.Get(ctx, []store.Ref{target, book.Of(r.Model.Name, target)})
	if err != nil || before[0] == nil {
		return true, false, err
	}
	if isParked(before[1]) {
		return false, true, ErrParked
	}
	if e := r.Model.Table(target.Table).Classify(before[0]); e == nil {
		return true, false, nil
	} else if k := r.shower(e); k != nil {
		err = k.Show(ctx, r, target, false)
	} else {
		err = r.show(ctx, target)
	}
	if err != nil {
		return false, true, err
	}
	after, err := r.Get(ctx, []store.Ref{target})
	ours := func(name string) bool { return !book.IsOurs(name) || name == book.Own }
	return true, err == nil && !value.EqualItems(before[0].Filter(ours), after[0].Filter(ours)), err
}

// RepairAt returns the position under which a repair makes something again: the one that it
// has, or the floor if that is higher.
func RepairAt(has, floor events.Position) events.Position {
	for _, p := range []events.Position{floor, events.PositionOf(1)} {
		if p.Compare(has) > 0 {
			has = p
		}
	}
	return has
}

// RepairFollowed makes our own table keep the field's present value, or the fact that the
// source row does not exist; then a last value stays the one that is kept. A job that the
// same transaction creates gives the value to all followers. It is needed because a
// change that is still to come may be below the floor, and would then spread to no
// follower.
func (r *Runner) RepairFollowed(ctx context.Context, e *model.Entity, field string, source store.Ref, floor events.Position) (done, differs bool, err error) {
	list := book.Followed(r.Model.Name, projections.FollowedField(e, field), source)
	noted, err := r.Get(ctx, []store.Ref{list})
	if err != nil {
		return false, false, err
	}
	now, err := r.Get(ctx, []store.Ref{source})
	if err != nil {
		return false, false, err
	}
	was := keptIn(noted[0])
	is := kept{value: e.Field(field).Get(now[0]), position: RepairAt(was.position, floor)}
	if r.Model.Table(source.Table).Classify(now[0]) != e {
		is.gone, is.value = true, value.Value{}
		if projections.KeptLast(e, e.Field(field)) {
			is.value = was.value
		}
	}
	if noted[0] != nil && value.Equal(was.value, is.value) && was.gone == is.gone || noted[0] == nil && is.gone {
		return true, false, nil
	}
	w := r.valueWrite(list, source, is)
	w.If, w.Return = AsNoted(book.Position, noted[0]), false
	done, err = Transacted(r.Store.Transact(ctx, []store.Write{w, r.jobWrite(list.Key.Partition.Text(), "", is.position)}))
	return done, true, err
}

// RepairFollowing makes an attribute of a row show the value that our own table keeps on
// a list, if the row follows that list and shows no newer value.
func (r *Runner) RepairFollowing(ctx context.Context, row store.Ref, name string, list store.Ref) (done, differs bool, err error) {
	rows, err := r.Get(ctx, []store.Ref{list, row})
	if err != nil {
		return false, false, err
	}
	text, v := list.Key.Partition.Text(), keptIn(rows[0])
	keeps := projections.KeepsLast(r.Model, r.Model.Table(row.Table).Classify(rows[1]), name, text)
	shows, version := v.shown(keeps), book.FollowVersion(name)
	if rows[1] == nil || !value.Equal(rows[1].Get(book.Follows(name)), listMark(text)) || value.Equal(shows, rows[1].Get(name)) {
		return true, false, nil
	}
	if rows[0] == nil && keeps && rows[1].Has(version) {
		// The row was given a value, and nothing tells any more which was the last.
		return true, false, nil
	}
	if at := events.PositionFrom(rows[1].Get(version)); rows[0] != nil && v.position.Compare(at) < 0 {
		// The list that the row has this position from has expired since, and a repair made
		// it again. A change of the source that is still to come is above both.
		done, err = r.Did(ctx, store.Write{Ref: list, If: AsNoted(book.Position, rows[0]), Ops: []store.Op{Set(book.Position, at.Value())}})
		if !done || err != nil {
			return false, true, err
		}
		v.position = at
	}
	wr := r.serve(text, row, name, v.position, shows)
	wr.If[1] = NotAbove(version, v.position.Value())
	if rows[0] == nil { // nothing is known of the followed row, not even that it is gone
		wr.Ops = []store.Op{Set(name, value.Value{})}
		wr.If[1] = []store.Test{store.AsRead(version, rows[1].Get(version))}
	}
	done, err = r.Did(ctx, wr)
	return done, true, err
}

// RepairLink enters a row in the list of what one of its attributes follows, and makes
// the row show the value there.
func (r *Runner) RepairLink(ctx context.Context, row store.Ref, f *model.Follow, of store.Ref) (done, differs bool, err error) {
	rows, err := r.Get(ctx, []store.Ref{row})
	if err != nil || rows[0] == nil {
		return true, false, err
	}
	list := book.Followed(r.Model.Name, projections.FollowedField(f.Source, f.Field.Name), of)
	marked := value.Equal(rows[0].Get(book.Follows(f.Attr)), listMark(list.Key.Partition.Text()))
	if is, ok := projections.FollowedBy(f, rows[0]); !marked && (!ok || !projections.SameRow(is, of)) {
		return true, false, nil
	}
	w := Work{Runner: r}
	puts := []*projections.Put{{Row: row, Follows: []projections.Following{{Follow: f, Of: of}}}}
	member, err := r.Get(ctx, []store.Ref{book.Member(list, f.Attr, row)})
	if err != nil {
		return false, false, err
	}
	if projections.IsMember(r.Model, member[0], row, f.Attr) && marked {
		return true, false, nil
	}
	if err := w.join(ctx, puts); err != nil {
		return false, true, err
	}
	values, err := w.followed(ctx, puts)
	if err != nil {
		return false, true, err
	}
	ops := w.followOps(puts[0], f, values)
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
	for _, name := range []string{book.Version, book.Follows(f.Attr), book.FollowVersion(f.Attr)} {
		cond = append(cond, []store.Test{store.AsRead(name, rows[0].Get(name))})
	}
	done, err = r.Did(ctx, store.Write{Ref: row, Ops: ops, If: cond})
	if err == nil && done {
		err = w.compare(ctx, puts, values, map[*projections.Put]bool{puts[0]: true}, events.Position{})
	}
	return done, true, err
}

// RepairCopy makes a row what a rule makes from its source now, or deletes it if the rule
// makes no such row.
func (r *Runner) RepairCopy(ctx context.Context, rule *model.RowRule, row, source store.Ref, floor events.Position) (done, differs bool, err error) {
	noted, err := r.Get(ctx, []store.Ref{row, book.Tombstone(row)})
	if err != nil {
		return false, false, err
	}
	now, err := r.Get(ctx, []store.Ref{source})
	if err != nil {
		return false, false, err
	}
	version := noted[0].Get(book.Version)
	at := RepairAt(events.PositionFrom(version), floor)
	p, made := projections.Put{}, false
	if now[0] != nil && r.Model.Table(source.Table).Classify(now[0]) == rule.Source {
		p, made = projections.Make(rule, now[0])
	}
	if !made || !projections.SameRow(p.Row, row) {
		return r.repairGone(ctx, row, noted[0], at)
	}
	if buried := events.PositionFrom(noted[1].Get(book.Position)); at.Compare(buried) <= 0 {
		at = buried.Next()
	}
	p.Position = at
	return r.repairMade(ctx, &p, noted[0])
}

// repairGone deletes a row that no rule makes, after writing its tombstone. The error is
// ErrNotOurs if weir did not write the row.
func (r *Runner) repairGone(ctx context.Context, row store.Ref, noted value.Item, at events.Position) (done, differs bool, err error) {
	switch {
	case noted == nil:
		return true, false, nil
	case noted.Get(book.Version).Kind() != value.Binary:
		return false, true, ErrNotOurs
	}
	w := Work{Runner: r}
	if _, err := r.Write(ctx, []store.Write{w.tombstone(row, at)}); err != nil {
		return false, true, err
	}
	done, err = r.Did(ctx, store.Write{Ref: row, Delete: true, If: store.Cond{{store.AsRead(book.Version, noted.Get(book.Version))}}})
	return done, true, err
}

// repairMade writes a row as its rule makes it, and then compares the values that it
// follows.
func (r *Runner) repairMade(ctx context.Context, p *projections.Put, noted value.Item) (done, differs bool, err error) {
	w, puts := Work{Runner: r}, []*projections.Put{p}
	wr := w.rowWrite(p, nil, false)
	if noted != nil && asMade(p, &wr, noted) {
		return true, false, nil
	}
	if err := w.join(ctx, puts); err != nil {
		return false, true, err
	}
	values, err := w.followed(ctx, puts)
	if err != nil {
		return false, true, err
	}
	wr = w.rowWrite(p, values, false)
	if wr.If = (store.Cond{{{Attr: r.Model.Table(p.Row.Table).Key.Partition.Name, Is: store.Absent}}}); noted != nil {
		wr.If = store.Cond{r.Present(p.Row.Table), {store.AsRead(book.Version, noted.Get(book.Version))}}
	}
	if done, err = r.Did(ctx, wr); err == nil && done {
		err = w.compare(ctx, puts, values, map[*projections.Put]bool{p: true}, events.Position{})
	}
	return done, true, err
}

// asMade reports whether a row is as a write would make it, apart from the values that it
// follows.
func asMade(p *projections.Put, wr *store.Write, row value.Item) bool {
	follows, marks := map[string]bool{}, map[string]bool{}
	for i := range p.Rule.Fields {
		if f := p.Rule.Fields[i].Expr.Follow; f != nil {
			follows[f.Attr], marks[book.Follows(f.Attr)] = true, true
		}
	}
	for _, op := range wr.Ops {
		held := marks[op.Attr] || !book.IsOurs(op.Attr) && !follows[op.Attr]
		if held && !value.Equal(op.Value, row.Get(op.Attr)) {
			return false
		}
	}
	return row.Has(book.Version)
}

// Gaps returns the dead letters of gaps that were named and not discarded.
func (r *Runner) Gaps(ctx context.Context) (out []Dead, err error) {
	err = r.Dead(ctx, func(d Dead) error {
		if d.Kind == DeadGap {
			out = append(out, d)
		}
		return nil
	})
	return out, err
}
