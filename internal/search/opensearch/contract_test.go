package opensearch

import (
	"context"
	"crypto/rand"
	"os"
	"testing"

	"weir/internal/search"
	"weir/internal/search/searchtest"
)

// urlVariable names a real cluster to test with.
const urlVariable = "WEIR_TEST_OPENSEARCH"

func clusterURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv(urlVariable)
	if url == "" {
		t.Skip("set " + urlVariable + " to the URL of a cluster, as scripts/conform.sh does")
	}
	return url
}

// openReal opens indexes of a source of their own on a real cluster, which go when
// the test ends.
func openReal(t *testing.T, schemas []search.Schema, o Options) *Index {
	t.Helper()
	if o.Source == "" {
		o.Source = rand.Text()
	}
	if o.Refresh == "" {
		o.Refresh = "20ms"
	}
	ix, err := Open(t.Context(), clusterURL(t), schemas, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
		for _, sp := range ix.spaces {
			if err := ix.server.drop(context.Background(), sp); err != nil {
				t.Error(err)
			}
		}
	})
	return ix
}

func TestContract(t *testing.T) {
	clusterURL(t)
	searchtest.Run(t, func(t *testing.T, schemas []search.Schema) search.Index {
		return openReal(t, schemas, Options{})
	})
}
