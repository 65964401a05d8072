package embedded

import (
	"context"

	"weir/internal/search"
)

// Holds implements search.Index.
func (ix *Index) Holds(_ context.Context, docs []search.Document) ([]bool, error) {
	out := make([]bool, len(docs))
	groups := map[string][]int{}
	for i := range docs {
		groups[docs[i].Index] = append(groups[docs[i].Index], i)
	}
	for name, which := range groups {
		c, err := ix.corpus(name)
		if err != nil {
			return nil, err
		}
		if err := c.holds(docs, which, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *corpus) holds(docs []search.Document, which []int, out []bool) error {
	snap, err := c.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	ids := make([]string, len(which))
	for n, i := range which {
		ids[n] = docs[i].ID
	}
	held, err := stamps(snap, ids)
	if err != nil {
		return err
	}
	for _, i := range which {
		st, ok := held[docs[i].ID]
		out[i] = ok && st.mark == stampOf(&c.schema, &docs[i]).mark
	}
	return nil
}
