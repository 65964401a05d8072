package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Box has the dead letters of a model, or of one of its builds, whose model has the build's name.
type Box struct {
	Model *model.Model
	Store store.Store
	// TTL is how long letters that are kept have their rows; see Options.LetterTTL of package system.
	TTL time.Duration
	Now func() time.Time
}

// wholeKinds are the kinds of letters whose record a retry reads. Those of amounts stand in transactions with others, and are cut.
var wholeKinds = []Kind{Row, Follow, Notification, Document, Record}

// expires reports whether the body of a kind of letters is a row of the application, which TTL may delete. The others say what a
// ledger or a stream lacks, in amounts and keys.
func (k Kind) expires() bool { return k == Image || slices.Contains(wholeKinds, k) }

// letterOf encodes a dead letter as a row of our own table holds it.
func (b Box) letterOf(d *Letter) *owntable.LetterRow {
	l := &owntable.LetterRow{
		ID: d.ID, Kind: string(d.Kind), Target: d.Target, Reason: d.Reason, ShardKey: d.ShardKey, Source: d.Source,
		Position: d.Position, Time: d.Time, Table: d.Row.Table, Record: d.Record, Raw: d.Raw, Whole: slices.Contains(wholeKinds, d.Kind),
	}
	if t := b.Model.Table(d.Row.Table); t != nil {
		l.Key = t.Item(d.Row.Key)
	}
	if b.TTL > 0 && d.Kind.expires() {
		l.Until = b.Now().Add(b.TTL).Unix()
	}
	l.Adds = seq.Map(d.Adds, func(a projections.Add) value.Attr { return value.Attr{Name: a.Field, Value: a.Amount} })
	return l
}

// deadOf returns the dead letter that a row of our own table holds.
func (b Box) deadOf(l *owntable.LetterRow) Letter {
	d := Letter{
		ID: l.ID, Kind: Kind(l.Kind), Target: l.Target, Reason: l.Reason, ShardKey: l.ShardKey, Source: l.Source,
		Position: l.Position, Time: l.Time, Record: l.Record, Raw: l.Raw, Cut: l.Cut, parts: l.Parts,
	}
	if l.Until > 0 {
		d.Until = time.Unix(l.Until, 0).UTC()
		d.Expired = !b.Now().Before(d.Until)
	}
	d.Row.Table = l.Table
	if t := b.Model.Table(l.Table); t != nil && l.Key != nil {
		d.Row.Key, _ = t.KeyOf(l.Key)
	}
	for _, a := range l.Adds {
		d.Adds = append(d.Adds, projections.Add{Target: d.Row, Field: a.Name, Amount: a.Value})
	}
	return d
}

// Each yields the dead letters in the order of their ids, page by page. A
// letter comes without its parts: its body is that of the head.
func (b Box) Each(ctx context.Context, yield func(Letter) error) error {
	for row, err := range store.EachRow(ctx, b.Store, owntable.RowsOf(owntable.Dead(b.Model.Name))) {
		if err != nil {
			return err
		}
		l := owntable.LetterFrom(row)
		if err := yield(b.deadOf(&l)); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoDead says that there is no dead letter with the id.
var ErrNoDead = errors.New("there is no dead letter with this id")

// ByID reads a dead letter with all its parts that have not expired, or returns ErrNoDead. A letter of which parts are missing is read
// again: it may have been deleted since its head was read, and kept again.
func (b Box) ByID(ctx context.Context, id string) (Letter, error) {
	at := owntable.Letter(b.Model.Name, id)
	var unread error
	for range store.MaxRounds {
		head, err := store.GetRow(ctx, b.Store, at)
		if err != nil {
			return Letter{}, err
		}
		if head == nil {
			return Letter{}, fmt.Errorf("%s: %w", id, ErrNoDead)
		}
		l := owntable.LetterFrom(head)
		if d := b.deadOf(&l); d.Expired {
			return d, nil
		}
		var parts []value.Item
		if refs := l.BodyParts(b.Model.Name); len(refs) > 0 {
			if parts, err = b.Store.Get(ctx, refs); err != nil {
				return Letter{}, err
			}
		}
		if unread = l.ReadBody(head, parts); unread == nil {
			return b.deadOf(&l), nil
		}
	}
	return Letter{}, fmt.Errorf("%s: its record: %w", id, unread)
}

// Keeping sets the ids of dead letters and returns the writes that keep them, all of which the caller must do in one
// transaction.
func (b Box) Keeping(ds []Letter) (ws []store.Write) {
	for i := range ds {
		ds[i].setID()
		ws = append(ws, b.letterOf(&ds[i]).Rows(b.Model.Name)...)
	}
	return ws
}

// KeepAll keeps dead letters that no other write depends on.
// A letter that exists is kept as it is, so a batch that comes again changes nothing.
func (b Box) KeepAll(ctx context.Context, ds []Letter) error {
	var heads []store.Write
	for i := range ds {
		ws := b.Keeping(ds[i : i+1])
		if len(ws) == 1 {
			heads = append(heads, ws[0])
			continue
		}
		err := store.ErrConflict
		for try := 0; errors.Is(err, store.ErrConflict) && try < store.MaxRounds; try++ { // with another worker that keeps it
			err = b.Store.Transact(ctx, ws)
		}
		if err != nil && !errors.Is(err, store.ErrCondition) {
			return fmt.Errorf("keeping what could not be applied: %w", err)
		}
	}
	out, err := store.WriteAgain(ctx, b.Store, heads)
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			return fmt.Errorf("keeping what could not be applied: %w", out[i].Err)
		}
	}
	return err
}

// Keep keeps a dead letter that no other write depends on, and returns its id.
// Keeping the same letter again changes nothing.
func (b Box) Keep(ctx context.Context, d Letter) (id string, err error) {
	ds := []Letter{d}
	err = b.KeepAll(ctx, ds)
	return ds[0].ID, err
}

// Remove deletes a dead letter, in one transaction with other writes. The error wraps
// store.ErrCondition if there is no such letter any more, or if one of the writes fails.
func (b Box) Remove(ctx context.Context, d *Letter, with ...store.Write) error {
	ws := []store.Write{{
		Ref: owntable.Letter(b.Model.Name, d.ID), Delete: true,
		If: store.Cond{{{Attr: owntable.Partition, Is: store.Exists}}},
	}}
	for i := range d.parts {
		ws = append(ws, store.Write{Ref: owntable.DeadPart(b.Model.Name, d.ID, i), Delete: true})
	}
	return b.Store.Transact(ctx, append(ws, with...))
}

// Forget deletes a dead letter after its effect has been applied.
func (b Box) Forget(ctx context.Context, d *Letter) error {
	err := b.Remove(ctx, d)
	if err != nil && !errors.Is(err, store.ErrCondition) { // otherwise another worker deleted it
		return fmt.Errorf("settling %s: %w", d.ID, err)
	}
	return nil
}
