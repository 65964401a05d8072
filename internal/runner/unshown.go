package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A derivation that cannot be shown stops no other one of its row. A distinct over its max is not
// shown, nor a stage of a status over its max, while everything else on the row is. A dead letter says so for as long as that lasts: one
// for the tallies of a row and one for its statuses. The ledger names the letter, and both change in one
// transaction under the ledger's version. So the next worker that counts or recomputes learns
// from the ledger that the letter exists, and deletes it with its cause.

// lack is a value that a target does not show, and the kind of dead letter that says so.
type lack struct {
	kind deadletter.Kind
	note owntable.Lack
}

var (
	lackOfTallies  = lack{deadletter.Number, owntable.LacksTallies}
	lackOfStatuses = lack{deadletter.Status, owntable.LacksStatuses}
	lackOfAll      = lack{deadletter.Publish, owntable.LacksAll}
)

// lacks has them by the kind of their letters.
var lacks = map[deadletter.Kind]lack{deadletter.Number: lackOfTallies, deadletter.Status: lackOfStatuses, deadletter.Publish: lackOfAll}

// letterTries is how often a letter is made to agree with a ledger that others change meanwhile.
const letterTries = 5

// settleUnshown makes the dead letter of a target agree with its ledger at ref, as read, and
// reports whether there was anything to change. e is nil if nothing counts for the
// target; then the target's entity need not be known.
func (r *Runner) settleUnshown(ctx context.Context, ref, target store.Ref, e *model.Entity, ledger value.Item) (changed bool, err error) {
	for range letterTries {
		_, changed, err = r.writeLackLetter(ctx, lackOfTallies, ref, target, ledger, projections.CannotShow(r.ShownTallies(e), ledger))
		if err == nil {
			return changed, nil
		}
		if !errors.Is(err, store.ErrCondition) {
			break
		}
		// Another worker has changed the ledger, perhaps its version alone.
		now, failed := r.GetRow(ctx, ref)
		if failed != nil {
			return true, failed
		}
		ledger = now
	}
	return true, fmt.Errorf("noting what cannot be shown of %s: %w", ref, err)
}

// NoteComputed makes the dead letter of a target say why its statuses cannot be computed, "" for no
// letter, as they are under the version of its ledger. It returns the ledger as it is then. The
// error wraps store.ErrCondition if the ledger has another version by now.
func (r *Runner) NoteComputed(ctx context.Context, target store.Ref, ledger value.Item, why string) (value.Item, error) {
	ledger, _, err := r.writeLackLetter(ctx, lackOfStatuses, owntable.Ledger(r.Model.Name, target), target, ledger, why)
	return ledger, err
}

// NoteShown makes the dead letter of a target say that its row refuses the values of its ledger, nil for no letter. It returns the ledger
// as it is then. If that has another version by now, its raiser reports its own findings.
func (r *Runner) NoteShown(ctx context.Context, target store.Ref, ledger value.Item, refused error) (value.Item, error) {
	why := ""
	if refused != nil {
		why = refused.Error()
	}
	now, _, err := r.writeLackLetter(ctx, lackOfAll, owntable.Ledger(r.Model.Name, target), target, ledger, why)
	if errors.Is(err, store.ErrCondition) {
		return ledger, nil
	}
	return now, err
}

// writeLackLetter makes a dead letter of a target agree with why, and its ledger name it, on condition of
// the ledger's version.
func (r *Runner) writeLackLetter(ctx context.Context, what lack, ref, target store.Ref, ledger value.Item, why string) (now value.Item, changed bool, err error) {
	named, said := owntable.LedgerRow(ledger).LackOf(what.note)
	if owntable.ShortenText(why) == said {
		return ledger, false, nil
	}
	id := what.letterID(target)
	ws := []store.Write{{Ref: owntable.Letter(r.Model.Name, id), Delete: true}}
	if why != "" {
		ws = r.lackLetterWrites(what, target, why)
	}
	if named != "" && named != id {
		ws = append(ws, store.Write{Ref: owntable.Letter(r.Model.Name, named), Delete: true})
	}
	is, noted := owntable.LedgerRow(ledger), ""
	if why != "" {
		noted = id
	}
	err = r.Store.Transact(ctx, append(slices.Clip(ws), is.NoteLack(what.note, ref, noted, why)))
	return value.Item(is.WithLack(what.note, noted, why)), true, err
}

// lackLetterWrites returns the writes of the dead letter that lists values that a target cannot show. They replace one with another reason.
func (r *Runner) lackLetterWrites(what lack, target store.Ref, why string) []store.Write {
	ws := r.Letters().Keeping([]deadletter.Letter{{Kind: what.kind, Target: r.DescribeRow(target), Row: target, Reason: why}})
	ws[0].If = nil
	return ws
}

// letterID returns the id of the letter that lists values that a target cannot show.
func (l lack) letterID(target store.Ref) string { return deadletter.ID(l.kind, target) }

// settleGone deletes the dead letter about the statuses of a row that has none, as it is gone or of no
// entity any more, and returns the ledger as it is then. The row is read after the ledger: if it is of an
// entity with statuses again by then, the recompute that shows it raises the version and says it.
func (r *Runner) settleGone(ctx context.Context, target store.Ref, ledger value.Item) (value.Item, error) {
	ref := owntable.Ledger(r.Model.Name, target)
	for range letterTries {
		if named, _ := owntable.LedgerRow(ledger).LackOf(owntable.LacksStatuses); named == "" {
			return ledger, nil
		}
		row, err := r.GetRow(ctx, target)
		if e := r.Model.Table(target.Table).Classify(row); err != nil || e != nil && len(e.Statuses) > 0 {
			return ledger, err
		}
		now, _, err := r.writeLackLetter(ctx, lackOfStatuses, ref, target, ledger, "")
		if !errors.Is(err, store.ErrCondition) {
			return now, err
		}
		if ledger, err = r.GetRow(ctx, ref); err != nil {
			return ledger, err
		}
	}
	return ledger, fmt.Errorf("the ledger of %s changes all the time", r.DescribeRow(target))
}

// publishedEntity returns the entity to which a row with the target's key belongs, if weir
// publishes on such rows; otherwise nil.
func (r *Runner) publishedEntity(target store.Ref) *model.Entity {
	return seq.Find(r.Model.Entities, func(e *model.Entity) bool { return projections.Publishes(e) && e.CanBe(target) && e.Takes(target.Key) })
}

// ErrStands says that only a correction of the data ends a dead letter, not a retry.
var ErrStands = errors.New("correct the rows that the value comes of, and this goes by itself")

// retryStale shows a target again. It deletes the dead letter if the target shows the values that it lacked, if it is gone,
// or if another letter has replaced this one.
func (r *Runner) retryStale(ctx context.Context, d *deadletter.Letter, what lack) error {
	ref := owntable.Ledger(r.Model.Name, d.Row)
	if err := r.publishLedger(ctx, d.Row); err != nil && (what == lackOfAll || !errors.Is(err, store.ErrRefused)) {
		return fmt.Errorf("%s: %w", d.Target, err)
	}
	ledger, err := r.GetRow(ctx, ref)
	if err == nil {
		ledger, err = r.settleGone(ctx, d.Row, ledger)
	}
	if err != nil {
		return err
	}
	if still, err := r.GetRow(ctx, owntable.Letter(r.Model.Name, d.ID)); err != nil || still == nil {
		return err
	}
	if named, _ := owntable.LedgerRow(ledger).LackOf(what.note); named == d.ID {
		return fmt.Errorf("%s: %s: %w", d.ID, d.Reason, ErrStands)
	}
	return store.Wrap(r.Letters().Remove(ctx, d, owntable.LedgerRow(ledger).Unchanged(ref)), "settling %s", d.ID)
}

// UnshownLetters returns the ids of the dead letters which say that a target cannot show something. It asks of for each target
// in a table of the model. Where a derivation was retired, give the ids to RetryUnshown: no record comes for their sake.
func (r *Runner) UnshownLetters(ctx context.Context, of func(target store.Ref) bool) (ids []string, err error) {
	err = r.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		if _, is := lacks[d.Kind]; is && r.Model.Table(d.Row.Table) != nil && of(d.Row) {
			ids = append(ids, d.ID)
		}
		return nil
	})
	return ids, err
}

// RetryUnshown shows the targets of such letters again, and deletes each letter whose cause is gone. A letter stays if its
// cause does, or if its target changes meanwhile: the program that changes it reports its own findings. before is called before
// each letter, and its error ends the rest.
func (r *Runner) RetryUnshown(ctx context.Context, ids []string, before func() error) error {
	for _, id := range ids {
		err := before()
		if err == nil {
			err = r.RetryLetter(ctx, id)
		}
		stays := errors.Is(err, ErrStands) || errors.Is(err, store.ErrRefused) || errors.Is(err, deadletter.ErrNoDead) || errors.Is(err, store.ErrCondition)
		if err != nil && !stays {
			return err
		}
	}
	return nil
}
