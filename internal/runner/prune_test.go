package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
)

// TestLanesLeave says that the positions of lanes that are over go out of the rows
// of ours that are written, of books, sets and lists of followers, and that those
// of others stay.
func TestLanesLeave(t *testing.T) {
	for name, writes := range map[string][]string{
		"gallery": {`put gallery {"PK":"ALBUM#a","SK":"MEDIA#$i","EntityType":"AlbumMedia","albumId":"a","mediaId":"$i","addedAt":"2025-01-01T00:00:00Z"}`},
		"viewing": {`put viewing-history {"profileId":"p","sk":"IN_PROGRESS|$i","a.assetId":"$i","a.state":"IN_PROGRESS"}`},
		"watchlists": {
			`put worthwatch {"PK":"USER#u","SK":"SAVED#WATCHLIST#w","entityType":"USER_SAVED_WATCHLIST","savedAt":"2026-01-01T00:00:00Z"}`,
			`put worthwatch {"PK":"WATCHLIST#w","SK":"ITEM#MOVIE#$i","entityType":"WATCHLIST_ITEM","contentType":"MOVIE","contentId":"$i","addedAt":"2026-01-02T00:00:00Z"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(name)
			must(t, err)
			h := newHarness(t, m)
			defer h.close()
			r := h.runner(nil)
			deliver := func(lane, i string) {
				from := len(h.records)
				for _, w := range writes {
					must(t, h.write(strings.ReplaceAll(w, "$i", i)))
				}
				h.pull()
				var changes []projections.Change
				for n := from; n < len(h.records); n++ {
					c, _ := projections.NewChange(h.records[n].table, &h.records[n].rec)
					changes = append(changes, c)
					h.done[n+1] = true
				}
				_, err := r.Rows(t.Context(), runner.Batch{Lane: lane, Changes: changes})
				must(t, err)
			}
			for i, lane := range []string{"old", "other", "new"} {
				deliver(lane, string(rune('1'+i)))
			}
			if got := h.lanesOf(); !slices.Equal(got, []string{"new", "old", "other"}) {
				t.Errorf("lanes %v", got)
			}
			r.Retired = func(_ context.Context, lane string) (bool, error) { return lane == "old" || lane == "new", nil }
			deliver("new", "4")
			if got := h.lanesOf(); !slices.Equal(got, []string{"new", "other"}) {
				t.Errorf("lanes %v", got)
			}
			must(t, h.settle(len(h.records)+1))
			if out := h.audit(); out != "" {
				t.Error(out)
			}
		})
	}
}

// lanesOf are the lanes of which rows of ours have positions.
func (h *harness) lanesOf() (out []string) {
	for _, row := range h.scan("weir") {
		for _, a := range row {
			if lane, is := strings.CutPrefix(a.Name, "p:"); is && !slices.Contains(out, lane) {
				out = append(out, lane)
			}
		}
	}
	slices.Sort(out)
	return out
}
