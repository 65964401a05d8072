package sim

import (
	"context"
	"testing"

	"weir/internal/model"
)

func load(t *testing.T, name string) *model.Model {
	t.Helper()
	m, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSchedules is the short form of what make sim does: nothing lost, nothing
// twice, whatever goes wrong.
func TestSchedules(t *testing.T) {
	for _, name := range model.Builtin() {
		r := Many(context.Background(), load(t, name), 0, 40, Options{Faults: Kinds})
		for _, f := range r.Failed {
			t.Errorf("%s\n%v", f.Again, f.Failures)
		}
	}
}

// TestSameSeedSameTrace does runs twice.
func TestSameSeedSameTrace(t *testing.T) {
	for _, name := range model.Builtin() {
		m := load(t, name)
		for seed := range uint64(12) {
			a, b := Run(m, seed, Options{Faults: Kinds}), Run(m, seed, Options{Faults: Kinds})
			if a.Trace != b.Trace || a.Trace == 0 {
				t.Errorf("%s, seed %d: %x and %x", name, seed, a.Trace, b.Trace)
			}
		}
	}
}
