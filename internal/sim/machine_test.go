package sim

import (
	"testing"
)

// TestMachine replays runs of each model on machines whose disks fail, twice: the same
// happens both times, and nothing is lost.
func TestMachine(t *testing.T) {
	runs := uint64(12)
	if testing.Short() {
		runs = 1
	}
	total := map[string]int{}
	struck := map[Kind]int{}
	for _, name := range models {
		m := load(t, name)
		for seed := range runs {
			a, b := Run(m, seed, Options{Faults: disks, Acts: 20}), Run(m, seed, Options{Faults: disks, Acts: 20})
			if len(a.Failures) > 0 {
				t.Errorf("%s, seed %d: %v", name, seed, a.Failures)
			}
			if a.Trace != b.Trace {
				t.Errorf("%s, seed %d: not the same twice", name, seed)
			}
			for k, n := range a.Counted {
				total[k] += n
			}
			for k, n := range a.Faults {
				struck[k] += n
			}
		}
	}
	t.Log(struck, total["replays on a disk"], "replays,", total["died of a disk"], "deaths of a disk,", total["damage of a log said"], "damages said")
}
