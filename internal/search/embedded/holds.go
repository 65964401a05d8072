package embedded

import (
	"context"

	"weir/internal/search"
)

// Holds implements search.Index.
func (ix *Index) Holds(_ context.Context, docs []search.Document) ([]bool, error) {
	out, groups := make([]bool, len(docs)), map[string][]int{}
	for i := range docs {
		groups[docs[i].Index] = append(groups[docs[i].Index], i)
	}
	for name, which := range groups {
		c, err := ix.corpus(name)
		if err != nil {
			return nil, err
		}
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
	ids := make([]string, len(which))
	for n, i := range which {
		ids[n] = docs[i].ID
	}
	return stamps(snap, ids)
}
