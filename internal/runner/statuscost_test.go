package runner_test

import (
	"fmt"
	"testing"

	"weir/internal/failtest"
	"weir/internal/projections"
	"weir/internal/soaktest"
	"weir/internal/value"
)

// rounds has a status whose steps a test says.
const rounds = `model: rounds
tables:
  rounds: {key: [PK, SK]}
entities:
  Round:
    where: {type: Round}
    key: {PK: "ROUND#{round}", SK: ABOUT}
    attributes: {state: {type: string, enum: [open, early, picked]}, at: number}
  Pick: {where: {type: Pick}, key: {PK: "PICK#{pick}", SK: PICK}, attributes: {round: string, at: number, early: boolean}}
derive:
  Round.state:
    steps:
      %s
`

// The steps of rounds: one pick is enough; the latest of all; and a stage that no pick reaches
// beside one that all reach, whose facts come after its own.
const (
	anyPick    = "picked: {when: Pick}"
	latestPick = "picked: {when: Pick, set: {at: at}}"
	besidePick = "{early: {when: Pick, where: {early: true}}, picked: {when: Pick}}"
)

// pick is a row that reports about the status.
func pick(n int) value.Item {
	return value.NewItem(
		value.Attr{Name: "PK", Value: value.OfString(fmt.Sprintf("PICK#%07d", n))}, value.Attr{Name: "SK", Value: value.OfString("PICK")},
		value.Attr{Name: "type", Value: value.OfString("Pick")}, value.Attr{Name: "round", Value: value.OfString("r")},
		value.Attr{Name: "at", Value: value.OfInt(int64(n))},
	)
}

// picks makes some picks, in batches, and removes each batch before the next one if gone.
func (q *tasks) picks(n int, gone bool) {
	const batch = 500
	for from := 0; from < n; from += batch {
		var come, leave []projections.Change
		for i := from; i < min(from+batch, n); i++ {
			come = append(come, q.change(nil, pick(i)))
		}
		q.apply(q.runner, come...)
		for i := from; gone && i < min(from+batch, n); i++ {
			leave = append(leave, q.change(pick(i), nil))
		}
		if gone {
			q.apply(q.runner, leave...)
		}
	}
}

// state checks what the round shows, which takes one read unit.
func (q *tasks) state(want string) {
	q.Helper()
	row, err := q.runner.GetRow(q.Context(), q.about)
	failtest.On(q, err)
	if row.Get("state").Text() != want {
		q.Fatalf("it shows %v, want %q", row.Get("state"), want)
	}
}

// statusCost returns what a change costs where some facts hold, or as many are withdrawn: a
// pick comes, and goes, in turn.
func statusCost(t *testing.T, steps string, facts int, withdrawn bool) (c taskCost) {
	q := newTasksOf(t, fmt.Sprintf(rounds, steps), "rounds", "Round", "ROUND#r")
	q.picks(facts, withdrawn)
	const times = 32
	wrote, read := q.meter.wrote.Load(), q.meter.read.Load()
	for i := range times / 2 {
		q.apply(q.runner, q.change(nil, pick(50_000+i)))
		q.state("picked")
		q.apply(q.runner, q.change(pick(50_000+i), nil))
		q.state(map[bool]string{false: "picked"}[withdrawn])
	}
	return taskCost{float64(q.meter.wrote.Load()-wrote) / times, float64(q.meter.read.Load()-read)/times - 1}
}

// TestStatusReads: what a change of a status reads does not depend on how many facts hold, if one
// is enough, nor on those of other stages. It grows with the facts that must be compared, which max
// bounds, and with those withdrawn within 48 hours, by one unit for each 4 KB.
func TestStatusReads(t *testing.T) {
	soaktest.Calm(t)
	for _, c := range []struct {
		steps     string
		withdrawn bool
		facts     int
		most      float64 // read units
	}{
		{anyPick, false, 1, 2}, {anyPick, false, 100, 2}, {anyPick, false, 10_000, 2},
		{besidePick, false, 1, 3}, {besidePick, false, 100, 3}, {besidePick, false, 10_000, 3},
		{latestPick, false, 1, 2}, {latestPick, false, 100, 5}, {latestPick, false, 900, 28},
		{anyPick, true, 1, 3}, {anyPick, true, 100, 6}, {anyPick, true, 10_000, 210},
		{latestPick, true, 1, 2}, {latestPick, true, 100, 5}, {latestPick, true, 10_000, 251},
	} {
		is := statusCost(t, c.steps, c.facts, c.withdrawn)
		t.Logf("%s: %d facts, withdrawn %v: %.2f write units, %.2f read units", c.steps, c.facts, c.withdrawn, is.wrote, is.read)
		if is.wrote > 3 || is.read > c.most {
			t.Errorf("%s: %d facts, withdrawn %v: %v units, at most 3 and %v", c.steps, c.facts, c.withdrawn, is, c.most)
		}
	}
}
