package document

import (
	"context"
	"errors"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
)

// Fix makes a document agree with its row.
type Fix struct {
	runner.UsualUnits
	Search *model.Search
	ID     string
}

// Thing returns the document's name.
func (f *Fix) Thing() string { return f.Search.Name + "\x00" + f.ID }

// Stage returns StageDocuments.
func (*Fix) Stage() runner.Stage { return runner.StageDocuments }

// Correct indexes the document as its row is now, or deletes it. It does so under the position that
// the index has for it, or the floor of the verification, so a later change wins over the repair. What
// the index already holds is left alone. An index that cannot be reached is an error; nothing is lost.
func (f *Fix) Correct(ctx context.Context, r *runner.Runner, floor events.Position) (done, differs bool, err error) {
	d := search.Document{Index: Index(r.Model, f.Search), ID: f.ID}
	at, err := r.Index.Positions(ctx, []search.Document{d})
	if err != nil {
		return false, false, err
	}
	now, err := required(ctx, r, f.Search, []string{f.ID})
	if err != nil {
		return false, false, err
	}
	there := now[0].ID != ""
	if there {
		d = now[0]
		if held, err := r.Index.Holds(ctx, []search.Document{d}); err != nil || held[0] {
			return true, false, err
		}
	}
	d.Deleted, d.Position = !there, runner.FixedAt(at[0], floor)
	errs, err := r.ApplyDocuments(ctx, []search.Document{d})
	if err == nil {
		err = errs[0]
	}
	return err == nil, true, err
}

// required returns the documents that there should be under ids, one without ID for none.
func required(ctx context.Context, r *runner.Runner, s *model.Search, ids []string) ([]search.Document, error) {
	t, refs, at := s.Of.Table, []store.Ref{}, []int{}
	for i, id := range ids {
		key, err := search.ParseID(id)
		if _, ok := t.KeyOf(t.Item(key)); err == nil && ok {
			refs, at = append(refs, store.Ref{Table: t.Name, Key: key}), append(at, i)
		}
	}
	out := make([]search.Document, len(ids))
	if len(refs) == 0 {
		return out, nil
	}
	rows, err := r.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if d, there := Of(r.Model, s, t.Classify(row), refs[i].Key, row); there {
			out[at[i]] = d
		}
	}
	return out, nil
}

// Again makes the documents of an index agree with the rows again, as a Fix does each. It reads all of both. progress is told how
// many rows it has read so far. What the index refuses is left: verify says why.
func Again(ctx context.Context, r *runner.Runner, s *model.Search, progress func(rows int)) error {
	fix := func(id string) error {
		err := r.Correct(ctx, &Fix{Search: s, ID: id}, "document "+id, func() events.Position { return r.Store.Tip().Seen })
		if errors.Is(err, search.ErrRefused) {
			return nil
		}
		return err
	}
	t, read := s.Of.Table, 0
	for rows, err := range store.Pages(ctx, r.Store, store.Query{Table: t.Name}) {
		if err != nil {
			return err
		}
		var docs []search.Document
		for _, row := range rows {
			if key, ok := t.KeyOf(row); ok {
				if d, there := Of(r.Model, s, t.Classify(row), key, row); there && d.Check() == nil {
					docs = append(docs, d)
				}
			}
		}
		held, err := r.Index.Holds(ctx, docs)
		if err != nil {
			return err
		}
		for i := range docs {
			if !held[i] {
				if err := fix(docs[i].ID); err != nil {
					return err
				}
			}
		}
		read += len(rows)
		progress(read)
	}
	for q := (search.Query{Index: Index(r.Model, s), Limit: hitsAtOnce}); ; {
		hits, err := r.Index.Search(ctx, q)
		if err != nil {
			return err
		}
		ids := make([]string, len(hits))
		for i, h := range hits {
			ids[i], q.After = h.ID, h.After
		}
		docs, err := required(ctx, r, s, ids)
		if err != nil {
			return err
		}
		for i := range docs {
			if docs[i].ID == "" {
				if err := fix(ids[i]); err != nil {
					return err
				}
			}
		}
		if len(hits) < q.Limit {
			return nil
		}
	}
}

// hitsAtOnce is how many documents are compared with their rows in one read.
const hitsAtOnce = 100
