// Package opensearchtest finds the OpenSearch cluster that tests may use. "make
// conform" starts one. Without a cluster such tests are skipped.
package opensearchtest

import (
	"os"
	"testing"
)

// Endpoint is the environment variable with the URL of the cluster to test against.
const Endpoint = "WEIR_TEST_OPENSEARCH"

// URL is the URL of the cluster. It skips the test if there is none. A test has to
// delete its indexes itself if it does not want to leave them behind.
func URL(t testing.TB) string {
	t.Helper()
	url := os.Getenv(Endpoint)
	if url == "" {
		t.Skipf("needs OpenSearch: make conform starts one, or set %s to its URL", Endpoint)
	}
	return url
}
