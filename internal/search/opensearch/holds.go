package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/search"
	"weir/internal/seq"
)

// Holds implements search.Index. It reads documents by their ids, which needs no
// refresh.
func (ix *Index) Holds(ctx context.Context, docs []search.Document) ([]bool, error) {
	out := make([]bool, len(docs))
	groups, errs := search.Group(docs, ix.space)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for sp, all := range groups {
		for which := range slices.Chunk(all, maxBulk) {
			have, err := ix.server.readSources(ctx, sp, docs, which)
			if err != nil {
				return nil, fmt.Errorf("search index %s: %w", sp.schema.Name, err)
			}
			for n, i := range which {
				if out[i], err = sp.hasSame(&docs[i], have[n]); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// hasSame reports whether the cluster has a document with this text and these values, at any position.
func (sp *space) hasSame(d *search.Document, have map[string]any) (bool, error) {
	text, err := json.Marshal(sp.source(d, time.Time{}))
	if err != nil {
		return false, err
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		return false, err
	}
	delete(have, "p")
	delete(want, "p")
	return reflect.DeepEqual(have, want), nil
}

// readSources reads documents by their ids in one request and returns each as the cluster has it, nil for one that it does not
// have. It is a read from the shard itself, so it sees writes that no search shows yet.
func (s *server) readSources(ctx context.Context, sp *space, docs []search.Document, which []int) ([]map[string]any, error) {
	ids := seq.Map(which, func(i int) string { return docs[i].ID })
	body, err := json.Marshal(object{"ids": ids})
	if err != nil {
		return nil, err
	}
	var got struct {
		Docs []struct {
			Source map[string]any `json:"_source"`
			Error  *cause
		}
	}
	err = s.callUntilAnswered(ctx, &got, func() opensearchapi.Request {
		return opensearchapi.MgetRequest{Index: sp.alias, Body: bytes.NewReader(body), FilterPath: []string{"docs._id", "docs._source", "docs.error"}}
	})
	if err != nil {
		return nil, err
	}
	if len(got.Docs) != len(which) {
		return nil, fmt.Errorf("OpenSearch gives %d documents of %d", len(got.Docs), len(which))
	}
	out := make([]map[string]any, len(which))
	for n, d := range got.Docs {
		if d.Error != nil { // its shard does not answer, which says nothing of the document
			return nil, fmt.Errorf("OpenSearch does not say whether it has %s: %s", ids[n], d.Error.Reason)
		}
		out[n] = d.Source
	}
	return out, nil
}
