package sim

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"weir/internal/model"
)

// TestEveryCut does one scenario of 60 acts of each model as often as it makes calls
// that write, twice: at one call after the other the process dies, before the call
// happens and after it has. Then at two calls of one run. Whenever it dies, what it
// leaves comes right.
func TestEveryCut(t *testing.T) {
	for _, name := range model.Builtin() {
		m := load(t, name)
		whole := cutAt(m, nil)
		if len(whole.Failures) > 0 || whole.Calls < 20 {
			t.Fatalf("%s: %d calls, %v", name, whole.Calls, whole.Failures)
		}
		var cuts []map[int]bool
		for n := 1; n <= whole.Calls; n++ {
			cuts = append(cuts, map[int]bool{n: false}, map[int]bool{n: true})
		}
		d := newDice(1, "cuts", 0)
		for range whole.Calls {
			cuts = append(cuts, map[int]bool{1 + d.n(whole.Calls): d.chance(0.5), 1 + d.n(whole.Calls): d.chance(0.5)})
		}
		if testing.Short() {
			cuts = cuts[:min(len(cuts), 100)]
		}
		runs, failed := tryAll(m, cuts)
		t.Logf("%s: %d calls that write, %d runs", name, whole.Calls, runs)
		for _, f := range failed {
			t.Error(f)
		}
	}
}

// scenario is the seed of the scenario.
const scenario = 7

func cutAt(m *model.Model, cuts map[int]bool) Outcome {
	return Run(m, scenario, Options{Acts: 60, Cuts: cuts})
}

// tryAll does a run for each set of cuts. It tells the first few that fail.
func tryAll(m *model.Model, cuts []map[int]bool) (runs int, failed []string) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	next := make(chan map[int]bool)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for c := range next {
				out := cutAt(m, c)
				mu.Lock()
				if runs++; len(out.Failures) > 0 && len(failed) < 5 {
					failed = append(failed, fmt.Sprintf("%s, cut at %v (true: after the call): %v", m.Name, c, out.Failures))
				}
				mu.Unlock()
			}
		})
	}
	for _, c := range cuts {
		next <- c
	}
	close(next)
	wait.Wait()
	return runs, failed
}
