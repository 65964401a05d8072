package reader

import (
	"testing"
	"time"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/owntable"
)

// TestCutOfANewShard: a function does not know from which shards one descends. One that it begins near the hand-over is cut before its
// first record, since one before it may have been; one that it has read is not, and none long before.
func TestCutOfANewShard(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	row := owntable.CatalogRow{Count: 3, Builds: owntable.Builds{{Generation: 7, State: owntable.BuildVerified, HandOver: contribution.HandOver{At: at}}}}
	for _, x := range []struct {
		isNew  bool
		before time.Duration // of the first record, before the hand-over
		cut    string
	}{
		{true, 20 * time.Minute, "0"}, {true, 40 * time.Minute, ""}, {false, 20 * time.Minute, ""}, {false, -time.Minute, "0"}, {true, -time.Minute, "0"},
	} {
		records := []events.Record{{Position: events.PositionOf(5), Time: at.Add(-x.before)}, {Position: events.PositionOf(6), Time: at.Add(-x.before)}}
		f := CutFence(row, contribution.Fence{View: 3}, events.Position{}, x.isNew, func(yield func(*events.Record) bool) {
			for i := range records {
				if !yield(&records[i]) {
					return
				}
			}
		})
		cut := ""
		if p, is := f.Cuts[7]; is {
			cut = p.String()
		}
		if cut != x.cut {
			t.Errorf("new %v, %v before: cut at %q, not %q", x.isNew, x.before, cut, x.cut)
		}
	}
}
