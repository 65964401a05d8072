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
	docs, of, touched := r.documents(bs)
	errs, err := r.index(ctx, docs)
	if err != nil {
		return nil, err
	}
	kept := make([][]bool, len(bs))
	for i, b := range bs {
		kept[i] = make([]bool, len(b.Changes))
	}
	var ds []Dead
	for i, e := range errs {
		switch {
		case e == nil:
			continue
		case !errors.Is(e, search.ErrRefused):
			return nil, fmt.Errorf("index %s: %w", docs[i].Index, e)
		}
		b := bs[of[i].batch]
		c := &b.Changes[of[i].change]
		kept[of[i].batch][of[i].change] = true
		ds = append(ds, Dead{
			Kind: DeadDocument, Target: docs[i].Index + " " + docs[i].ID, Reason: e.Error(),
			Lane: b.Lane, Position: c.Position, Record: recordJSON(c), Time: c.Time,
		})
	}
	counts := make([]Counts, len(bs))
	for i := range bs {
		counts[i] = count(touched[i], kept[i])
	}
	return counts, r.keep(ctx, ds)
}

// changeOf says which change of which batch something is of.
type changeOf struct{ batch, change int }

// documents are the newest of each document that the batches ask for, the change
// that each is of, and which changes ask for any.
func (r *Runner) documents(bs []Batch) (docs []search.Document, of []changeOf, touched [][]bool) {
	touched = make([][]bool, len(bs))
	newest := map[string]int{}
	for i, b := range bs {
		touched[i] = make([]bool, len(b.Changes))
		for j := range b.Changes {
			for _, d := range projections.Documents(r.Model, &b.Changes[j]) {
				touched[i][j] = true
				name := d.Index + "\x00" + d.ID
				at, ok := newest[name]
				switch {
				case !ok:
					newest[name] = len(docs)
					docs, of = append(docs, d), append(of, changeOf{i, j})
				case docs[at].Position.Compare(d.Position) <= 0:
					docs[at], of[at] = d, changeOf{i, j}
				}
			}
		}
	}
	return docs, of, touched
}

// index applies documents together, and what failed of them once more, one by one:
// a failure of the whole, or of a neighbour, says nothing about a document. What
// they are made from is durable before: the index would keep them whatever became
// of their rows, under positions that the store might give out again.
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
		errs[i] = again[0]
	}
	return errs, nil
}
