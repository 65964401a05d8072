package sim

import (
	"testing"
	"time"

	"weir/internal/search"
	"weir/internal/search/searchtest"
	"weir/internal/store"
	"weir/internal/store/storetest"
	"weir/internal/value"
)

// TestContract: the simulated store is a store, so that what holds on it may hold on
// others. Its readers see each record at once here; in a run the schedule says when.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table) store.Store {
		m := newMemory(tables, time.Now, newDice(1, "store", 0))
		m.wrote = func(_ string, in *table, _ store.Key, _, _ value.Item) {
			for _, s := range in.shards {
				s.seen = len(s.records)
			}
		}
		return m
	})
}

// TestSearchContract: the simulated index is an index.
func TestSearchContract(t *testing.T) {
	searchtest.Run(t, func(_ *testing.T, schemas []search.Schema) search.Index { return newIndex(schemas) })
}
