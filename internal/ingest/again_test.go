package ingest_test

import (
	"context"
	"fmt"
	"testing"

	"weir/internal/store"
	"weir/internal/value"
)

// counting counts the calls of a store.
type counting struct {
	store.Store
	calls int
}

func (c *counting) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	c.calls++
	return c.Store.Get(ctx, refs)
}

func (c *counting) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	c.calls++
	return c.Store.Write(ctx, ws)
}

func (c *counting) Transact(ctx context.Context, ws []store.Write) error {
	c.calls++
	return c.Store.Transact(ctx, ws)
}

// TestBatchOfCreatesTwice: a batch of creates that is sent again finds the row of each
// create, and needs one reading for all of them.
func TestBatchOfCreatesTwice(t *testing.T) {
	w := newWorld(t, "watchlists")
	c := &counting{Store: w.Store}
	w.Store = c
	var lines []string
	for i := range 200 {
		lines = append(lines,
			fmt.Sprintf(`{"op":"create","entity":"Saved","item":{"userId":"u%d","watchlistId":"w","savedAt":"2025-01-01T00:00:00Z"}}`, i),
			fmt.Sprintf(`{"op":"create","entity":"Item","item":{"watchlistId":"w","contentType":"MOVIE","contentId":"%d","addedAt":"2025-01-01T00:00:00Z"}}`, i))
	}
	w.Do(t.Context(), readAll(t, lines))
	c.calls = 0
	for i, r := range w.Do(t.Context(), readAll(t, lines)) {
		if r.Err == nil {
			t.Fatalf("%s was done twice", lines[i])
		}
	}
	if c.calls > 20 {
		t.Errorf("sent again, the batch takes %d calls of the store", c.calls)
	}
}
