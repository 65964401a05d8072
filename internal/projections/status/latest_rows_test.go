package status_test

import (
	"slices"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/status"
	"weir/internal/value"
)

func talk(t testing.TB) *model.Model {
	m, err := model.Load("../../model/testdata/good/latest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func line(id string, more ...any) value.Item {
	return item(append([]any{"PK", "LINE#" + id, "SK", "LINE", "type", "Line", "room", "r"}, more...)...)
}

// TestWhatTakesNoPart: a value that has no order, or too much to show, gives nothing to the
// derivation that it concerns and says so; the others of the row go on.
func TestWhatTakesNoPart(t *testing.T) {
	m := talk(t)
	for _, c := range []struct {
		row  value.Item
		part []string // the derivations in which it takes part
		says string
	}{
		{line("a", "at", "2026-01-01", "author", "ann", "votes", 1), []string{"Room.best", "Room.first", "Room.last", "Room.worst"}, ""},
		{line("a", "votes", 1, "seen", value.OfNull()), []string{"Room.best", "Room.worst"}, ""},
		{line("a", "votes", 1, "seen", true), []string{"Room.best", "Room.worst"}, "Room.seen: seen is no value by which rows have an order: it must be a number or a text"},
		{line("a", "votes", 1, "seen", strings.Repeat("x", 251)), []string{"Room.best", "Room.worst"}, "Room.seen: seen is no value by which rows have an order: it must be a text of at most 250 bytes"},
		{line("a", "votes", 1, "text", strings.Repeat("x", 33000)), []string{"Room.worst"}, "Room.best: what the row would show there has 33014 bytes, the limit is 32768"},
		{item("PK", "LINE#a", "SK", "LINE", "type", "Line", "votes", 1), nil, ""},
	} {
		var faults projections.Faults
		var part, says []string
		for _, f := range status.Fold(change(t, m, "talk", nil, c.row), &faults) {
			part = append(part, f.Latest.Name)
		}
		for _, f := range faults.NewFaults() {
			says = append(says, f.Derivation+": "+f.Reason)
		}
		if slices.Sort(part); !slices.Equal(part, c.part) || strings.Join(says, "; ") != c.says {
			t.Errorf("%v: takes part in %v, want %v\n%v, want %v", c.row, part, c.part, says, c.says)
		}
	}
}
