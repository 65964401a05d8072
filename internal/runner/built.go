package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/contribution"
	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// The work of package build with single rows and targets is here, because it is that of a batch
// does with them: the same transactions, parking and publishing.

// ReadRow is a source row that a builder has read, and the amounts that it adds to a target.
type ReadRow struct {
	Source  store.Ref
	Key     value.Item // its key attributes
	Amounts []value.Attr
	// Audit, if it is not 0, is the version of the row's mark as it was read before the
	// row. The mark is then put right, and left as it is if it has changed since.
	Audit int64
}

// ReadTarget is a builder's puts for one target.
type ReadTarget struct {
	Target store.Ref
	Rows   []ReadRow
}

// GroupByTransaction groups puts for ledgers into transactions. Targets of few rows share one: each
// write of a transaction costs units, also that of the fence.
func GroupByTransaction(targets []ReadTarget) (out [][]ReadTarget) {
	writes, size := 0, 0
	for _, t := range targets {
		for len(t.Rows) > 0 {
			n, takes, more := markedAtOnce(len(t.Rows), func(i int) (value.Item, []value.Attr) { return t.Rows[i].Key, t.Rows[i].Amounts })
			if len(out) == 0 || writes+takes+1 > marksAtOnce+1 || size+more > markedBytes {
				out, writes, size = append(out, nil), 0, 0
			}
			writes, size = writes+takes+1, size+more
			last := &out[len(out)-1]
			*last, t.Rows = append(*last, ReadTarget{Target: t.Target, Rows: t.Rows[:n]}), t.Rows[n:]
		}
	}
	return out
}

// Put is the cost of the put of a piece.
type Put struct {
	Tries int // transactions that were tried in vain
}

// PutPiece counts a piece in the generation whose runner this is (ForGeneration), in one transaction if it
// can. guard is part of each transaction. unread says that the rows have no marks, it seems, so
// that these are read only if that is wrong. The error wraps ErrLost if a guard no longer holds.
func (r *Runner) PutPiece(ctx context.Context, piece []ReadTarget, unread bool, guard ...store.Write) (did Put, err error) {
	w := Work{Runner: r, Gathered: &projections.Gathered{}}
	all := seq.Flat(piece, func(t ReadTarget) []counted { return r.contributionsOf(t.Target, t.Rows) })
	tries := []reading{w.readMarks}
	switch {
	case unread:
		tries = []reading{noMarks, w.readMarks}
	case len(piece) == 1:
		tries = nil
	}
	for i, marks := range tries {
		did.Tries = i
		_, err := w.countOnce(ctx, all, guard, marks)
		if err == nil || !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrRefused) {
			return did, err
		}
	}
	did.Tries = len(tries)
	for _, t := range piece { // one of them is written by others, or takes nothing
		if err := w.countContributions(ctx, t.Target, r.contributionsOf(t.Target, t.Rows), guard); err != nil {
			return did, fmt.Errorf("%s: %w", r.DescribeRow(t.Target), err)
		}
	}
	return did, nil
}

// PutRowsInto is PutPiece for one target that has something else than a ledger.
func (r *Runner) PutRowsInto(ctx context.Context, target store.Ref, rows []ReadRow, into func(target store.Ref) (Into, int), guard ...store.Write) error {
	w := Work{Runner: r, Gathered: &projections.Gathered{}}
	return w.contributeInto(ctx, target, r.contributionsOf(target, rows), guard, into)
}

// contributionsOf returns the contributions to a target of rows that a builder has read.
func (r *Runner) contributionsOf(target store.Ref, rows []ReadRow) (cs []counted) {
	for _, row := range rows {
		cs = append(cs, counted{
			target: target, source: row.Source, key: row.Key, amounts: row.Amounts, step: row.decideStep, change: -1,
			letter: deadletter.Letter{Kind: deadletter.Parked, Target: r.DescribeRow(target), Row: target, Source: "the build, from row " + owntable.RowText(row.Source)},
		})
	}
	return cs
}

// Differs reports whether an audit would change a mark.
func (row ReadRow) Differs(m contribution.Mark) bool {
	_, differs := contribution.Audit(m, row.Amounts)
	return differs
}

// decideStep returns the builder's step for a row it has read, beside the mark that it read
// before: put it, or correct it in an audit. It is false if the mark has changed since the
// audit read it; then a consumer has already counted a newer row, and the row is read again.
func (row ReadRow) decideStep(m contribution.Mark) (contribution.Step, bool) {
	switch {
	case row.Audit == 0:
		return contribution.Row(m, row.Amounts)
	case row.Audit != m.Version:
		return contribution.Step{}, false
	}
	return contribution.Audit(m, row.Amounts)
}

// showTries is how often a target is read again that others write meanwhile.
const showTries = 20

// ShowBuilt makes a target show the ledger of a generation, and its statuses. A dead letter says
// the values in the ledger that cannot be shown, also while the target does not exist, as it does of
// the amounts of the stream. It reads the target and its ledger once, unless others write them.
func (r *Runner) ShowBuilt(ctx context.Context, b owntable.Build, target store.Ref, e *model.Entity) error {
	in := r.ForGeneration(b)
	ledger := owntable.Ledger(in.Model.Name, target)
	if e.Group != nil {
		return in.ShowLedger(ctx, target)
	}
	noted := !projections.MayLack(e)
	note := func(row value.Item) (changed bool, err error) {
		if noted || row == nil {
			return false, nil
		}
		noted = true
		return in.settleUnshown(ctx, ledger, target, e, row)
	}
	if k := in.showingKind(e); k != nil {
		if !noted {
			row, err := r.GetRow(ctx, ledger)
			if err == nil {
				_, err = note(row)
			}
			if err != nil {
				return err
			}
		}
		if err := k.Show(ctx, in, target); !errors.Is(err, store.ErrRefused) {
			return err
		}
		return nil
	}
	for range showTries {
		rows, err := r.Get(ctx, []store.Ref{target, ledger})
		if err != nil {
			return err
		}
		if changed, err := note(rows[1]); err != nil {
			return err
		} else if changed {
			continue
		}
		if rows[0] == nil || r.Model.Table(target.Table).Classify(rows[0]) != e {
			return nil
		}
		wr := in.publishWrite(target, e, in.withVersion(rows[1]))
		again, err := false, error(nil)
		if len(wr.Ops) > 0 && !AlreadyShows(rows[0], &wr) {
			again, err = in.showWrite(ctx, target, e, wr, rows[1])
		}
		if err != nil && !errors.Is(err, store.ErrRefused) {
			return err
		}
		if !again {
			_, err = in.NoteShown(ctx, target, rows[1], err)
			return err
		}
	}
	return fmt.Errorf("%s changes all the time", r.DescribeRow(target))
}

// An operator's command sees the model as a batch does: the runners of all generations that
// count, each with dead letters and notes under a name of its own.

// allGenerations returns the runners of the generations that count, this one first. It sees the catalog as it is.
func (r *Runner) allGenerations(ctx context.Context) ([]*Runner, error) {
	if r.Catalog == nil || r.base > 0 {
		return []*Runner{r}, nil
	}
	row, err := r.Catalog.Row(ctx)
	if err != nil {
		return nil, err
	}
	out := []*Runner{r.hidingPending(&row)}
	for _, b := range row.Builds.Counting() {
		out = append(out, out[0].ForGeneration(b))
	}
	return out, nil
}

// replacingBuild returns the generation that a target shows, if that has replaced the ledgers of
// this runner, which sees a catalog.
func (r *Runner) replacingBuild(target store.Ref) (b owntable.Build, ok bool) {
	shows := func(e *model.Entity) bool {
		return (projections.Publishes(e) || e.IsRecomputed()) && e.CanBe(target) && e.Takes(target.Key)
	}
	if i := slices.IndexFunc(r.Model.Entities, shows); i >= 0 && r.base == 0 && r.catalog != nil {
		b, _ = r.catalog.Builds.Of(r.Model.Entities[i].Name)
	}
	return b, b.State.IsShown()
}

// ForgetReplaced deletes the dead letters that wait for ledgers which builds have replaced.
// It may be interrupted: forgotten rows stay so, and the next call goes on.
func (r *Runner) ForgetReplaced(ctx context.Context) (forgotten int, err error) {
	all, err := r.allGenerations(ctx)
	if err != nil {
		return 0, err
	}
	var ids []string
	err = all[0].Letters().Each(ctx, func(d deadletter.Letter) error {
		if all[0].isReplaced(&d) {
			ids = append(ids, d.ID)
		}
		return nil
	})
	for _, id := range ids {
		d, failed := all[0].Letters().ByID(ctx, id)
		if errors.Is(failed, deadletter.ErrNoDead) {
			continue
		}
		if err = errors.Join(err, failed); err == nil {
			err = all[0].Letters().Forget(ctx, &d)
		}
		if err != nil {
			return forgotten, err
		}
		forgotten++
	}
	return forgotten, err
}

// isReplaced reports whether a dead letter waits for a ledger that a build has replaced. The
// build read the rows, so nothing of it is missing.
func (r *Runner) isReplaced(d *deadletter.Letter) bool {
	_, of := lacks[d.Kind]
	_, is := r.replacingBuild(d.Row)
	return is && (of || d.Kind == deadletter.Parked)
}
