package sim

import (
	"testing"

	"weir/internal/soaktest"
)

// TestGapsAreHealed: runs in which hardly anything goes wrong but that streams forget
// what was not read have gaps, and what these left wrong is repaired.
func TestGapsAreHealed(t *testing.T) {
	m := load(t, "viewing")
	healed, mended := 0, 0
	for seed := range soaktest.Count(30, uint64(120)) {
		out := Run(m, 1000+seed, Options{Faults: []Kind{Trim, CrashBefore, CrashAfter}})
		for _, f := range out.Failures {
			t.Errorf("seed %d: %s", 1000+seed, f.What)
		}
		healed, mended = healed+out.Counted["gaps healed"], mended+out.Counted["mended"]
	}
	if healed == 0 || mended == 0 {
		t.Errorf("%d gaps healed, %d values put right", healed, mended)
	}
	t.Logf("%d gaps healed, %d values put right", healed, mended)
}
