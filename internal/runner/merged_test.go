package runner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/events"
	"weir/internal/mergedlog"
	"weir/internal/projections"
)

// TestMerged: a log's pages, each in order, become one list with every change once, in the order
// of offsets. Positions of different shards may be equal.
func TestMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := make([][]projections.Change, rapid.IntRange(0, 9).Draw(t, "pages"))
		var want []events.Position
		for i := range lists {
			at := uint64(0)
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				at += rapid.Uint64Range(1, 3).Draw(t, "further")
				o := mergedlog.Offset{Batch: 1, Position: events.PositionOf(at), Nth: i}
				lists[i], want = append(lists[i], projections.Change{Offset: o, Piece: i}), append(want, o)
			}
		}
		slices.SortFunc(want, events.Position.Compare)
		got := merged(lists)
		if len(got) != len(want) {
			t.Fatalf("%d changes, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i].Offset != want[i] || got[i].Piece != want[i].Nth {
				t.Fatalf("change %d is at %v of piece %d, want %v", i, got[i].Offset, got[i].Piece, want[i])
			}
		}
	})
}
