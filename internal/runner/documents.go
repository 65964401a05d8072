package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/projections"
	"weir/internal/search"
)

// Documents applies batches to the search indexes, all at once. The newest change
// of a document wins there whatever comes when, so that a batch may be applied any
// number of times. A document that the index refuses is kept; a later change of its
// row that the index takes makes it good.
func (r *Runner) Documents(ctx context.Context, bs []Batch) ([]Counts, error) {
	var all asked[changeOf]
	touched, kept := make([][]bool, len(bs)), make([][]bool, len(bs))
	for i, b := range bs {
		touched[i], kept[i] = make([]bool, len(b.Changes)), make([]bool, len(b.Changes))
		for j := range b.Changes {
			for _, d := range projections.Documents(r.Model, &b.Changes[j]) {
				touched[i][j] = true
				all.add(d, changeOf{i, j})
			}
		}
	}
	errs, err := r.index(ctx, all.docs)
	if err != nil {
		return nil, err
	}
	var ds []Dead
	for i, e := range errs {
		if e != nil {
			of := all.of[i]
			kept[of.batch][of.change] = true
			ds = append(ds, deadDocument(&all.docs[i], &bs[of.batch].Changes[of.change], bs[of.batch].Lane, e))
		}
	}
	counts := make([]Counts, len(bs))
	for i := range bs {
		counts[i] = count(touched[i], kept[i])
	}
	return counts, r.keep(ctx, ds)
}

// changeOf says which change of which batch something is of.
type changeOf struct{ batch, change int }

// asked is the newest of each document that changes ask for, and what each is of.
type asked[T any] struct {
	docs []search.Document
	of   []T
	at   map[documentName]int
}

type documentName struct{ index, id string }

// add takes a document in, unless a newer one is there. It says which one it replaces
// or leaves out, if any.
func (a *asked[T]) add(d search.Document, of T) (old search.Document) {
	name := documentName{d.Index, d.ID}
	at, ok := a.at[name]
	if !ok {
		if a.at == nil {
			a.at = map[documentName]int{}
		}
		a.at[name] = len(a.docs)
		a.docs, a.of = append(a.docs, d), append(a.of, of)
		return old
	}
	if old = a.docs[at]; old.Position.Compare(d.Position) > 0 {
		return d
	}
	a.docs[at], a.of[at] = d, of
	return old
}

func deadDocument(d *search.Document, c *projections.Change, lane string, reason error) Dead {
	return Dead{
		Kind: DeadDocument, Target: d.Index + " " + d.ID, Reason: reason.Error(),
		Lane: lane, Position: c.Position, Record: recordJSON(c), Time: c.Time,
	}
}

// index applies documents together, and what failed of them once more, one by one:
// a failure of the whole, or of a neighbour, says nothing about a document. It
// answers which are refused. What they are made from is durable before: the index
// would keep them whatever became of their rows, under positions that the store
// might give out again.
func (r *Runner) index(ctx context.Context, docs []search.Document) ([]error, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	if err := r.Store.Sync(ctx); err != nil {
		return nil, err
	}
	errs, err := r.Index.Apply(ctx, docs)
	if err != nil {
		return nil, err
	}
	for i, e := range errs {
		if e == nil || errors.Is(e, search.ErrRefused) {
			continue
		}
		again, err := r.Index.Apply(ctx, docs[i:i+1])
		if err != nil {
			return nil, err
		}
		if e := again[0]; e != nil && !errors.Is(e, search.ErrRefused) {
			return nil, fmt.Errorf("index %s: %w", docs[i].Index, e)
		}
		errs[i] = again[0]
	}
	return errs, nil
}
