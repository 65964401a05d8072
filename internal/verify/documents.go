package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"weir/internal/model"
	"weir/internal/projections/document"
	"weir/internal/search"
	"weir/internal/store"
)

// documents notes which documents the rows require, and whether the indexes hold them with
// the right content. A document that no index can hold is not required: it is said once,
// as a document that cannot be derived.
func (v *Verify) documents(ctx context.Context, rows []found) error {
	if v.Index == nil {
		return nil
	}
	var docs []search.Document
	for i := range rows {
		for _, d := range document.Fold(v.Model, &rows[i].Change) {
			if err := d.Check(); err != nil {
				v.Unshown = append(v.Unshown, Unshown{"search " + v.search(d.Index).Name, rowText(v.Model, rows[i].Row), "cannot be derived: " + err.Error()})
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

// indexes compares the documents that each index holds, with their words and values, with
// those that the rows require.
func (v *Verify) indexes(ctx context.Context) error {
	if v.Index == nil {
		return nil
	}
	for _, s := range v.Model.Searches {
		name := document.Index(v.Model, s)
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
					v.differs("search "+s.Name, v.searched(s, h.ID), "not in the index", "in the index", What{Kind: Document, Search: s, Name: h.ID})
				case !same:
					v.differs("search "+s.Name, v.searched(s, h.ID), "found by what its row holds", "found by something else", What{Kind: Document, Search: s, Name: h.ID})
				}
				delete(want, h.ID)
				q.After = h.After
			}
			if len(hits) < q.Limit {
				break
			}
		}
		for _, id := range slices.Sorted(maps.Keys(want)) {
			v.differs("search "+s.Name, v.searched(s, id), "in the index", "not in the index", What{Kind: Document, Search: s, Name: id})
		}
	}
	return nil
}

// search returns the model's search with that index.
func (v *Verify) search(index string) *model.Search {
	i := slices.IndexFunc(v.Model.Searches, func(s *model.Search) bool { return document.Index(v.Model, s) == index })
	return v.Model.Searches[i]
}

// searched returns the row of a document, in the form in which differences name rows.
func (v *Verify) searched(s *model.Search, id string) string {
	key, err := search.ParseID(id)
	if err != nil {
		return id
	}
	return rowText(v.Model, store.Ref{Table: s.Of.Table.Name, Key: key})
}
