package contribution_test

import (
	"os"
	"strconv"
	"testing"

	"weir/internal/contribution"
)

// mistake is one thing done otherwise. The zero mistake does all as it is meant.
type mistake struct {
	noFloors      bool // records below the floor of their shard are counted
	unfenced      bool // a checkpoint moves also for batches with an older view
	cached        bool // a consumer keeps the view that it read first
	anyMark       bool // a mark is written whatever it is by now
	forgetNothing bool // no mark is left of a contribution of nothing
	zombies       bool // builders do not look at the fence
	net           bool // records of one row that cancel each other out are left out
	overwrite     bool // the builder puts over marks
	rowFirst      bool // the auditor reads the row before the mark
	byImage       bool // a record adds f(new) − f(old), once by its mark's position
	byPosition    bool // a record adds f(new) − f(old), and there are no marks of records
	matching      bool // a record counts only if the mark says what its old image does
	handOver      bool // byImage from the moment that the scan is over
}

// record decides on an offer of a record.
func (m mistake) record(w *world, mark contribution.Mark, o offer) (contribution.Step, bool) {
	step, ok := contribution.Record(mark, o.Position, o.Amounts)
	old := o.last.old.at(o.id.target)
	switch {
	case m.byPosition: // the builder still leaves its own marks
		step = contribution.Step{Delta: contribution.Minus(o.Amounts, old), Mark: mark}
		step.Mark.Position, step.Mark.Amounts = o.Position, mark.Amounts
		return step, o.Position.Compare(mark.Position) > 0
	case m.byImage, m.handOver && w.scanned:
		step.Delta = contribution.Minus(o.Amounts, old)
	case m.matching && ok && !contribution.Same(mark.Amounts, old):
		return step, false
	}
	return step, ok
}

// run runs one schedule to its end, and reports whether ledgers and marks are right.
func run(seed uint64, m mistake) bool {
	w := newWorld(seed, m)
	consumers := []*consumer{{world: w}, {world: w}, {world: w}}
	builders := []*builder{{world: w}}
	audits := []*auditor{{world: w}, {world: w}}
	writes, applies, builds := 1+w.IntN(6), 1+w.IntN(20), 1+w.IntN(5)
	announced := w.IntN(40)
	for i := range 40 + w.IntN(200) {
		switch n := w.IntN(writes + applies + builds + 1); {
		case n < writes:
			w.write()
		case n < writes+applies:
			consumers[w.IntN(len(consumers))].step()
		case n == writes+applies:
			audits[w.IntN(len(audits))].step()
		case i >= announced:
			builders[w.IntN(len(builders))].step()
		}
		switch w.IntN(60) {
		case 0:
			w.split()
		case 1, 2: // a new builder; the old ones go on as zombies
			w.owner++
			builders = append(builders, &builder{world: w, number: w.owner, cursor: w.cursor})
		}
	}
	return w.end(consumers, builders, audits)
}

// end lets the newest builder and the consumers finish, then all zombies.
func (w *world) end(consumers []*consumer, builders []*builder, audits []*auditor) bool {
	for b := builders[len(builders)-1]; !b.stopped; b.step() {
		if w.IntN(3) == 0 {
			consumers[w.IntN(len(consumers))].step()
		}
	}
	for applied := false; !applied; {
		consumers[w.IntN(len(consumers))].step()
		applied = true
		for _, s := range w.shards {
			applied = applied && s.done == len(s.records)
		}
	}
	for range 3 * targetCount * rowCount {
		audits[w.IntN(len(audits))].step()
	}
	for _, c := range consumers {
		for c.phase != taking {
			c.step()
		}
	}
	if w.mistake.byPosition {
		return w.right(false)
	}
	if !w.right(true) {
		return false
	}
	w.owner++ // the build is over; marks of nothing expire
	for id, mark := range w.marks {
		if mark.Nothing() {
			delete(w.marks, id)
		}
	}
	for _, b := range builders {
		for range 3 * rowCount {
			b.step()
		}
	}
	return w.right(true)
}

// right compares ledgers, and marks, with the rows.
func (w *world) right(marks bool) bool {
	var want, marked [targetCount]int64
	for _, r := range w.rows {
		if r.amount > 0 {
			want[r.target] += int64(r.amount)
		}
	}
	for id, m := range w.marks {
		for _, a := range m.Amounts {
			n, _ := a.Value.Int64()
			marked[id.target] += n
		}
	}
	return w.ledger == want && (!marks || marked == want)
}

// schedules is how many schedules a test runs; WEIR_TEST_SCHEDULES says how many instead.
func schedules(usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("WEIR_TEST_SCHEDULES"), 10, 64); err == nil {
		return n
	}
	return usual
}

// TestSchedules: whatever happens in whichever order, a build ends with what the rows say.
func TestSchedules(t *testing.T) {
	n := schedules(4000)
	for seed := range n {
		if !run(seed, mistake{}) {
			t.Fatalf("schedule %d of %d ends wrong", seed, n)
		}
	}
}

// TestMistakes: each mistake ends wrong in some schedule.
func TestMistakes(t *testing.T) {
	for name, m := range map[string]mistake{
		"records below the floor are counted":                                {noFloors: true},
		"a checkpoint moves under an older view":                             {unfenced: true},
		"neither floors nor fences":                                          {noFloors: true, unfenced: true},
		"the view is read once, and a grace time waited":                     {cached: true, unfenced: true},
		"a mark is written whatever it is":                                   {anyMark: true},
		"no mark is left of nothing":                                         {forgetNothing: true},
		"a builder that lost its fence goes on":                              {zombies: true},
		"changes that cancel each other out are left out":                    {net: true},
		"the builder puts over marks":                                        {overwrite: true},
		"the audit reads the row first":                                      {rowFirst: true},
		"f(new) - f(old) with marks of positions only":                       {byImage: true},
		"f(new) - f(old) beside a scan":                                      {byPosition: true},
		"f(new) - f(old) beside a scan, from positions that are handed over": {byPosition: true, noFloors: true},
		"records that match the marks":                                       {matching: true},
		"positions as soon as the scan ends":                                 {handOver: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := max(schedules(0), 60000)
			for seed := range n {
				if !run(seed, m) {
					t.Logf("schedule %d ends wrong", seed)
					return
				}
			}
			t.Errorf("%d schedules end right", n)
		})
	}
}
