package status

import (
	"testing"

	"weir/internal/model"
	"weir/internal/value"
)

// TestLatestIsOneRow: what a stage sets is of one row, the latest by the first line of set, in
// whatever order the rows are read.
func TestLatestIsOneRow(t *testing.T) {
	st := &model.Stage{Set: []model.Assign{{Name: "at"}, {Name: "by"}, {Name: "note"}}}
	row := func(pairs ...string) (out value.Item) {
		for i := 0; i < len(pairs); i += 2 {
			out = out.With(value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
		}
		return out
	}
	for name, c := range map[string]struct {
		rows []value.Item
		want value.Item
	}{
		"the maximum of each is of no row": {
			[]value.Item{row("at", "2026-01-01T00:00:00Z", "by", "zoe", "note", "z"), row("at", "2026-01-02T00:00:00Z", "by", "ann"), row("by", "zz")},
			row("at", "2026-01-02T00:00:00Z", "by", "ann"),
		},
		"instants": {
			[]value.Item{row("at", "2026-01-01T02:00:00+02:00", "by", "b"), row("at", "2026-01-01T00:30:00Z", "by", "a"), row("at", "soon", "by", "c")},
			row("at", "2026-01-01T00:30:00Z", "by", "a"),
		},
		"texts between times": {
			[]value.Item{row("at", "2026-01-01T05:00:00+05:00"), row("at", "2026-01-01T03"), row("at", "2026-01-01T01:00:00Z")},
			row("at", "2026-01-01T01:00:00Z"),
		},
		"a further line decides": {
			[]value.Item{row("at", "2026-01-01T00:00:00Z", "by", "a", "note", "x"), row("at", "2026-01-01T00:00:00Z", "by", "b")},
			row("at", "2026-01-01T00:00:00Z", "by", "b"),
		},
		"no values": {[]value.Item{nil, row()}, nil},
	} {
		orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
		for _, order := range orders {
			r := &reach{Stage: st}
			for _, i := range order {
				if i < len(c.rows) {
					r.keepTold(c.rows[i])
				}
			}
			if !value.EqualItems(r.latest, c.want) {
				t.Errorf("%s, in the order %v: %v, want %v", name, order, r.latest, c.want)
			}
		}
	}
}
