package projectorcli

import (
	"fmt"
	"testing"

	"weir/internal/build"
)

// TestTimeLeft: the log of run says how far a build is and how long it lasts yet, once it has come on.
func TestTimeLeft(t *testing.T) {
	first := map[string]int64{}
	for _, c := range []struct {
		rows, of int64
		want     string
	}{
		{400_000, 1_000_000, "[]"},
		{400_000, 1_000_000, "[]"},
		{450_000, 1_000_000, "[entity Album state building rows 450000 values 225000 of about 1000000 left 1m50s]"},
		{500_000, 0, "[entity Album state building rows 500000 values 250000]"}, // the store does not know
		{1_000_100, 1_000_000, "[entity Album state building rows 1000100 values 500050]"},
	} {
		s := build.State{Entity: "Album", State: "building", Rows: c.rows, Of: c.of, Puts: c.rows / 2, Pace: 5000}
		if got := fmt.Sprint(howFar(first, &s)); got != c.want {
			t.Errorf("%d rows: %s, want %s", c.rows, got, c.want)
		}
	}
}
