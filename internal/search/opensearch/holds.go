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

// Holds implements search.Index. It reads documents by their ids, which waits for
// no refresh.
func (ix *Index) Holds(ctx context.Context, docs []search.Document) ([]bool, error) {
	out := make([]bool, len(docs))
	groups := map[*space][]int{}
	for i := range docs {
		sp, err := ix.space(docs[i].Index)
		if err != nil {
			return nil, err
		}
		groups[sp] = append(groups[sp], i)
	}
	for sp, which := range groups {
		for len(which) > 0 {
			n := min(len(which), maxBulk)
			if err := ix.server.holds(ctx, sp, docs, which[:n], out); err != nil {
				return nil, fmt.Errorf("search index %s: %w", sp.schema.Name, err)
			}
			which = which[n:]
		}
	}
	return out, nil
}

func (s *server) holds(ctx context.Context, sp *space, docs []search.Document, which []int, out []bool) error {
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
		want, err := json.Marshal(sp.source(&docs[i], time.Time{}))
		if err != nil {
			return err
		}
		var source map[string]any
		if err := json.Unmarshal(want, &source); err != nil {
			return err
		}
		have := got.Docs[n].Source
		delete(have, "p")
		delete(source, "p")
		out[i] = reflect.DeepEqual(have, source)
	}
	return nil
}
