package opensearch

import (
	"context"
	"crypto/rand"
	"testing"

	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/search/searchtest"
)

// openReal opens indexes with a source of their own on a real cluster, and deletes them
// when the test ends.
func openReal(t *testing.T, schemas []search.Schema, o Options) *Index {
	t.Helper()
	if o.Source == "" {
		o.Source = rand.Text()
	}
	if o.Refresh == "" {
		o.Refresh = "20ms"
	}
	ix, err := Open(t.Context(), opensearchtest.URL(t), schemas, o)
	failtest.On(t, err)
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
		for _, sp := range ix.spaces {
			if err := ix.server.dropIndex(context.Background(), sp); err != nil {
				t.Error(err)
			}
		}
	})
	return ix
}

func TestContract(t *testing.T) {
	opensearchtest.URL(t)
	searchtest.Run(t, func(t *testing.T, schemas []search.Schema) search.Index {
		return openReal(t, schemas, Options{})
	})
}

func TestDefinitionsContract(t *testing.T) {
	opensearchtest.URL(t)
	searchtest.RunDefinitions(t, func(t *testing.T) func([]search.Schema) search.Index {
		source := rand.Text()
		return func(schemas []search.Schema) search.Index { return openReal(t, schemas, Options{Source: source}) }
	})
}
