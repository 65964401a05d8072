package main

import (
	"errors"
	"fmt"
	"testing"

	"weir/internal/cli"
	"weir/internal/repair"
)

// TestRepairedInAnyOrder: what is left says with which code it ends, in whatever order.
func TestRepairedInAnyOrder(t *testing.T) {
	busy := repair.Left{Why: fmt.Errorf("again and again: %w", repair.ErrBusy)}
	other := repair.Left{Why: errors.New("effects on it are parked")}
	for _, c := range []struct {
		left   []repair.Left
		undone bool
		want   int
	}{
		{nil, false, exitGood},
		{nil, true, exitCheck},
		{[]repair.Left{busy, busy}, false, cli.Part},
		{[]repair.Left{busy}, true, exitCheck},
		{[]repair.Left{other}, false, exitCheck},
		{[]repair.Left{busy, other}, false, exitCheck},
		{[]repair.Left{other, busy}, false, exitCheck},
	} {
		if got := repaired(c.left, c.undone); got != c.want {
			t.Errorf("%v, %v: %d, should be %d", c.left, c.undone, got, c.want)
		}
	}
}
