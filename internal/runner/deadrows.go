package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// letter returns the key of the head of the dead letter with this id.
func (r *Runner) letter(id string) store.Ref { return owntable.Letter(r.Model.Name, id) }

// wholeKinds are the kinds of letters whose record a retry reads. Those of amounts stand in transactions with others, and are cut.
var wholeKinds = []DeadKind{DeadRow, DeadFollow, DeadNotification, DeadDocument, DeadRecord}

// letterOf encodes a dead letter as a row of our own table holds it.
func (r *Runner) letterOf(d *Dead) *owntable.LetterRow {
	l := &owntable.LetterRow{
		ID: d.ID, Kind: string(d.Kind), Target: d.Target, Reason: d.Reason, ShardKey: d.ShardKey, Source: d.Source,
		Position: d.Position, Time: d.Time, Table: d.Row.Table, Record: d.Record, Raw: d.Raw, Whole: slices.Contains(wholeKinds, d.Kind),
	}
	if t := r.Model.Table(d.Row.Table); t != nil {
		l.Key = t.Item(d.Row.Key)
	}
	for _, a := range d.Adds {
		l.Adds = append(l.Adds, value.Attr{Name: a.Field, Value: a.Amount})
	}
	return l
}

// deadOf returns the dead letter that a row of our own table holds.
func (r *Runner) deadOf(l *owntable.LetterRow) Dead {
	d := Dead{
		ID: l.ID, Kind: DeadKind(l.Kind), Target: l.Target, Reason: l.Reason, ShardKey: l.ShardKey, Source: l.Source,
		Position: l.Position, Time: l.Time, Record: l.Record, Raw: l.Raw, Cut: l.Cut, parts: l.Parts,
	}
	d.Row.Table = l.Table
	if t := r.Model.Table(l.Table); t != nil && l.Key != nil {
		d.Row.Key, _ = t.KeyOf(l.Key)
	}
	for _, a := range l.Adds {
		d.Adds = append(d.Adds, projections.Add{Target: d.Row, Field: a.Name, Amount: a.Value})
	}
	return d
}

// Dead lists the dead letters page by page, without their records. Long texts are
// shortened. Those of ledgers that a build has replaced are left out.
func (r *Runner) Dead(ctx context.Context, yield func(Dead) error) error {
	all, err := r.all(ctx)
	for i := 0; i < len(all) && err == nil; i++ {
		err = all[i].everyDead(ctx, func(d Dead) error {
			if all[i].isReplaced(&d) {
				return nil
			}
			return yield(d)
		})
	}
	return err
}

// everyDead yields the dead letters of the model in the order of their ids, page by page. A
// letter comes without its parts: its body is what the head holds.
func (r *Runner) everyDead(ctx context.Context, yield func(Dead) error) error {
	return r.EachOwn(ctx, owntable.Dead(r.Model.Name), func(row value.Item) error {
		l := owntable.LetterFrom(row)
		return yield(r.deadOf(&l))
	})
}

// ErrNoDead says that there is no dead letter with the id.
var ErrNoDead = errors.New("there is no dead letter with this id")

// DeadByID reads a whole dead letter, with its record. The error wraps ErrNoDead if there
// is none.
func (r *Runner) DeadByID(ctx context.Context, id string) (Dead, error) {
	_, d, err := r.holding(ctx, id)
	return d, err
}

// holding returns a whole dead letter, and the runner that has it. The same letter may wait for
// the ledger that a target shows and for one that a build has replaced: then it is the first.
func (r *Runner) holding(ctx context.Context, id string) (*Runner, Dead, error) {
	all, err := r.all(ctx)
	if err != nil {
		return nil, Dead{}, err
	}
	var replaced *Runner
	var old Dead
	for _, r := range all {
		d, err := r.deadByID(ctx, id)
		switch {
		case errors.Is(err, ErrNoDead):
		case err == nil && r.isReplaced(&d):
			replaced, old = r, d
		default:
			return r, d, err
		}
	}
	if replaced == nil {
		return nil, Dead{}, fmt.Errorf("%s: %w", id, ErrNoDead)
	}
	return replaced, old, nil
}

// deadByID reads a dead letter with all its parts, or returns ErrNoDead. A letter of which parts are missing is read again: it
// may have been deleted since its head was read, and kept again.
func (r *Runner) deadByID(ctx context.Context, id string) (Dead, error) {
	var unread error
	for range MaxRounds {
		head, err := r.GetRow(ctx, r.letter(id))
		if err != nil {
			return Dead{}, err
		}
		if head == nil {
			return Dead{}, fmt.Errorf("%s: %w", id, ErrNoDead)
		}
		l := owntable.LetterFrom(head)
		parts, err := r.Get(ctx, l.BodyParts(r.Model.Name))
		if err != nil {
			return Dead{}, err
		}
		if unread = l.ReadBody(head, parts); unread == nil {
			return r.deadOf(&l), nil
		}
	}
	return Dead{}, fmt.Errorf("%s: its record: %w", id, unread)
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
