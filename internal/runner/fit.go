package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A row that refuses all values together may have room for some. These are shown, and the others are
// left out (projections.LeaveOut). A dead letter names them, which the ledger names in turn, and a mark
// on the row has each later change of the row look at it again. So they come back by themselves. Only a
// row that has no room even for the version that it shows is parked.

// fitSpare is what is left free on a row that is refused although it should fit: a store may count the
// bytes of a row in another way.
const fitSpare = 1 << 10

// NoRoom says what a row has no room for, "" for nothing. The text stays the same when amounts change.
func NoRoom(left []string) string {
	if len(left) == 0 {
		return ""
	}
	return "the row has no room for " + strings.Join(left, ", ") + "; all else of the row is right, and they are shown when there is room"
}

// MostBytes is how many bytes a row may have. again says that it was refused with that many.
func MostBytes(again bool) int {
	if again {
		return store.MaxItemBytes - fitSpare
	}
	return store.MaxItemBytes
}

// Filled is the refusal of a row that has no room for anything of weir's. refused is what the store said of
// all together, nil if it was not asked.
func Filled(refused error) error {
	if refused == nil {
		refused = store.ErrRefused
	}
	return fmt.Errorf("%w; what the application wrote leaves no room for any derived value", refused)
}

// isShort reports whether a ledger notes that its target has no room for something.
func isShort(ledger value.Item) bool {
	named, _ := owntable.LedgerRow(ledger).Lacks(owntable.LacksRoom)
	return named != ""
}

// showFitting makes a target of an entity show what it has room for, and its dead letter say what it
// has not. It is for a row that refused to show all of b, a ledger that was read or written before, and
// for one whose ledger notes that it did. refused is that refusal, if any.
//
// It reads the row before the ledger, and both again after each write: a program that made room
// meanwhile may have met a row without the mark. A crash leaves a row, a ledger and a letter that the
// repeated batch puts right. The error wraps store.ErrRefused if there is no room for anything.
func (r *Runner) showFitting(ctx context.Context, target store.Ref, e *model.Entity, b value.Item, refused error) error {
	ref, again := owntable.Ledger(r.Model.Name, target), false
	for range MaxRounds {
		row, err := r.GetRow(ctx, target)
		if err != nil {
			return err
		}
		ledger, err := r.GetRow(ctx, ref)
		switch {
		case err != nil:
			return err
		case isParked(ledger) && !value.Equal(VersionOf(ledger), VersionOf(b)): // amounts may have left it
			return nil
		case r.Model.Table(target.Table).Classify(row) != e:
			_, err = r.settleGone(ctx, target, ledger)
			return err
		}
		wr, left, ok := r.fitRow(target, e, row, r.based(ledger), MostBytes(again))
		if !ok {
			return Filled(refused)
		}
		if value.Compare(versionOn(row), VersionOf(r.based(ledger))) > 0 {
			if err := r.StillShows(ctx, e); err != nil { // the version may be of a build's ledger
				return err
			}
		}
		_, _, err = r.say(ctx, lackOfRoom, ref, target, ledger, NoRoom(left), false)
		if errors.Is(err, store.ErrCondition) {
			continue
		}
		if err != nil || Shows(row, &wr) {
			return err
		}
		out, err := r.showOn(ctx, []store.Write{wr}, []*model.Entity{e})
		switch {
		case err != nil:
			return err
		case errors.Is(out[0].Err, store.ErrRefused) && again:
			return out[0].Err
		case errors.Is(out[0].Err, store.ErrRefused):
			again, refused = true, out[0].Err
		}
	}
	return fmt.Errorf("%s changes all the time", r.Describe(target))
}

// versionOn returns the version that a row shows, 0 for none.
func versionOn(row value.Item) value.Value {
	if v := row.Get(owntable.Version); v.Kind() == value.Number {
		return v
	}
	return value.OfInt(0)
}

// fitRow returns the write that makes a row, as read, show what it has room for of a ledger, and what is
// left out. ok is false if there is no room for anything.
func (r *Runner) fitRow(target store.Ref, e *model.Entity, row, ledger value.Item, most int) (wr store.Write, left []string, ok bool) {
	all := projections.ShownTallies(r.Shows(e), ledger)
	attrs := func(left []string) []value.Attr {
		return append(projections.Fitted(all, left), projections.FullMark(left), Attr(owntable.Version, VersionOf(ledger)))
	}
	left, ok = projections.LeaveOut(all, most, func(left []string) int { return row.With(attrs(left)...).Size() })
	wr = store.Write{Ref: target, If: r.IsOf(e)}
	for _, a := range attrs(left) {
		wr.Ops = append(wr.Ops, store.Assign(a.Name, a.Value))
	}
	for _, name := range []string{owntable.Version, owntable.FullMark} {
		wr.If = append(wr.If, []store.Test{store.AsRead(name, row.Get(name))})
	}
	return wr, left, ok
}

// showsOrParks has a target that refused all its values show what it has room for, and parks it if
// that is nothing.
func (w *Work) showsOrParks(ctx context.Context, t *projections.Target, ledger value.Item, refused error) error {
	err := refused
	if !isGroup(t.Entity) {
		err = w.showFitting(ctx, t.Row, t.Entity, ledger, refused)
	}
	if errors.Is(err, store.ErrRefused) {
		return w.ParkTarget(ctx, t, err)
	}
	return err
}
