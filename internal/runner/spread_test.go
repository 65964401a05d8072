package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// newSpread is newTagged with tags that are a distinct of any size.
func newSpread(t *testing.T, byItem bool) *harness {
	m, err := loadText(t, strings.ReplaceAll(tagged, ", max: $max", ""))
	must(t, err)
	h := newHarness(t, m)
	h.byItem = byItem
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	must(t, h.settle(1))
	return h
}

// values returns the rows of our table that count values.
func (h *harness) values() (out []value.Item) {
	h.t.Helper()
	q := store.Query{Table: owntable.TableName}
	for {
		page, err := h.store.Query(h.t.Context(), q)
		must(h.t, err)
		for _, row := range page.Rows {
			if owntable.Kind(row.Get(owntable.Partition).Text()) == owntable.KindValue {
				out = append(out, row)
			}
		}
		if q.After = page.Next; q.After == nil {
			return out
		}
	}
}

// holds fails unless so many rows count values, and verify finds nothing.
func (h *harness) holds(when string, values int) {
	h.t.Helper()
	if n := len(h.values()); n != values {
		h.t.Errorf("%s: %d rows count values, want %d", when, n, values)
	}
	if out := h.audit(); out != "" {
		h.t.Errorf("%s: %s", when, out)
	}
}

// TestSpread: a distinct of any size has a row for each of its values, and the ledger their number,
// in whatever pieces and however often records come. Values that no row has any more leave nothing.
func TestSpread(t *testing.T) {
	for _, byItem := range []bool{false, true} {
		t.Run(fmt.Sprintf("byItem=%v", byItem), func(t *testing.T) {
			h := newSpread(t, byItem)
			defer h.close()
			moved := func(i int) string { return strings.Replace(tagOf(i), `"tag":"0`, `"tag":"1`, 1) }
			same := func(i int) string { return strings.Replace(tagOf(0), "USER#0", fmt.Sprint("USER#", i), 1) }
			h.each(0, 250, tagOf)
			h.shows("once", 250, 250, 3)
			h.holds("once", 250)
			if size := h.theLedger().Size(); size > 1000 {
				t.Errorf("the ledger has %d bytes: %v", size, h.theLedger())
			}
			must(t, h.settle(1))
			must(t, h.settle(100))
			h.shows("come again", 250, 250, 3)
			h.holds("come again", 250)
			h.each(0, 200, moved)
			h.shows("moved", 250, 250, 3)
			h.holds("moved", 250)
			h.each(10, 250, same)
			h.shows("one value", 250, 11, 3)
			h.holds("one value", 11)
			h.each(0, 250, gone)
			h.shows("gone", 0, 0, 0)
			h.holds("gone", 0)
			if l := owntable.LedgerRow(h.theLedger()); !l.Empty() {
				t.Errorf("the ledger is not empty: %v", l)
			}
			h.letterOf("after all", "")
		})
	}
}
