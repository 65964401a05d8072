package document

import (
	"context"
	"errors"
	"testing"

	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
)

// fullIndex takes no document, and says so of each.
type fullIndex struct {
	search.Index
	calls int
}

func (x *fullIndex) Apply(_ context.Context, docs []search.Document) ([]error, error) {
	x.calls++
	errs := make([]error, len(docs))
	for i := range errs {
		errs[i] = errors.New("no space left on device")
	}
	return errs, nil
}

type syncedStore struct{ store.Store }

func (syncedStore) Sync(context.Context) error { return nil }

// TestFullIndex: an index that takes nothing is not asked again for each document.
func TestFullIndex(t *testing.T) {
	x := &fullIndex{}
	r := &runner.Runner{Store: syncedStore{}, Index: x}
	if _, err := ApplyDocuments(context.Background(), r, make([]search.Document, 2000)); err == nil || x.calls != 2 {
		t.Errorf("%d calls, %v", x.calls, err)
	}
}
