package mergedlog_test

import (
	"os"
	"strconv"
	"testing"

	"weir/internal/events"
	"weir/internal/mergedlog"
)

// mistake is one thing done otherwise. The zero mistake does all as it is meant.
type mistake struct {
	noCondition   bool // ledgers add whatever their position is
	ahead         bool // the first of several writes moves the position to the batch's end
	wholeSeen     bool // a ledger that has seen the first record has seen all
	ranks         bool // offsets are ranks among what was read
	ties          bool // records of two shards may have one offset
	blind         bool // a log is written whatever its version is
	byBatch       bool // the condition is the batch, not the version
	applyFirst    bool // a batch is applied before it is named
	moveFirst     bool // checkpoints move before the batch is applied
	recut         bool // a successor reads the pending batch as far as it likes
	skipped       bool // a successor takes the pending batch for applied
	beginEarly    bool // a successor takes it for applied by the checkpoint of one range
	alone         bool // a successor applies one range of the pending batch, and goes on
	gapWhole      bool // a pending batch with a gap is left out
	joinUnseen    bool // a shard joins whatever its checkpoint is
	joinUntouched bool // the log that it leaves keeps its version
	apart         bool // version and checkpoint are written one after the other
	orphans       bool // a shard joins before its parent is applied
	reused        bool // the row of a log without shards is deleted
	forgotten     bool // ledgers forget a log without shards
	unfenced      bool // checkpoints move under older views
	late          bool // a batch is applied whose records the stream has forgotten since
	viewFirst     bool // the view is read before the batch
}

// run runs one schedule to its end, and reports whether all is right.
func run(seed uint64, m mistake) bool {
	w := newWorld(seed, m)
	var ps []*process
	for i := range processCount {
		ps = append(ps, &process{world: w, own: 1 + int64(i%logCount)})
	}
	asleep := 0 // a process that does nothing for a while
	writes, announced, builds := 1+w.IntN(8), w.IntN(200), 1+w.IntN(4)
	for i := range 100 + w.IntN(400) {
		switch n := w.IntN(24); {
		case n < writes:
			w.write()
		case n == 8 && w.IntN(3) == 0:
			w.split()
		case n == 9 && w.IntN(4) == 0:
			w.trim()
		case n == 10 && w.IntN(6) == 0: // a crash: another process instead
			i := w.IntN(processCount)
			ps[i] = &process{world: w, own: ps[i].own}
		case n < 11+builds && i >= announced && w.scanned < rowCount:
			w.build()
		default:
			if w.IntN(40) == 0 {
				asleep = w.IntN(processCount)
			}
			if i := w.IntN(processCount); i != asleep {
				ps[i].step()
			}
		}
	}
	return w.end(ps) && w.right()
}

// end builds and applies all that is left, and then lets each process end what it does, and
// each of the batches that it knows.
func (w *world) end(ps []*process) bool {
	w.settled, w.faithful = 100, 5
	for range 30_000 {
		if w.scanned < rowCount {
			w.build()
		}
		ps[w.IntN(processCount)].step()
		if w.scanned == rowCount && w.applied() {
			break
		}
	}
	if !w.applied() {
		return false
	}
	for _, p := range ps {
		p.drain()
		for _, k := range p.kept {
			p.recall(k)
			p.drain()
		}
	}
	return true
}

// drain goes on until nothing is begun.
func (p *process) drain() {
	for range 1000 {
		if p.phase == choosing || p.phase == deciding {
			return
		}
		p.step()
	}
}

// schedules is how many schedules a test runs; WEIR_TEST_SCHEDULES says how many instead.
func schedules(usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("WEIR_TEST_SCHEDULES"), 10, 64); err == nil {
		return n
	}
	return usual
}

// TestSchedules: whatever happens in whichever order, each record that streams kept counts
// once in each ledger, in the order of its row, and a build ends with what the rows say.
func TestSchedules(t *testing.T) {
	n := schedules(1500)
	for seed := range n {
		if !run(seed, mistake{}) {
			t.Fatalf("schedule %d of %d ends wrong", seed, n)
		}
	}
}

// TestMistakes: each mistake ends wrong in some schedule.
func TestMistakes(t *testing.T) {
	rare := map[string]uint64{ // the first schedules that find them
		"offsets are ranks among what was read": 2465,
		"checkpoints move under older views":    11110,
	}
	for name, m := range map[string]mistake{
		"ledgers add whatever their position is":                 {noCondition: true},
		"the first of several writes moves to the batch's end":   {ahead: true},
		"a ledger that has seen the first record has seen all":   {wholeSeen: true},
		"offsets are ranks among what was read":                  {ranks: true},
		"records of two shards have one offset":                  {ties: true},
		"a log is written whatever its version is":               {blind: true},
		"a log is written on condition of its batch":             {byBatch: true},
		"a batch is applied before it is named":                  {applyFirst: true},
		"checkpoints move before the batch is applied":           {moveFirst: true},
		"a successor reads the pending batch as far as it likes": {recut: true},
		"a successor takes the pending batch for applied":        {skipped: true},
		"one moved checkpoint stands for all that come after it": {beginEarly: true},
		"a successor applies one range of the pending batch":     {alone: true},
		"a pending batch with a gap is left out":                 {gapWhole: true},
		"a shard joins whatever its checkpoint is":               {joinUnseen: true},
		"a shard leaves a log without its version":               {joinUntouched: true},
		"version and checkpoint are written one after the other": {apart: true},
		"a shard joins before its parent is applied":             {orphans: true},
		"the row of a log without shards is deleted":             {reused: true},
		"ledgers forget a log without shards":                    {forgotten: true},
		"checkpoints move under older views":                     {unfenced: true},
		"the view is read before the batch":                      {viewFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := max(schedules(0), 1500)
			for seed := rare[name]; seed < rare[name]+n; seed++ {
				if !run(seed, m) {
					t.Logf("schedule %d ends wrong", seed)
					return
				}
			}
			t.Errorf("%d schedules end right", n)
		})
	}
}

// TestLate: a batch of long ago is not applied behind later records of its rows, which the
// shard's next log has counted after a gap. Random schedules meet this once in 40,000.
func TestLate(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(1, mistake{late: late})
		s := w.shards[0]
		s.records = []record{
			{id: 1, at: events.PositionOf(1), new: image{0, 1}},
			{id: 2, at: events.PositionOf(2), old: image{0, 1}, new: image{0, 2}},
		}
		slow := &process{world: w, number: 1, ranges: []part{{Range: mergedlog.Range{Shard: s.name}, records: s.records[:1]}}, phase: applying}
		next := &process{world: w, number: 2, ranges: []part{{Range: mergedlog.Range{Shard: s.name}, records: s.records[1:]}}, phase: applying}
		slow.left, next.left = slow.jobs(1), next.jobs(1)
		s.trimmed = 1 // another process finished the batch of log 1 without its record
		next.apply()
		slow.apply()
		if w.unorder != late {
			t.Errorf("late %v: counted in another order: %v", late, w.unorder)
		}
	}
}
