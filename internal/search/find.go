package search

import (
	"context"
	"encoding/base64"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Find answers a query as people expect: it matches words as typed, and forgives typos
// only if nothing at all matches. The second result reports whether typos were
// forgiven.
//
// A Hit's After from Find is only for Find, and only for the same query; otherwise Find
// returns ErrCursor. The cursor records the mode of the first page, and later pages use
// the same mode.
//
// If q.Fuzzy is set, typos are forgiven from the first page on.
func Find(ctx context.Context, ix Index, q Query) ([]Hit, bool, error) {
	if q.After != "" {
		var err error
		if q.Fuzzy, q.After, err = openCursor(q); err != nil {
			return nil, false, err
		}
	}
	hits, err := ix.Search(ctx, q)
	if err == nil && len(hits) == 0 && q.After == "" && !q.Fuzzy && slices.ContainsFunc(Words(q.Text), MayForgive) {
		q.Fuzzy = true
		hits, err = ix.Search(ctx, q)
	}
	if err != nil {
		return nil, false, err
	}
	out := make([]Hit, len(hits))
	for i, h := range hits {
		out[i] = Hit{ID: h.ID, After: cursor(q, h.After)}
	}
	return out, q.Fuzzy, nil
}

// A cursor is a letter for the mode, a hash of the query in 11 characters (mark), and
// the driver's own cursor.

const markLen = 11

// cursor seals where a search goes on: whether it was a tolerant one, and a mark of the query,
// so that the cursor of another query is refused.
func cursor(q Query, after string) string {
	mode := "t"
	if q.Fuzzy {
		mode = "f"
	}
	return mode + mark(q) + after
}

// openCursor is the inverse of cursor. It returns ErrCursor for a cursor that is damaged, or of
// another query.
func openCursor(q Query) (fuzzy bool, after string, err error) {
	c := q.After
	if len(c) <= 1+markLen || c[0] != 't' && c[0] != 'f' || c[1:1+markLen] != mark(q) {
		return false, "", ErrCursor
	}
	return c[0] == 'f', c[1+markLen:], nil
}

// mark is a hash of a query. It is equal for two queries that may share a cursor: those
// that differ only in Limit, After and Fuzzy.
func mark(q Query) string {
	h := fnv.New64a()
	put := func(s string) { io.WriteString(h, strconv.Itoa(len(s))+":"+s) }
	put(q.Index)
	put(strings.Join(Words(q.Text), " "))
	put(q.Sort)
	put(strconv.FormatBool(q.Reverse))
	for _, f := range slices.Sorted(maps.Keys(q.Filters)) {
		t, _ := Term(q.Filters[f])
		put(f)
		put(t)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
