//go:build lambda

package system

import (
	"strings"
	"testing"

	"weir/internal/search"
)

// TestWithoutEmbedded: a program that is built for Lambda refuses a directory, and says why.
func TestWithoutEmbedded(t *testing.T) {
	at := Place{Data: t.TempDir()}
	_, _, inStore := at.Open(t.Context(), nil, nil, false)
	_, beside := Beside(t.TempDir(), nil, 0)
	_, inIndex := at.Index().Open(t.Context(), at, []search.Schema{}, IndexOptions{})
	for _, err := range []error{inStore, beside, inIndex} {
		if !IsMistake(err) || !strings.Contains(err.Error(), "-tags lambda") {
			t.Errorf("error: %v", err)
		}
	}
}
