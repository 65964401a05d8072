package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/search"
)

// Holds implements search.Index. It reads documents by their ids, which needs no
// refresh.
func (ix *Index) Holds(ctx context.Context, docs []search.Document) ([]bool, error) {
	out := make([]bool, len(docs))
	err := ix.look(ctx, docs, func(sp *space, i int, have map[string]any) error {
		want, err := json.Marshal(sp.source(&docs[i], time.Time{}))
		if err != nil {
			return err
		}
		var source map[string]any
		if err := json.Unmarshal(want, &source); err != nil {
			return err
		}
		delete(have, "p")
		delete(source, "p")
		out[i] = reflect.DeepEqual(have, source)
		return nil
	})
	return out, err
}

// look calls yield with what the cluster has of each document, nil for nothing.
func (ix *Index) look(ctx context.Context, docs []search.Document, yield func(sp *space, i int, have map[string]any) error) error {
	groups := map[*space][]int{}
	for i := range docs {
		sp, err := ix.space(docs[i].Index)
		if err != nil {
			return err
		}
		groups[sp] = append(groups[sp], i)
	}
	for sp, which := range groups {
		for len(which) > 0 {
			n := min(len(which), maxBulk)
			if err := ix.server.look(ctx, sp, docs, which[:n], yield); err != nil {
				return fmt.Errorf("search index %s: %w", sp.schema.Name, err)
			}
			which = which[n:]
		}
	}
	return nil
}

// look reads documents by their ids in one request and calls yield for each, in the order of which,
// with nil for a document that the index does not have. It is a read from the shard itself, so it
// sees writes that no search shows yet.
func (s *server) look(ctx context.Context, sp *space, docs []search.Document, which []int, yield func(*space, int, map[string]any) error) error {
	ids := make([]string, len(which))
	for n, i := range which {
		ids[n] = docs[i].ID
	}
	body, err := json.Marshal(object{"ids": ids})
	if err != nil {
		return err
	}
	var got struct {
		Docs []struct {
			Source map[string]any `json:"_source"`
		}
	}
	err = s.call(ctx, &got, func() opensearchapi.Request {
		return opensearchapi.MgetRequest{Index: sp.alias, Body: bytes.NewReader(body), FilterPath: []string{"docs._id", "docs._source"}}
	})
	if err != nil {
		return err
	}
	if len(got.Docs) != len(which) {
		return fmt.Errorf("OpenSearch gives %d documents of %d", len(got.Docs), len(which))
	}
	for n, i := range which {
		if err := yield(sp, i, got.Docs[n].Source); err != nil {
			return err
		}
	}
	return nil
}
