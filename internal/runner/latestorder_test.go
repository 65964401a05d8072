package runner_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/value"
)

// inNoOrder is what it costs to delete the shown row after some facts were withdrawn, and rows came in no order since:
// each new row comes anywhere among those that there were, and the shown row goes.
func inNoOrder(t *testing.T, withdrawn int) (c taskCost, most float64, ledger int) {
	q := newTasks(t)
	d := rand.New(rand.NewPCG(1, 2))
	spread := withdrawn + 100
	q.add(0, withdrawn)
	q.add(spread, spread+3) // these stay
	for from := 0; from < withdrawn; from += 50 {
		for n := from; n < min(from+50, withdrawn); n++ {
			q.apply(q.runner, q.change(task(n), nil))
		}
	}
	var there []int
	const times = 200
	for range times {
		for range 3 {
			n := d.IntN(withdrawn)
			if !slices.Contains(there, n) {
				there = append(there, n)
				q.add(n, n+1)
			}
		}
		slices.Sort(there)
		for range min(3, len(there)) {
			wrote, read := q.meter.wrote.Load(), q.meter.read.Load()
			q.end(there[0], there[0]+1)
			there = there[1:]
			cost := float64(q.meter.read.Load() - read)
			c.wrote, c.read, most = c.wrote+float64(q.meter.wrote.Load()-wrote), c.read+cost, max(most, cost)
			first := spread
			if len(there) > 0 {
				first = there[0]
			}
			q.shows(first, spread+2)
		}
		ledger = max(ledger, q.ledger().Size())
	}
	return taskCost{c.wrote / times / 3, c.read / times / 3}, most, ledger
}

// ledger is the ledger of the target row.
func (q *tasks) ledger() value.Item {
	q.Helper()
	row, err := q.runner.GetRow(q.Context(), owntable.Ledger(q.model.Name, q.about))
	failtest.On(q, err)
	return row
}

// TestLatestInNoOrder: where values come in no order, a change costs about the same after 100 withdrawn facts and
// after thousands, and the ledger stays below 1 KB.
func TestLatestInNoOrder(t *testing.T) {
	soaktest.Calm(t)
	for _, withdrawn := range []int{100, 1000, soaktest.Count(2000, 10_000)} {
		c, most, ledger := inNoOrder(t, withdrawn)
		t.Logf("after %d withdrawn facts: %.2f write units, %.2f read units, %.0f at most; a ledger of %d bytes", withdrawn, c.wrote, c.read, most, ledger)
		if c.read > 9 || most > 20 || ledger >= 1024 {
			t.Errorf("after %d withdrawn facts: %v units, %.0f read at most, a ledger of %d bytes", withdrawn, c, most, ledger)
		}
	}
}

// TestLatestSkipHoles: a fact put within a skip makes a hole in it; a skip whose holes cannot be read is none.
func TestLatestSkipHoles(t *testing.T) {
	q := newTasks(t)
	q.add(0, 12)
	q.end(0, 8)
	row := q.ledger()
	if s := owntable.LedgerRow(row).Skip("next"); s.End == "" || len(s.But) > 0 || row.Has("i:next") {
		t.Fatalf("%+v", s)
	}
	q.add(3, 4)
	q.shows(3, 11)
	row = q.ledger()
	if s := owntable.LedgerRow(row).Skip("next"); len(s.But) != 1 {
		t.Fatalf("%+v", s)
	}
	damaged := row.With(value.Attr{Name: "i:next", Value: value.OfBinary("\xff")})
	if s := owntable.LedgerRow(damaged).Skip("next"); s.End != "" {
		t.Errorf("a skip whose holes cannot be read is taken: %+v", s)
	}
}

// TestLatestBeforeASkip: a fact put before the first that a skip leaves out is read.
func TestLatestBeforeASkip(t *testing.T) {
	q := newTasks(t)
	q.add(20, 32)
	q.end(20, 28)
	if s := owntable.LedgerRow(q.ledger()).Skip("next"); s.End == "" {
		t.Fatalf("nothing is skipped: %+v", s)
	}
	q.add(3, 4)
	q.shows(3, 31)
	q.end(3, 4)
	q.shows(28, 31)
}
