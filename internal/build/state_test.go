package build

import "testing"

// TestExpected: the rest of the rows takes as much as those until now, in this state alone.
func TestExpected(t *testing.T) {
	s := State{Rows: 100, Of: 400, Used: Progress{Units: 1000, Reads: 100}, here: Progress{Units: 200, Reads: 20}}
	if p, ok := s.Expected(); !ok || p.Units != 1600 || p.Reads != 160 {
		t.Error(p, ok)
	}
	for _, s := range []State{{Of: 400}, {Rows: 100}, {Rows: 400, Of: 400}} {
		if p, ok := s.Expected(); ok {
			t.Error(p)
		}
	}
}
