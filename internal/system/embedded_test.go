//go:build !lambda

package system

import (
	"testing"

	"weir/internal/memory"
	"weir/internal/store/embedded"
)

// TestMemory: the caches of a store are shares of what its process may have.
func TestMemory(t *testing.T) {
	for size, unit := range map[memory.Size]int64{0: 1 << 20, memory.Default: 1 << 20, memory.Least: 1 << 19, memory.GB: 4 << 20} {
		at := Place{Data: t.TempDir(), Memory: size}
		db, _, err := at.Open(t.Context(), nil, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		o := db.(*embedded.Store).Options()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		got := [4]int64{o.CacheBytes, o.RowCacheBytes, o.TailBytes, int64(o.MemTableBytes)}
		if want := [4]int64{12 * unit, 24 * unit, 12 * unit, 16 * unit}; got != want {
			t.Errorf("%s: %d, want %d", size, got, want)
		}
	}
}
