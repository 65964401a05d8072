// Package replay writes recorded streams into a store as source rows. The store's own
// stream then does the rest, as it does for live writes: a replay shares all later code
// with live operation.
//
// A row carries a mark (mark.go): the newest recorded change that was written into it,
// saved in the same write. A removal leaves its mark in our own table. So files may
// overlap, come twice or be cut anywhere. Attributes that another projector derived are
// removed from the recording; attributes that this store has derived stay on its rows
// (strip.go).
package replay

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/value"
)

// Replay writes records of one model. It belongs to one goroutine. Only one replay at a
// time should write a table.
//
// Of two replays with the same records, the second notices the writes of the first
// meanwhile, but not that a row was made and removed between its read and its write;
// that row's history then happens twice. Of two with different records of a row, one
// may read the row before the other saves its removal, and insert it afterwards; the
// row then stays until the removal is replayed again.
type Replay struct {
	Model  *model.Model
	Store  store.Store
	Runner *runner.Runner // stores records that cannot be used as dead letters
	// Names are the names of the tables in records. Entries are given to Batch
	// under logical names; Retry reads records as they were kept, and translates them.
	Names stage.Names
	// Gap is called for each gap when it is found; the missing records may still come (Gaps). It may be nil.
	Gap func(Gap)
	// Bad is called for each entry that becomes a dead letter, with the reason. It may
	// be nil.
	Bad func(events.Entry, error)

	// Feeds is set by Begin: up to when feeds were replayed.
	Feeds *FeedTime

	// Apart makes a bulk do everything in the caller's goroutine. A simulation sets it,
	// because it schedules all that happens.
	Apart bool
	// InOrder says that the Store does the writes of one call in their order, as a store.Load does. Then writes whose
	// order matters are sent together, too.
	InOrder bool

	Summary Summary

	retried bool // entries that cannot be used are dead letters already

	unusable map[[sha256.Size]byte]bool // the letters about images, once they were asked for (keepUnusable)
}

// Summary counts the entries of a recording by their outcome. Each is in exactly one of
// the first three.
type Summary struct {
	Applied int // changed a source row
	Skipped int // seen before, written by another projector, or no change
	Dead    int // cannot be used; is a dead letter
	Gaps    int // found; the missing records may still come
	Lacking int // rows removed since a full export does not have them; they are no entries
}

// Records is the number of entries.
func (s Summary) Records() int { return s.Applied + s.Skipped + s.Dead }

// Gap is a place in the recording at which records of a row are missing.
type Gap struct {
	Where  events.Location
	Row    store.Ref
	Reason string
}

// row is a batch's knowledge of one row: the row in the store, and then the one that the batch
// has made of it.
type row struct {
	name   string
	ref    store.Ref
	table  *model.Table
	now    value.Item
	stored value.Item // now without derived attributes, once stripped is true
	digest digest     // of stored
	known
	read   bool // this batch has read it
	stale  bool // the store rejected a write of the batch, so the later decisions are wrong
	leaves bool // the batch removes it, and the removal is not sent yet
	// forgot is, of a row that does not exist, up to when removals in its table were forgotten; nil if they were not.
	forgot *mark

	stripped bool
}

// entry is an entry of a batch and its outcome.
type entry struct {
	*events.Entry
	*row
	gap     string // why it does not follow from the row in the store
	applied bool   // it changes its row
	told    bool   // history takes it from the record
	again   bool   // the store rejected it; decide it again
}

// rounds is how often a batch's writes are decided again because another writer changed
// the rows in the meantime. A record that the table refuses does not count: it is decided once.
const rounds = 20

// Batch writes entries in their order. table is the name of the table of those records
// that name none; with "" the table is found by their keys. After an error or a crash
// the batch may have been written in part: send it again. Entries that are not counted
// then may be written or not: the mark of a row tells when they come again.
// Rows that another writer changed meanwhile are read and decided again, rounds times at most.
func (r *Replay) Batch(ctx context.Context, entries []events.Entry, table string) error {
	left := r.locateAll(entries, table)
	for round := 0; len(left) > 0; round++ {
		if round == rounds {
			return fmt.Errorf("writing %v: another process keeps writing it; let one replay at a time write a table", left[0].ref)
		}
		if err := r.loadRows(ctx, markRead(left)); err != nil {
			return err
		}
		f := flight{Replay: r, order: r.Runner.Orders()}
		f.writes.writes = make([]store.Write, 0, len(left))
		f.writes.of = make([]*entry, 0, len(left))
		for i := range left {
			if err := f.addEntry(ctx, &left[i]); err != nil {
				return err
			}
		}
		if err := f.sendAll(ctx); err != nil {
			return err
		}
		var told []*entry
		again := left[:0]
		for i := range left {
			e := &left[i]
			refused := e.row != nil && e.Bad != nil
			if e.again {
				e.read = false
				again = append(again, entry{Entry: e.Entry, row: e.row})
				continue
			}
			if refused {
				round = -1
			}
			if e.told && !refused {
				told = append(told, &entry{Entry: e.Entry, row: e.row})
			}
			if err := r.countOutcome(ctx, e, table); err != nil {
				return err
			}
		}
		if err := r.putHistories(ctx, told); err != nil {
			return err
		}
		left = again
	}
	return nil
}

// locateAll finds each entry's row; the entries of one row share it.
func (r *Replay) locateAll(entries []events.Entry, table string) []entry {
	out, rows := make([]entry, len(entries)), make(map[string]*row, len(entries))
	var name []byte
	for i := range entries {
		e := &out[i]
		e.Entry = &entries[i]
		if e.Bad != nil {
			continue
		}
		t, key, err := r.locateRecord(e.Entry, table)
		if err != nil {
			e.Bad = &events.Bad{Err: err}
			continue
		}
		name = appendName(name[:0], t.Name, key)
		if e.row = rows[string(name)]; e.row == nil {
			e.row = &row{name: string(name), ref: store.Ref{Table: t.Name, Key: key}, table: t}
			rows[e.row.name] = e.row
		}
	}
	return out
}

// markRead lists the rows that were not read yet, and marks them as read.
func markRead(entries []entry) (rows []*row) {
	for i := range entries {
		if w := entries[i].row; w != nil && !w.read {
			w.read = true
			rows = append(rows, w)
		}
	}
	return rows
}

// appendName appends a row's name. Different rows have different names.
func appendName(b []byte, table string, k store.Key) []byte {
	b = binary.AppendUvarint(b, uint64(len(table)))
	b = append(b, table...)
	b = binary.AppendUvarint(b, uint64(len(k.Partition.Text())))
	b = append(b, k.Partition.Text()...)
	return append(b, k.Sort.Text()...)
}

// loadRows reads rows, and for rows that do not exist the marks of their removal, and of forgotten ones.
func (r *Replay) loadRows(ctx context.Context, rows []*row) error {
	refs := make([]store.Ref, len(rows))
	for i, w := range rows {
		refs[i] = w.ref
	}
	got, err := r.readRows(ctx, refs)
	if err != nil {
		return err
	}
	refs = refs[:0]
	gone := make([]*row, 0, len(rows))
	var tables []string
	for i, w := range rows {
		w.now, w.stale, w.stripped, w.forgot = got[i], false, false, nil
		w.known = knownOf(w.now)
		if w.now == nil {
			refs = append(refs, owntable.ReplayRemoval(w.ref))
			gone = append(gone, w)
			if !slices.Contains(tables, w.ref.Table) {
				tables = append(tables, w.ref.Table)
			}
		}
	}
	refs = append(refs, seq.Map(tables, owntable.Forgotten)...)
	if got, err = r.readRows(ctx, refs); err != nil {
		return err
	}
	noteForgotten(gone, tables, got[len(gone):])
	for i, w := range gone {
		w.known = knownOf(got[i])
		w.swept = owntable.Swept(got[i])
	}
	return nil
}

// readRows reads rows strongly; no request is made for none.
func (r *Replay) readRows(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	rows, err := r.Store.Get(ctx, refs)
	return rows, store.Wrap(err, "reading the rows of a batch")
}

// countOutcome records the outcome of an entry whose writes have happened, or that needs none.
func (r *Replay) countOutcome(ctx context.Context, e *entry, table string) error {
	if e.gap != "" {
		r.sayGap(e.ref, e.Location, e.gap)
	}
	if e.Bad != nil {
		return r.keepDeadLetter(ctx, e.Entry, table)
	}
	r.Summary.addEntry(e.Note, e.applied)
	return nil
}

// addEntry counts an entry by the arrangement's notes of it, and by whether it changed its row.
func (s *Summary) addEntry(note byte, applied bool) {
	switch {
	case note == noteLacking && !applied:
	case note == noteLacking:
		s.Lacking++
	case applied:
		s.Applied++
	default:
		s.Skipped++
	}
}

// keepDeadLetter stores an entry that cannot be used as a dead letter. table is that of the whole
// input, if any.
func (r *Replay) keepDeadLetter(ctx context.Context, e *events.Entry, table string) error {
	r.Summary.Dead++
	if r.Bad != nil {
		r.Bad(*e, e.Bad)
	}
	if e.Record.Table != "" {
		table = e.Record.Table
	}
	d := deadletter.Letter{
		Kind: deadletter.Record, Target: "a record of " + e.File, Reason: e.Bad.Error(), Source: e.Location.String(),
		Time: e.Record.Time, Position: e.Record.Position,
	}
	if e.Bad.Raw != nil {
		d.Raw, d.Record = string(e.Bad.Raw), owntable.RecordItem(&events.Record{Table: table})
	} else {
		rec := e.Record
		rec.Table = table
		d.Record = owntable.RecordItem(&rec)
	}
	if r.retried {
		return fmt.Errorf("%s: %w", e.Bad.Error(), deadletter.ErrNoRetry)
	}
	_, err := r.Runner.Letters().Keep(ctx, d)
	return err
}
