// Package opensearchtest finds the OpenSearch cluster that tests may use. make
// conform starts one; without it such tests are skipped.
package opensearchtest

import (
	"os"
	"testing"
)

// Endpoint is the variable that names the cluster to test against.
const Endpoint = "WEIR_TEST_OPENSEARCH"

// URL is where the cluster is. It skips the test where there is none. Tests leave
// their indexes behind unless they see to it.
func URL(t testing.TB) string {
	t.Helper()
	url := os.Getenv(Endpoint)
	if url == "" {
		t.Skipf("needs OpenSearch: make conform starts one, or set %s to its URL", Endpoint)
	}
	return url
}
