package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/internal/projections/document"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// answerSearch answers a search: the rows of the documents found, as the store has them
// now. Hits whose row is gone, or does not belong any more, are passed over and
// the page is filled up from further ones.
// It reads again until the page is full, so documents of deleted rows cost reads and leave no holes.
func (r *run) answerSearch(ctx context.Context, from place) ([]value.Item, place, error) {
	if r.Search == nil {
		return nil, place{}, ErrUnavailable
	}
	if r.Built != nil {
		if err := r.Built(); err != nil {
			return nil, place{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()
	q := r.searchQuery()
	q.After = from.after
	var items []value.Item
	for {
		q.Limit = min(max(r.want-len(items)+1, fewHits), maxBatch)
		hits, _, err := search.Find(ctx, r.Search, q)
		if err != nil {
			return nil, place{}, searchError(err)
		}
		r.reads++
		rows, err := r.rowsOfHits(ctx, hits)
		if err != nil {
			return nil, place{}, err
		}
		for i, row := range rows {
			if row != nil && len(items) == r.want {
				return items, place{after: q.After}, nil
			}
			if row != nil {
				items = append(items, r.plan.hits.outsideRow(row))
			}
			q.After = hits[i].After
		}
		switch {
		case len(hits) < q.Limit:
			return items, place{}, nil
		case len(items) == r.want || r.isSpent():
			return items, place{after: q.After}, nil
		}
	}
}

// fewHits is the least number of hits asked for at once, since some of them may not belong.
const fewHits = 10

// maxSearch is how long a search may take, from its plan to its last row.
const maxSearch = 10 * time.Second

// searchQuery is the query for the index.
// Filters without a value are left out. A sort that begins with - is reversed.
func (r *run) searchQuery() search.Query {
	s := r.plan.Query.Search
	q := search.Query{Index: document.IndexName(r.Model, s), Text: r.args[paramText].Text(), Filters: map[string]value.Value{}}
	for i := range r.plan.With {
		b := &r.plan.With[i]
		if v := r.plan.hits.fixedValue(b, scope{args: r.args}); !v.IsMissing() {
			q.Filters[b.Field.Name] = document.IndexedValue(b.Field, v)
		}
	}
	q.Sort, q.Reverse = strings.CutPrefix(r.args[paramSort].Text(), "-")
	return q
}

// searchError tells mistakes of who asked from faults.
// A query that the index refuses is reported at the parameter of the text. Other errors stay as
// they are.
func searchError(err error) error {
	switch {
	case errors.Is(err, search.ErrCursor):
		return ErrCursor
	case errors.Is(err, search.ErrQuery):
		return &ParameterError{[]Problem{{paramText, err.Error()}}}
	case errors.Is(err, search.ErrGone):
		return fmt.Errorf("%w: %w", ErrBuilding, err)
	}
	return err
}

// rowsOfHits are the rows of hits, nil for one that does not belong.
// A hit whose row is gone, has changed so that it no longer matches, or is expired gives nil, so an
// index that lags shows nothing wrong.
func (r *run) rowsOfHits(ctx context.Context, hits []search.Hit) ([]value.Item, error) {
	st := r.plan.hits
	rows := make([]value.Item, len(hits))
	var keys []store.Key
	var of []int
	for i, h := range hits {
		if k, err := search.ParseID(h.ID); err == nil && st.hasShape(k) {
			keys, of = append(keys, k), append(of, i)
		}
	}
	there, err := r.fetchRows(ctx, st, keys, func(int) scope { return scope{args: r.args} })
	if err != nil {
		return nil, err
	}
	for i, row := range there {
		if row != nil && r.plan.Query.Search.Input.Uses(row) {
			rows[of[i]] = row
		}
	}
	return rows, nil
}
