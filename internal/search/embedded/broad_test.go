package embedded

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/search"
)

// TestBroad: a query for the beginning of many words stops when its context ends, and
// is refused if more words begin so than a query may look at.
func TestBroad(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{InMemory: true}, plain)
	var docs []search.Document
	for n := range 1000 {
		docs = append(docs, search.Document{Index: "plain", ID: fmt.Sprint(n), Position: events.PositionOf(1), Text: []string{fmt.Sprintf("img%04d", n)}})
	}
	mustApply(t, ix, docs...)
	q := search.Query{Index: "plain", Text: "img", Limit: 10}
	if hits, err := ix.Search(t.Context(), q); err != nil || len(hits) != 10 {
		t.Fatalf("%d hits, %v", len(hits), err)
	}
	c := ix.corpora["plain"]
	snap, err := c.snapshot()
	failtest.On(t, err)
	defer snap.Close()
	plan, err := plain.Plan(q)
	failtest.On(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, seg := range snap.Segments() {
		m := matcher{ctx: over, plan: &plan, most: search.MaxTerms}
		if _, _, err := m.match(seg); seg.Count() > 300 && !errors.Is(err, context.Canceled) {
			t.Errorf("planning goes on for one who is gone: %v", err)
		}
	}
	m, broad := matcher{ctx: t.Context(), plan: &plan, most: 900}, error(nil)
	for _, seg := range snap.Segments() {
		if _, _, broad = m.match(seg); broad != nil {
			break
		}
	}
	if !errors.Is(broad, search.ErrBroad) || !errors.Is(broad, search.ErrQuery) {
		t.Errorf("1000 words of 900: %v", broad)
	}
}
