package runner

import (
	"context"
	"errors"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// A function writes the documents of an event behind its rows. What an index does not take in time becomes pending: a row of our own
// table for each document. Then the event is done, so rows wait for no index, and no document is lost. CatchUp writes the documents
// that are pending, as their rows are then, at the positions that were noted; in an index the newest position wins, so it does not
// matter what else is written meanwhile. A crash at any place leaves a document pending that the index may have by now.

// Indexing is what a function does with the documents of an event.
type Indexing int

// The zero Indexing writes documents.
const (
	Indexed   Indexing = iota
	Pending            // their index cannot be written now
	Unindexed          // there is no index yet; its build reads the rows
)

// indexTime is how long an event waits for an index.
const indexTime = 3 * time.Second

// Documented applies the documents of a batch whose rows are applied, if write, and notes those as pending that an index does not take
// in time, or all of them. It returns how many became pending. A document that the index refuses becomes a dead letter, as with Documents.
func (r *Runner) Documented(ctx context.Context, b Batch, write bool) (pending int, err error) {
	if write {
		indexing, cancel := context.WithTimeout(ctx, indexTime)
		_, err := r.Documents(indexing, []Batch{b})
		cancel()
		if err == nil || ctx.Err() != nil {
			return 0, err
		}
	}
	var all asked[int]
	for i := range b.Changes {
		for _, d := range r.documents(&b.Changes[i]) {
			all.add(d, i)
		}
	}
	var ws []store.Write
	var ds []Dead
	for i := range all.docs {
		d := &all.docs[i]
		if err := d.Check(); err != nil { // no index can take it
			ds = append(ds, deadDocument(d, &b.Changes[all.of[i]], b.ShardKey, err))
			continue
		}
		ws = append(ws, owntable.Pend(r.Model.Name, r.Generation, d.Index, d.ID, d.Position))
	}
	if err := r.KeepAll(ctx, ds); err != nil {
		return 0, err
	}
	out, err := r.Write(ctx, ws)
	for i := range out {
		if err == nil && !errors.Is(out[i].Err, store.ErrCondition) { // a higher position that is noted already stays
			err = out[i].Err
		}
	}
	return len(ws), err
}

// PendingDocuments counts the documents that are pending, most at the most.
func (r *Runner) PendingDocuments(ctx context.Context, most int) (n int, err error) {
	for _, partition := range owntable.Pending(r.Model.Name, r.Generation) {
		for rows, err := range store.Pages(ctx, r.Store, store.Query{Table: owntable.TableName, Partition: value.OfString(partition), Limit: most}) {
			if n += len(rows); err != nil || n >= most {
				return min(n, most), err
			}
		}
	}
	return n, nil
}

// catchUpAtOnce is how many documents are made at a time.
const catchUpAtOnce = 200

// CatchUp writes the documents that are pending, until none is left or an index does not take one, which is the error. What the index
// refuses becomes a dead letter. done is how many are not pending any more.
func (r *Runner) CatchUp(ctx context.Context) (done int, err error) {
	for _, partition := range owntable.Pending(r.Model.Name, r.Generation) {
		q := store.Query{Table: owntable.TableName, Partition: value.OfString(partition), Limit: catchUpAtOnce}
		for rows, err := range store.Pages(ctx, r.Store, q) {
			if err != nil {
				return done, err
			}
			n, err := r.catchUp(ctx, rows)
			if done += n; err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// catchUp writes the documents of a page. The notes were read before the rows of the model are.
func (r *Runner) catchUp(ctx context.Context, rows []value.Item) (done int, err error) {
	var notes []owntable.PendingRow
	var changes []projections.Change
	var refs []store.Ref
	for _, row := range rows {
		n, err := owntable.DecodePending(row)
		if err != nil {
			return 0, err
		}
		if c, ok := r.pendingChange(&n); ok {
			notes, changes, refs = append(notes, n), append(changes, c), append(refs, c.Row)
		}
	}
	are, err := r.Get(ctx, refs)
	if err != nil {
		return 0, err
	}
	docs := make([]search.Document, len(notes))
	for i, row := range are {
		n, c := &notes[i], &changes[i]
		docs[i] = search.Document{Index: n.Index, ID: n.ID, Deleted: true, Position: n.Position}
		if row == nil {
			continue
		}
		c.Is, c.New = c.Table.Classify(row), row
		for _, d := range r.documents(c) {
			if d.Index == n.Index {
				docs[i] = d
			}
		}
	}
	errs, err := r.ApplyDocuments(ctx, docs)
	if err != nil {
		return 0, err
	}
	var ds []Dead
	ws := make([]store.Write, len(notes))
	for i, e := range errs {
		if ws[i] = notes[i].Drop(); e != nil {
			ds = append(ds, deadDocument(&docs[i], &changes[i], "", e))
		}
	}
	if err := r.KeepAll(ctx, ds); err != nil {
		return 0, err
	}
	out, err := r.Write(ctx, ws) // one that was noted again meanwhile stays
	for i := range out {
		if out[i].Err == nil {
			done++
		}
	}
	return done, err
}

// pendingChange is the insertion of the row of a document that is pending, without the row. Each index of a generation is of its
// model.
func (r *Runner) pendingChange(n *owntable.PendingRow) (c projections.Change, ok bool) {
	derivation := r.searching(n.Index)
	for _, s := range r.Model.Searches {
		if key, err := search.ParseID(n.ID); err == nil && s.Derivation() == derivation {
			return projections.Change{Table: s.Of.Table, Row: store.Ref{Table: s.Of.Table.Name, Key: key}, Position: n.Position, Record: &events.Record{Position: n.Position}}, true
		}
	}
	return c, false
}
