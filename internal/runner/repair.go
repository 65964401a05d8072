package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
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
// It waits as long as the context lasts. The end is that of the first look, so writes that go on do
// not keep it waiting.
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

// ByFunction reports whether a Lambda function reads one of the model's streams. A repair does not wait for one.
func (r *Runner) ByFunction(ctx context.Context) (bool, error) {
	for _, t := range r.Model.Tables {
		pin, err := r.Pin(ctx, t.Name)
		if err != nil || catalog.Reader(pin.Reader) == catalog.Shard {
			return err == nil, err
		}
	}
	return false, nil
}

// Did does one conditional write. It reports false if the condition failed, and returns
// an error if the store refused the write.
func (r *Runner) Did(ctx context.Context, w store.Write) (bool, error) {
	out, err := r.Once(ctx, []store.Write{w})
	if err != nil {
		return false, err
	}
	if errors.Is(out[0].Err, store.ErrRefused) {
		return false, out[0].Err
	}
	return out[0].Err == nil, nil
}

// NoteUnshown makes the dead letter of a target say which values of its ledger at ref, as
// read, the target cannot show, and reports whether there was anything to change. e is nil
// if nothing counts for the target.
func (r *Runner) NoteUnshown(ctx context.Context, ref, target store.Ref, e *model.Entity, ledger value.Item) (changed bool, err error) {
	return r.unshown(ctx, ref, target, e, ledger)
}

// ShownFix makes a row show what its ledger holds, and the statuses that its facts lead
// to. Tallies and statuses of one row are written together. The dead letter about its statuses
// is put right too, also of a row that is gone.
type ShownFix struct {
	BaseFix
	Row store.Ref
}

// Thing returns the row.
func (f *ShownFix) Thing() string { return owntable.RowText(f.Row) }

// Stage returns StageShown.
func (*ShownFix) Stage() Stage { return StageShown }

// Correct shows the row again by the ledger that it has now. It writes under the row's version and the
// ledger's, so a change that is applied meanwhile is not overwritten. It refuses a row whose target is
// refused, and a row of a group that an application wrote (ErrNotOurs). A crash leaves the
// row as it was or as it should be.
func (f *ShownFix) Correct(ctx context.Context, r *Runner, _ *Recounted) (done, differs bool, err error) {
	if r, err = r.shown(ctx, f.Row); err != nil {
		return false, true, err
	}
	before, err := r.Get(ctx, []store.Ref{f.Row, owntable.Ledger(r.Model.Name, f.Row)})
	of := r.publisher(f.Row)
	group := isGroup(of)
	switch {
	case err != nil:
		return true, false, err
	case before[0] == nil && !group:
		now, err := r.settleGone(ctx, f.Row, before[1])
		return true, !value.EqualItems(now, before[1]), err
	}
	if group && before[0] != nil && of.Group.RowsIn(before[1]).Sign() <= 0 && notOurs(of, before[0]) {
		return false, true, ErrNotOurs
	}
	if group {
		err = r.show(ctx, f.Row)
	} else if e := r.Model.Table(f.Row.Table).Classify(before[0]); e == nil {
		return true, false, nil
	} else if k := r.shower(e); k != nil {
		err = k.Show(ctx, r, f.Row)
	} else {
		err = r.show(ctx, f.Row)
	}
	if err != nil {
		return false, true, err
	}
	after, err := r.Get(ctx, []store.Ref{f.Row, owntable.Ledger(r.Model.Name, f.Row)})
	if err != nil {
		return true, false, err
	}
	ours := func(name string) bool { return !owntable.IsOurs(name) || name == owntable.Own }
	_, said := owntable.LedgerRow(before[1]).Lacks(owntable.LacksStatuses)
	_, says := owntable.LedgerRow(after[1]).Lacks(owntable.LacksStatuses)
	return true, said != says || !value.EqualItems(before[0].Filter(ours), after[0].Filter(ours)), nil
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
