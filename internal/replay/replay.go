// Package replay writes recorded streams into a store as core rows. The store's
// own stream then does the rest, as it does for live writes: a replay and the real
// thing share all code behind it.
//
// A row is guarded by the newest recorded change that was written into it, kept in
// our table ("seen"), in one transaction with the row: so files may overlap, come
// twice or be cut anywhere. What another projector derived is stripped from the
// recording; what this store has derived stays on its rows.
package replay

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Replay writes records of one model. It belongs to one goroutine.
type Replay struct {
	Model  *model.Model
	Store  store.Store
	Runner *runner.Runner // keeps what cannot be used
	// Gap is told of each old image that is not what the store last saw. It may be
	// nil; the count is kept all the same.
	Gap func(Gap)
	// Bad is told of each entry that is kept, and why. It may be nil.
	Bad func(events.Entry, error)

	Summary Summary

	retried bool // what cannot be used is kept already
}

// Summary counts what became of the entries of a recording, each in exactly one of
// the first three.
type Summary struct {
	Applied int // changed a core row
	Skipped int // seen before, written by another projector, or no change
	Kept    int // cannot be used
	Gaps    int
}

// Records is how many entries there were.
func (s Summary) Records() int { return s.Applied + s.Skipped + s.Kept }

// Gap is a place where the recording does not follow from what came before it.
type Gap struct {
	Where  events.Location
	Row    store.Ref
	Reason string
}

// row is what this batch knows of one row: what the store holds, then what the
// batch has made of it.
type row struct {
	ref   store.Ref
	table *model.Table
	now   value.Item
	seen  mark
	ever  bool // some recorded change was written here before
}

// Batch writes entries in their order. table is the name of the table that they
// belong to where a record does not say, "" to find out by its keys. After an
// error the batch may have been written in part, and is to be sent again.
func (r *Replay) Batch(ctx context.Context, entries []events.Entry, table string) error {
	rows := map[string]*row{}
	at := make([]*row, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.Bad != nil {
			continue
		}
		t, key, err := r.locate(e, table)
		if err != nil {
			e.Bad = &events.Bad{Raw: nil, Err: err}
			continue
		}
		ref := store.Ref{Table: t.Name, Key: key}
		name := book.RowText(ref)
		if rows[name] == nil {
			rows[name] = &row{ref: ref, table: t}
		}
		at[i] = rows[name]
	}
	if err := r.load(ctx, rows); err != nil {
		return err
	}
	var tx transaction
	for i := range entries {
		e := &entries[i]
		var ws []store.Write
		if e.Bad == nil {
			ws = r.entry(at[i], e)
		}
		if e.Bad != nil {
			if err := r.keep(ctx, e, table); err != nil {
				return err
			}
			continue
		}
		if err := tx.add(ctx, r.Store, at[i], ws); err != nil {
			return at[i].context(err)
		}
	}
	return tx.flush(ctx, r.Store)
}

func (w *row) context(err error) error { return fmt.Errorf("writing %s: %w", book.RowText(w.ref), err) }

// load reads the rows and their guards.
func (r *Replay) load(ctx context.Context, rows map[string]*row) error {
	refs := make([]store.Ref, 0, 2*len(rows))
	order := make([]*row, 0, len(rows))
	for _, w := range rows {
		refs = append(refs, w.ref, book.Seen(w.ref))
		order = append(order, w)
	}
	if len(refs) == 0 {
		return nil
	}
	got, err := r.Store.Get(ctx, refs)
	if err != nil {
		return fmt.Errorf("reading the rows of a batch: %w", err)
	}
	for i, w := range order {
		w.now = got[2*i]
		w.seen, w.ever = markOf(got[2*i+1]), got[2*i+1] != nil
	}
	return nil
}

// entry is the writes that one record asks for: the row and its guard, or the
// guard alone where the row is as it should be, or nothing for a record that the
// row has seen.
func (r *Replay) entry(w *row, e *events.Entry) []store.Write {
	rec := &e.Record
	old, oldOurs := r.strip(w.table, rec.Old)
	image, ours := r.strip(w.table, rec.New)
	if ours || oldOurs && image == nil {
		r.Summary.Skipped++
		return nil
	}
	m := markFrom(rec)
	stored, _ := r.strip(w.table, w.now)
	if !m.after(w.seen, w.ever, old, stored) {
		r.Summary.Skipped++
		return nil
	}
	wr := store.Write{Ref: w.ref, Origin: &store.Origin{Time: rec.Time, Position: rec.Position, Expired: rec.Expired}}
	if image == nil {
		wr.Delete = true
	} else {
		wr.Put = r.dress(w.table, image, w.now)
		if err := takes(w.table, &wr); err != nil {
			e.Bad = &events.Bad{Err: err}
			return nil
		}
	}
	r.gap(w, e, old, stored)
	w.seen, w.ever, w.now = m, true, wr.Put
	if value.EqualItems(stored, image) {
		r.Summary.Skipped++
		return []store.Write{m.write(w.ref)}
	}
	r.Summary.Applied++
	return []store.Write{wr, m.write(w.ref)}
}

// takes says why a table would refuse the row, so that one such row stops nothing.
func takes(t *model.Table, wr *store.Write) error {
	if err := t.Validate(wr); err != nil {
		return err
	}
	for i := range t.Indexes {
		if _, _, err := store.IndexEntry(&t.Indexes[i], wr.Put); err != nil {
			return err
		}
	}
	return nil
}

// strip takes out what weir derives: bookkeeping and derived attributes, and the
// row itself (ours is true) when only weir writes such rows. A flag that came as a
// boolean becomes the string that the table holds.
func (r *Replay) strip(t *model.Table, image value.Item) (_ value.Item, ours bool) {
	if image == nil {
		return nil, false
	}
	e := t.Classify(image)
	if e != nil && e.Derived {
		return nil, true
	}
	image = image.Filter(func(name string) bool { return !book.IsOurs(name) && !projections.IsDerived(e, name) })
	if e == nil {
		return image, false
	}
	for _, a := range e.Attributes {
		if v := image.Get(a.Name); a.Type == model.TypeFlag && v.Kind() == value.Bool {
			image = image.With(value.Attr{Name: a.Name, Value: value.OfString(model.Scalar(v))})
		}
	}
	return image, false
}

// dress gives a stripped image what the store has derived for the row: what stands
// there, or what a row shows for which nothing was ever counted.
func (r *Replay) dress(t *model.Table, image, now value.Item) value.Item {
	e := t.Classify(image)
	if e == nil || len(e.Values) == 0 {
		return image
	}
	derived := now.Filter(func(name string) bool { return book.IsOurs(name) || projections.IsDerived(e, name) })
	if now == nil || !derived.Has(book.Version) {
		zero, err := projections.Published(e, nil)
		if err != nil {
			return image
		}
		derived = append(zero, value.Attr{Name: book.Version, Value: value.OfInt(0)})
	}
	return image.With(derived...)
}

// gap compares the old image with what the store holds.
func (r *Replay) gap(w *row, e *events.Entry, old, stored value.Item) {
	var why string
	switch {
	case !w.ever && stored == nil || e.Record.Position.IsZero() && e.Record.Old == nil:
		return // the recording begins here for this row, or holds rows only
	case old == nil && stored != nil:
		why = "an insert of a row that was there: its removal is missing"
	case old != nil && stored == nil:
		why = "a change of a row that was removed: its insertion is missing"
	case !value.EqualItems(old, stored):
		why = "the old image is not the last one seen: a change is missing"
	default:
		return
	}
	r.Summary.Gaps++
	if r.Gap != nil {
		r.Gap(Gap{Where: e.Location, Row: w.ref, Reason: why})
	}
}

// keep puts away what cannot be used. table is that of the whole input, if any.
func (r *Replay) keep(ctx context.Context, e *events.Entry, table string) error {
	r.Summary.Kept++
	if r.Bad != nil {
		r.Bad(*e, e.Bad)
	}
	if e.Record.Table != "" {
		table = e.Record.Table
	}
	d := runner.Dead{
		Kind: runner.DeadRecord, Target: "a record of " + e.File, Reason: e.Bad.Error(), Source: e.Location.String(),
		Time: e.Record.Time, Position: e.Record.Position,
	}
	if e.Bad.Raw != nil {
		d.Raw, d.Record = string(e.Bad.Raw), runner.RecordItem(&events.Record{Table: table})
	} else {
		rec := e.Record
		rec.Table = table
		d.Record = runner.RecordItem(&rec)
	}
	if r.retried {
		return fmt.Errorf("%s: %w", e.Bad.Error(), runner.ErrNoRetry)
	}
	_, err := r.Runner.KeepDead(ctx, d)
	return err
}

// transaction gathers writes until it is full or a row comes a second time.
type transaction struct {
	writes []store.Write
	rows   map[*row]bool
}

// rowsAtOnce keeps a transaction, two writes a row, within its limit.
const rowsAtOnce = store.MaxTransact / 2

func (t *transaction) add(ctx context.Context, s store.Store, w *row, ws []store.Write) error {
	if len(ws) == 0 {
		return nil
	}
	if t.rows[w] || len(t.rows) == rowsAtOnce {
		if err := t.flush(ctx, s); err != nil {
			return err
		}
	}
	if t.rows == nil {
		t.rows = make(map[*row]bool, rowsAtOnce)
	}
	t.rows[w] = true
	t.writes = append(t.writes, ws...)
	return nil
}

func (t *transaction) flush(ctx context.Context, s store.Store) error {
	if len(t.writes) == 0 {
		return nil
	}
	err := s.Transact(ctx, t.writes)
	t.writes = t.writes[:0]
	clear(t.rows)
	if errors.Is(err, store.ErrRefused) {
		return fmt.Errorf("%w: a table does not take a row as it was recorded; does the model describe its keys and indexes as they were?", err)
	}
	return err
}

// mark is a place in a row's recorded history: a position in its stream, and a
// time. A form without sequence numbers has only the time.
type mark struct {
	position events.Position
	time     int64 // µs since 1970
}

func markFrom(rec *events.Record) mark {
	m := mark{position: rec.Position}
	if !rec.Time.IsZero() {
		m.time = rec.Time.UnixMicro()
	}
	return m
}

const timeAttr = "t"

func markOf(it value.Item) mark {
	t, _ := it.Get(timeAttr).Int64()
	return mark{events.PositionFrom(it.Get(book.Position)), t}
}

func (m mark) write(of store.Ref) store.Write {
	return store.Write{Ref: book.Seen(of), Ops: []store.Op{
		{Kind: store.Set, Attr: book.Position, Value: m.position.Value()},
		{Kind: store.Set, Attr: timeAttr, Value: value.OfInt(m.time)},
	}}
}

// after reports whether a record comes after what its row has seen. Positions
// decide where both have one. Otherwise times do, by the second since streams
// round them so; within one second, a record whose old image is what the store
// holds comes next. A row of an export without times only fills a row that no
// recorded change was written to.
func (m mark) after(seen mark, ever bool, old, stored value.Item) bool {
	switch {
	case !ever:
		return true
	case !m.position.IsZero() && !seen.position.IsZero():
		return m.position.Compare(seen.position) > 0
	case m.time == 0:
		return false
	}
	a, b := m.time, seen.time
	if !m.position.IsZero() || !seen.position.IsZero() {
		a, b = a/1e6, b/1e6
	}
	return a > b || a == b && (old != nil || stored != nil) && value.EqualItems(old, stored)
}
