package document

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
)

// recount compares search documents with the rows that they are made from.
type recount struct {
	runner.BaseRecount
	*runner.Verification
	docs map[string]map[string]bool // by index: the documents, and whether they match their rows
}

// Recount returns the kind's part in a verification.
func (Kind) Recount(v *runner.Verification) runner.Recount {
	return &recount{Verification: v, docs: map[string]map[string]bool{}}
}

// Add notes which rows the indexes cannot use.
func (v *recount) Add(row *projections.Change, f *projections.Faults) {
	if f == nil || row.Is == nil {
		return
	}
	for _, s := range row.Is.Search {
		f.Take(&s.Input, row.New, false)
	}
}

// Compare notes which documents the rows require, and whether the indexes hold them with
// the right content. A document that no index can hold is not required: it is said once,
// as a document that cannot be derived.
func (v *recount) Compare(ctx context.Context, rows []projections.Change) error {
	if v.Index == nil {
		return nil
	}
	var docs []search.Document
	for i := range rows {
		for _, d := range Fold(v.Model, &rows[i]) {
			if err := d.Check(); err != nil {
				v.Cannot("search "+v.search(d.Index).Name, rows[i].Row, "cannot be derived: "+err.Error())
				continue
			}
			docs = append(docs, d)
		}
	}
	if len(docs) == 0 {
		return nil
	}
	held, err := v.Index.Holds(ctx, docs)
	if err != nil {
		return fmt.Errorf("reading the indexes: %w", err)
	}
	for i, d := range docs {
		if v.docs[d.Index] == nil {
			v.docs[d.Index] = map[string]bool{}
		}
		v.docs[d.Index][d.ID] = held[i]
	}
	return nil
}

// End compares the documents that each index holds, with their words and values, with
// those that the rows require.
func (v *recount) End(ctx context.Context) error {
	if v.Index == nil {
		return nil
	}
	for _, s := range v.Model.Searches {
		if err := v.index(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// index compares the documents of one index.
func (v *recount) index(ctx context.Context, s *model.Search) error {
	name := Index(v.Model, s)
	want := v.docs[name]
	q := search.Query{Index: name, Limit: 1000}
	for {
		hits, err := v.Index.Search(ctx, q)
		if err != nil {
			return fmt.Errorf("reading index %s: %w", name, err)
		}
		for _, h := range hits {
			v.Checked++
			switch same, there := want[h.ID]; {
			case !there:
				v.differs(s, h.ID, "not in the index", "in the index")
			case !same:
				v.differs(s, h.ID, "found by what its row holds", "found by something else")
			}
			delete(want, h.ID)
			q.After = h.After
		}
		if len(hits) < q.Limit {
			break
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		v.differs(s, id, "in the index", "not in the index")
	}
	return nil
}

// differs reports a document that is not as the row says, with what corrects it.
func (v *recount) differs(s *model.Search, id, want, have string) {
	v.Differs("search "+s.Name, v.row(s, id), want, have, &Fix{Search: s, ID: id})
}

// search returns the model's search with that index.
func (v *recount) search(index string) *model.Search {
	i := slices.IndexFunc(v.Model.Searches, func(s *model.Search) bool { return Index(v.Model, s) == index })
	return v.Model.Searches[i]
}

// row returns the row of a document, in the form in which differences name rows.
func (v *recount) row(s *model.Search, id string) string {
	key, err := search.ParseID(id)
	if err != nil {
		return id
	}
	return v.RowText(store.Ref{Table: s.Of.Table.Name, Key: key})
}
