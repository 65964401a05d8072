// Package replay writes recorded streams into a store as core rows. The store's
// own stream then does the rest, as it does for live writes: a replay and the real
// thing share all code behind it.
//
// A row carries the newest recorded change that was written into it, its mark
// (mark.go), written with it; a removal leaves the mark in our table. So files may
// overlap, come twice or be cut anywhere. What another projector derived is
// stripped from the recording; what this store has derived stays on its rows
// (strip.go).
package replay

import (
	"context"
	"encoding/binary"
	"fmt"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Replay writes records of one model. It belongs to one goroutine. One replay at a
// time should write a table. Of two with the same records, the second finds out what
// the first did meanwhile, but not that a row came and went between its read and its
// write; that row's history then happens twice. Of two with different records of a
// row, one may insert it that read it before the other heard of its removal; it stays
// until the removal is replayed again.
type Replay struct {
	Model  *model.Model
	Store  store.Store
	Runner *runner.Runner // keeps what cannot be used
	// Gap is told of each old image that is not what the store last saw. It may be
	// nil; the count is kept all the same.
	Gap func(Gap)
	// Bad is told of each entry that is kept, and why. It may be nil.
	Bad func(events.Entry, error)

	// Apart has Next read and write one after the other, in the caller's goroutine, for
	// who schedules all that happens.
	Apart bool

	Summary Summary

	next    batch // given to Next, its rows read, and to be written
	retried bool  // what cannot be used is kept already
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

// batch is entries, in their order, and their rows by name (appendName).
type batch struct {
	entries []entry
	rows    map[string]*row
	table   string // of all entries, "" where they say
}

// row is what a batch knows of one row: what the store holds, then what the
// batch has made of it.
type row struct {
	name   string
	ref    store.Ref
	table  *model.Table
	now    value.Item
	stored value.Item // now, stripped, once stripped is true
	seen   mark
	ever   bool // some recorded change was written here before
	read   bool // the store was asked for it, by this batch
	stale  bool // the store did not take a write of the batch, so that the rest is wrong
	leaves bool // the batch removes it, and that is not yet sent

	swept value.Value // of a row that a sweep removed, the digest of what it was

	stripped bool
}

// entry is an entry of a batch and what is to come of it.
type entry struct {
	*events.Entry
	*row
	gap     string // why it does not follow from what the store held
	applied bool   // it changes its row
	again   bool   // the store did not take it
}

// rounds is how often a batch's writes are decided again because somebody else
// wrote the rows in the meantime.
const rounds = 20

// Batch writes entries in their order. table is the name of the table that they
// belong to where a record does not say, "" to find out by its keys. After an
// error the batch may have been written in part, and is to be sent again. It knows
// nothing of what Next was given and has not yet written.
func (r *Replay) Batch(ctx context.Context, entries []events.Entry, table string) error {
	b := r.batch(entries, table)
	return r.write(ctx, &b)
}

// Next takes entries as Batch does, and writes those that it was given before; those
// that it was given last are written when it is given none. While it writes it reads
// the rows of what comes next, of which the store may be asked early: nobody else
// writes what a replay goes by, and who does is found out when the row is written.
// After an error nothing of what it was given last was written, and of what it was
// given before that a part.
func (r *Replay) Next(ctx context.Context, entries []events.Entry, table string) error {
	before := r.next
	r.next = batch{}
	next := r.batch(entries, table)
	rows := next.unread(before.rows)
	ahead := make(chan error, 1)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	read := func() { ahead <- r.load(reading, rows) }
	if r.Apart {
		read()
	} else {
		go read()
	}
	err := r.write(ctx, &before)
	if err != nil {
		stop()
	}
	if e := <-ahead; err == nil {
		err = e
	}
	if err == nil {
		r.next = next
	}
	return err
}

// write decides and writes the entries of a batch.
func (r *Replay) write(ctx context.Context, b *batch) error {
	for round := 0; len(b.entries) > 0; round++ {
		if round == rounds {
			return fmt.Errorf("writing %v: somebody else keeps writing it; let one replay at a time write a table", b.entries[0].ref)
		}
		if err := r.load(ctx, b.unread(nil)); err != nil {
			return err
		}
		f := flight{Replay: r}
		f.writes.writes = make([]store.Write, 0, len(b.entries))
		f.writes.of = make([]*entry, 0, len(b.entries))
		for i := range b.entries {
			if err := f.add(ctx, &b.entries[i]); err != nil {
				return err
			}
		}
		if err := f.land(ctx); err != nil {
			return err
		}
		again := b.entries[:0]
		for i := range b.entries {
			if e := &b.entries[i]; e.again {
				e.read = false
				again = append(again, entry{Entry: e.Entry, row: e.row})
			} else if err := r.count(ctx, e, b.table); err != nil {
				return err
			}
		}
		b.entries = again
	}
	return nil
}

// batch finds each entry's row; the entries of one row share it.
func (r *Replay) batch(entries []events.Entry, table string) batch {
	b := batch{entries: make([]entry, len(entries)), rows: make(map[string]*row, len(entries)), table: table}
	var name []byte
	for i := range entries {
		e := &b.entries[i]
		e.Entry = &entries[i]
		if e.Bad != nil {
			continue
		}
		t, key, err := r.locate(e.Entry, table)
		if err != nil {
			e.Bad = &events.Bad{Err: err}
			continue
		}
		name = appendName(name[:0], t.Name, key)
		if e.row = b.rows[string(name)]; e.row == nil {
			e.row = &row{name: string(name), ref: store.Ref{Table: t.Name, Key: key}, table: t}
			b.rows[e.row.name] = e.row
		}
	}
	return b
}

// unread lists the rows that were not yet read, but for those that others have, and
// counts them as read.
func (b *batch) unread(others map[string]*row) []*row {
	rows := make([]*row, 0, len(b.rows))
	for i := range b.entries {
		w := b.entries[i].row
		if w == nil || w.read || others[w.name] != nil {
			continue
		}
		w.read = true
		rows = append(rows, w)
	}
	return rows
}

// appendName writes a row's name, different for different rows.
func appendName(b []byte, table string, k store.Key) []byte {
	b = binary.AppendUvarint(b, uint64(len(table)))
	b = append(b, table...)
	b = binary.AppendUvarint(b, uint64(len(k.Partition.Text())))
	b = append(b, k.Partition.Text()...)
	return append(b, k.Sort.Text()...)
}

// load reads rows, and for those that are not there what is remembered of their
// removal.
func (r *Replay) load(ctx context.Context, rows []*row) error {
	refs := make([]store.Ref, len(rows))
	for i, w := range rows {
		refs[i] = w.ref
	}
	got, err := r.get(ctx, refs)
	if err != nil {
		return err
	}
	refs = refs[:0]
	gone := make([]*row, 0, len(rows))
	for i, w := range rows {
		w.now, w.stale, w.stripped, w.swept = got[i], false, false, value.Value{}
		w.seen, w.ever = markOf(w.now)
		if w.now == nil {
			refs = append(refs, book.Seen(w.ref))
			gone = append(gone, w)
		}
	}
	if got, err = r.get(ctx, refs); err != nil {
		return err
	}
	for i, w := range gone {
		w.seen, w.ever = markOf(got[i])
		w.swept = got[i].Get(swept)
	}
	return nil
}

func (r *Replay) get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	rows, err := r.Store.Get(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("reading the rows of a batch: %w", err)
	}
	return rows, nil
}

// count says what became of an entry whose writes have happened, or that needs
// none.
func (r *Replay) count(ctx context.Context, e *entry, table string) error {
	if e.gap != "" {
		r.Summary.Gaps++
		if r.Gap != nil {
			r.Gap(Gap{Where: e.Location, Row: e.ref, Reason: e.gap})
		}
	}
	switch {
	case e.Bad != nil:
		return r.keep(ctx, e.Entry, table)
	case e.applied:
		r.Summary.Applied++
	default:
		r.Summary.Skipped++
	}
	return nil
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
