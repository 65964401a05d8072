package build

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLedgerUnits: what large ledgers cost is right when a builder remembers all of them, and on average
// when it remembers a share, and what it remembers stays bounded.
func TestLedgerUnits(t *testing.T) {
	const targets, rounds, rows = 1000, 20, 5
	piece := func(nr, round int) []runner.ReadTarget {
		of := runner.ReadTarget{Target: store.Ref{Table: "films", Key: store.Key{Partition: value.OfString(fmt.Sprint("MOVIE#", nr)), Sort: value.OfString("METADATA")}}}
		for n := range rows {
			name := fmt.Sprintf("%s%d", strings.Repeat("x", 40), round*rows+n)
			of.Rows = append(of.Rows, runner.ReadRow{Amounts: []value.Attr{{Name: name, Value: value.OfInt(1)}}})
		}
		return []runner.ReadTarget{of}
	}
	for _, most := range []int{120_000, 30_000, 3000} {
		l := ledgers{most: most}
		said, exact, reads := 0, 0, 0
		for round := range rounds {
			for nr := range targets {
				bytes := runner.LedgerBytes
				for n := range (round + 1) * rows {
					bytes += len(fmt.Sprint(n)) + 42
				}
				exact += 2 * (store.WriteUnits(bytes) - 1)
				said += l.units(piece(nr, round))
				if l.values > most {
					t.Fatalf("%d values, at most %d", l.values, most)
				}
			}
		}
		for nr := range targets {
			reads += l.reads(piece(nr, 0)[0].Target)
		}
		off := float64(said)/float64(exact) - 1
		t.Logf("most %d: %d units, exactly %d (%+.1f %%), %d read units, 1 of %d targets", most, said, exact, 100*off, reads, 1<<l.halved)
		if (most == 120_000) != (l.halved == 0) {
			t.Errorf("most %d: 1 of %d targets", most, 1<<l.halved)
		}
		if limit := map[int]float64{120_000: 0.1, 30_000: 0.2, 3000: 0.4}[most]; math.Abs(off) > limit {
			t.Errorf("most %d: %d units, exactly %d", most, said, exact)
		}
		if off := float64(reads)/targets - 1; most != 3000 && math.Abs(off) > 0.2 { // 4.9 KB: two units, of which one is counted elsewhere
			t.Errorf("%d read units more than one, of %d ledgers", reads, targets)
		}
	}
}
