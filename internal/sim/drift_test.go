package sim

import (
	"testing"

	"weir/internal/soaktest"
)

// TestGapsAreFound: runs in which hardly anything goes wrong but that streams forget
// what was not read have gaps, and verify finds what these left wrong, and nothing else.
func TestGapsAreFound(t *testing.T) {
	m := load(t, "viewing")
	found := 0
	for seed := range soaktest.Count(30, uint64(120)) {
		out := Run(m, 1000+seed, Options{Faults: []Kind{Trim, CrashBefore, CrashAfter}})
		for _, f := range out.Failures {
			t.Errorf("seed %d: %s", 1000+seed, f.What)
		}
		found += out.Counted["drifts"]
	}
	if found == 0 {
		t.Error("no run has a gap")
	}
	t.Logf("%d runs have gaps", found)
}
