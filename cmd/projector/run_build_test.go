package main

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/build"
)

// TestTimeLeft: the log of run says how far a build is and how long it lasts yet, by the pace of
// this process, also where another one built before it and the build rested for hours.
func TestTimeLeft(t *testing.T) {
	p, now := paces{}, time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	at := func(rows, of int64, after time.Duration) string {
		s := build.State{Entity: "Album", State: "building", Since: now.Add(-5 * time.Hour), Rows: rows, Of: of, Puts: rows / 2}
		return fmt.Sprint(p.lines(build.States{s}, now.Add(after)))
	}
	for _, c := range []struct {
		rows, of int64
		after    time.Duration
		want     string
	}{
		{400_000, 1_000_000, 0, "[]"},
		{400_000, 1_000_000, 10 * time.Second, "[]"},
		{450_000, 1_000_000, 10 * time.Second, "[[entity Album state building rows 450000 values 225000 of about 1000000 left 1m50s]]"},
		{500_000, 0, 20 * time.Second, "[[entity Album state building rows 500000 values 250000]]"}, // the store does not know
		{1_000_100, 1_000_000, 2 * time.Minute, "[[entity Album state building rows 1000100 values 500050]]"},
	} {
		if got := at(c.rows, c.of, c.after); got != c.want {
			t.Errorf("%d rows after %s: %s, want %s", c.rows, c.after, got, c.want)
		}
	}
}
