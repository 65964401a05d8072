package embedded

import (
	"context"

	"weir/internal/search"
)

// Holds implements search.Index.
func (ix *Index) Holds(_ context.Context, docs []search.Document) ([]bool, error) {
	out := make([]bool, len(docs))
	err := ix.look(docs, func(c *corpus, i int, st stamp, there bool) {
		out[i] = there && st.mark == stampOf(&c.schema, &docs[i]).mark
	})
	return out, err
}

// look calls yield with what the indexes hold of each document.
// The order of yield is not that of docs. A document of an index that does not exist is an error of
// the whole call.
func (ix *Index) look(docs []search.Document, yield func(c *corpus, i int, st stamp, there bool)) error {
	groups := map[string][]int{}
	for i := range docs {
		groups[docs[i].Index] = append(groups[docs[i].Index], i)
	}
	for name, which := range groups {
		c, err := ix.corpus(name)
		if err != nil {
			return err
		}
		held, err := c.held(docs, which)
		if err != nil {
			return err
		}
		for _, i := range which {
			st, there := held[docs[i].ID]
			yield(c, i, st, there)
		}
	}
	return nil
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
