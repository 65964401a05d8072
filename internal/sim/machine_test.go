package sim

import (
	"testing"
)

// TestMachine replays runs of each model on machines whose disks fail, twice: the same
// happens both times, and nothing is lost.
func TestMachine(t *testing.T) {
	runs, models := uint64(12), models
	if testing.Short() {
		runs, models = 1, models[:len(models)/2]
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

// TestMachineRestsBehindTheReplay: a group that read a shard before the last write of the
// replay, and ended its pass after it, reads once more before the machine rests.
func TestMachineRestsBehindTheReplay(t *testing.T) {
	o := Options{}
	var err error
	if o.Skip, err = ParseNumbers("0,2-38"); err != nil {
		t.Fatal(err)
	}
	if o.Without, err = ParseNumbers("1-387"); err != nil {
		t.Fatal(err)
	}
	if r := Run(load(t, "wardrobe"), 73, o); len(r.Failures) > 0 || r.Counted["replays on a disk"] != 1 {
		t.Error(r.Counted, r.Failures)
	}
}
