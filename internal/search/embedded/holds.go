package embedded

import (
	"context"
	"errors"

	"weir/internal/search"
	"weir/internal/seq"
)

// Holds implements search.Index.
func (ix *Index) Holds(_ context.Context, docs []search.Document) ([]bool, error) {
	out := make([]bool, len(docs))
	groups, errs := search.Group(docs, ix.corpus)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for c, which := range groups {
		held, err := c.held(docs, which)
		if err != nil {
			return nil, err
		}
		for _, i := range which {
			st, there := held[docs[i].ID]
			out[i] = there && st.mark == stampOf(&c.schema, &docs[i]).mark
		}
	}
	return out, nil
}

// held returns the stamps of documents, tombstones included, by id.
func (c *corpus) held(docs []search.Document, which []int) (map[string]stamp, error) {
	snap, err := c.snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return readStamps(snap, seq.Map(which, func(i int) string { return docs[i].ID }))
}
