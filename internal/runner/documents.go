package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/projections"
	"weir/internal/search"
)

// Documents applies a batch to the search indexes. The newest change of a document
// wins there whatever comes when, so that a batch may be applied any number of
// times. A document that the index refuses is kept; a later change of its row that
// the index takes makes it good.
func (r *Runner) Documents(ctx context.Context, b Batch) (Counts, error) {
	docs, of, touched := r.documents(b)
	errs, err := r.index(ctx, docs)
	if err != nil {
		return Counts{}, err
	}
	var ds []Dead
	kept := make([]bool, len(b.Changes))
	for i, e := range errs {
		switch {
		case e == nil:
			continue
		case !errors.Is(e, search.ErrRefused):
			return Counts{}, fmt.Errorf("index %s: %w", docs[i].Index, e)
		}
		c := &b.Changes[of[i]]
		kept[of[i]] = true
		ds = append(ds, Dead{
			Kind: DeadDocument, Target: docs[i].Index + " " + docs[i].ID, Reason: e.Error(),
			Lane: b.Lane, Position: c.Position, Record: recordJSON(c), Time: c.Time,
		})
	}
	return count(touched, kept), r.keep(ctx, ds)
}

// documents are the newest of each document that the batch asks for, the change
// that each is of, and which changes ask for any.
func (r *Runner) documents(b Batch) (docs []search.Document, of []int, touched []bool) {
	touched = make([]bool, len(b.Changes))
	newest := map[string]int{}
	for i := range b.Changes {
		for _, d := range projections.Documents(r.Model, &b.Changes[i]) {
			touched[i] = true
			name := d.Index + "\x00" + d.ID
			if at, ok := newest[name]; ok {
				docs[at], of[at] = d, i
				continue
			}
			newest[name] = len(docs)
			docs, of = append(docs, d), append(of, i)
		}
	}
	return docs, of, touched
}

// index applies documents together, and what failed of them once more, one by one:
// a failure of the whole, or of a neighbour, says nothing about a document.
func (r *Runner) index(ctx context.Context, docs []search.Document) ([]error, error) {
	if len(docs) == 0 {
		return nil, nil
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
