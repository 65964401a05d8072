package document

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// A document that an index does not take in time becomes pending: a row of our own
// table for each document. So rows wait for no index, and no document is lost. CatchUp writes the documents
// that are pending, as their rows are then, at the positions that were noted; in an index the newest position wins, so it does not
// matter which other writes happen meanwhile. A crash at any place leaves a document pending that the index may have by now.

// IsIndexed reports whether each document is to be written, or pending, from now on, by the catalog as it was read after the batch
// was received. It is not while no index was begun, whose scan sees earlier writes. The error wraps catalog.ErrRefused if the
// documents are those of another definition.
func IsIndexed(r *runner.Runner, row owntable.CatalogRow) (bool, error) {
	switch {
	case r.Index != nil && row.Search == r.Generation:
		return true, nil
	case row.Search == "" && (r.Named == nil || !r.Named.Load()):
		return false, nil
	case row.Search == "":
		return false, fmt.Errorf("%w: the search indexes of model %s are kept no more since a program began whose model has none. If this program is older, replace it; if not, start it again", catalog.ErrDefinition, r.Model.Name)
	case r.Index == nil && len(r.Model.Searches) > 0:
		return false, fmt.Errorf("%w: model %s has search indexes, which this program cannot reach: start it with --opensearch URL, or WEIR_OPENSEARCH. If a process keeps them with --search-dir, only processes with that flag may read", catalog.ErrDefinition, r.Model.Name)
	case r.Index == nil:
		return false, fmt.Errorf("%w: model %s has search indexes, which the model of this program does not have. If this program is older, replace it; if not: %s", catalog.ErrDefinition, r.Model.Name, r.Model.Command("build"))
	}
	return false, fmt.Errorf("%w: the search indexes of model %s are those of another definition (%s; this program has %s). Go back to the model that was running; or %s builds them",
		catalog.ErrDefinition, r.Model.Name, row.Search, r.Generation, r.Model.Command("build"))
}

// offerDocuments gives documents to the indexes, and notes those as pending that are not taken until writing ends. It returns an error
// for each that is refused.
func offerDocuments(ctx context.Context, r *runner.Runner, docs []search.Document, writing context.Context) (errs []error, pending int, err error) {
	if len(docs) == 0 {
		return nil, 0, nil
	}
	var tried []error
	if writing != nil {
		if tried, err = ApplyDocuments(writing, r, docs); err == nil || ctx.Err() != nil {
			return tried, 0, err
		}
	}
	var ws []store.Write
	errs = make([]error, len(docs))
	for i := range docs {
		switch d := &docs[i]; {
		case tried != nil && (tried[i] == nil || errors.Is(tried[i], search.ErrRefused)):
			errs[i] = tried[i]
		case d.Check() != nil: // no index can take it
			errs[i] = d.Check()
		default:
			ws = append(ws, owntable.PendDocument(r.Model.Name, r.Generation, d.Index, d.ID, d.Position))
		}
	}
	out, err := r.Write(ctx, ws)
	for i := range out {
		if err == nil && !errors.Is(out[i].Err, store.ErrCondition) { // a higher position that is noted already stays
			err = out[i].Err
		}
	}
	return errs, len(ws), err
}

// CountPending counts the documents that are pending, most at the most.
func CountPending(ctx context.Context, r *runner.Runner, most int) (n int, err error) {
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

// CatchUp writes the documents that are pending, until none is left or an index does not take one, which is the error. A document that
// the index refuses becomes a dead letter. done is how many are not pending any more.
func CatchUp(ctx context.Context, r *runner.Runner) (done int, err error) {
	row, err := r.Admit(ctx, nil)
	if err != nil {
		return 0, err
	}
	if indexed, err := IsIndexed(r, row); !indexed || err != nil {
		return 0, err
	}
	for _, partition := range owntable.Pending(r.Model.Name, r.Generation) {
		q := store.Query{Table: owntable.TableName, Partition: value.OfString(partition), Limit: catchUpAtOnce}
		for rows, err := range store.Pages(ctx, r.Store, q) {
			if err != nil {
				return done, err
			}
			n, err := catchUp(ctx, r, rows)
			if done += n; err != nil {
				return done, fmt.Errorf("documents are pending: %w", err)
			}
		}
	}
	return done, nil
}

// catchUp writes the documents of a page. The notes were read before the rows of the model are.
func catchUp(ctx context.Context, r *runner.Runner, rows []value.Item) (done int, err error) {
	var notes []owntable.PendingRow
	for _, row := range rows {
		n, err := owntable.DecodePending(row)
		if err != nil {
			return 0, err
		}
		notes = append(notes, n)
	}
	notes, _, err = WritePending(ctx, r, "", notes) // others stay pending, for a program that knows their index
	if err != nil {
		return 0, err
	}
	ws := make([]store.Write, len(notes))
	for i := range notes {
		ws[i] = notes[i].Drop(notes[i].At)
	}
	out, err := r.Write(ctx, ws) // one that was noted again meanwhile stays
	for i := range out {
		if out[i].Err == nil {
			done++
		}
	}
	return done, err
}

// WritePending writes documents as their rows are now, at the positions that were noted. A document that the index refuses becomes a dead
// letter of the shard, "" for none: refused is how many. notes are those of all whose index the model has; the others are left out.
func WritePending(ctx context.Context, r *runner.Runner, shardKey string, all []owntable.PendingRow) (notes []owntable.PendingRow, refused int, err error) {
	var changes []projections.Change
	var refs []store.Ref
	for _, n := range all {
		if c, ok := pendingChange(r.Model, &n); ok {
			notes, changes, refs = append(notes, n), append(changes, c), append(refs, c.Row)
		}
	}
	are, err := r.Get(ctx, refs)
	if err != nil {
		return nil, 0, err
	}
	docs := make([]search.Document, len(notes))
	for i, row := range are {
		n, c := &notes[i], &changes[i]
		docs[i] = search.Document{Index: n.Index, ID: n.ID, Deleted: true, Position: n.Position}
		if row == nil {
			continue
		}
		c.Is, c.New = c.Table.Classify(row), row
		for _, d := range r.DocumentsOf(c) {
			if d.Index == n.Index {
				docs[i] = d
			}
		}
	}
	errs, err := ApplyDocuments(ctx, r, docs)
	if err != nil {
		return nil, 0, err
	}
	var ds []deadletter.Letter
	for i, e := range errs {
		if e != nil {
			ds = append(ds, deadDocument(&docs[i], &changes[i], shardKey, e))
		}
	}
	return notes, len(ds), r.Letters().KeepAll(ctx, ds)
}

// pendingChange is the insertion of the row of a document that is pending, without the row. Each index of a generation is of its
// model.
func pendingChange(m *model.Model, n *owntable.PendingRow) (c projections.Change, ok bool) {
	derivation := derivationOf(m, n.Index)
	key, err := search.ParseID(n.ID)
	for _, s := range m.Searches {
		if err == nil && s.Derivation() == derivation {
			return projections.Change{Table: s.Of.Table, Row: store.Ref{Table: s.Of.Table.Name, Key: key}, Position: n.Position, Record: &events.Record{Position: n.Position}}, true
		}
	}
	return c, false
}
