package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/store"
)

// Documents applies a batch to the search indexes. The newest change of a document
// wins there whatever comes when, so that a batch may be applied any number of
// times. A document that the index refuses is kept; a later change of its row that
// the index takes makes it good.
func (r *Runner) Documents(ctx context.Context, b Batch) (Counts, error) {
	var docs []search.Document
	var of []int
	newest := map[string]int{}
	for i := range b.Changes {
		for _, d := range projections.Documents(r.Model, &b.Changes[i]) {
			name := d.Index + "\x00" + d.ID
			if at, ok := newest[name]; ok {
				docs[at], of[at] = d, i
				continue
			}
			newest[name] = len(docs)
			docs, of = append(docs, d), append(of, i)
		}
	}
	n := Counts{Skipped: len(b.Changes)}
	if len(docs) == 0 {
		return n, nil
	}
	errs, err := r.Index.Apply(ctx, docs)
	if err != nil {
		return Counts{}, err
	}
	n = Counts{Applied: len(docs), Skipped: len(b.Changes) - len(docs)}
	var ws []store.Write
	for i, e := range errs {
		switch {
		case e == nil:
			continue
		case !errors.Is(e, search.ErrRefused):
			return Counts{}, fmt.Errorf("index %s: %w", docs[i].Index, e)
		}
		c := &b.Changes[of[i]]
		ws = append(ws, putDead(r.Model, Dead{
			Kind: DeadDocument, Target: docs[i].Index + " " + docs[i].ID, Reason: e.Error(),
			Lane: b.Lane, Position: c.Position, Record: recordJSON(c), Time: c.Time,
		}))
	}
	n.Applied -= len(ws)
	n.Kept = len(ws)
	_, err = r.write(ctx, ws)
	return n, err
}
