package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Options are the options of runs.
type Options struct {
	Faults  []Kind            // the kinds that may strike
	Without map[int]bool      // faults, by number, that do not strike
	Skip    map[int]bool      // acts of the application that are left out
	Trace   func(line string) // if set, is called with every step

	Builds bool // runs are those of RunBuilds
	Bulk   bool // runs are those of RunBulk
	Acts   int  // how many acts the application does; 0: the seed chooses
}

// Outcome is the result of one run.
type Outcome struct {
	Seed     uint64
	Failures []Failure      // none if all is well
	Acts     int            // how many acts the application was to do
	Faults   map[Kind]int   // how often each kind struck
	Pairs    []string       // the kinds that both struck, as pairs
	Counted  map[string]int // how often the run met a state or a change, by its name
	Trace    uint64         // a hash of every step: equal runs have equal ones
	Records  int            // how many records the streams have had
	strikes  []strike
}

// Run does one run of a model. The same model, seed and options give the same outcome.
func Run(m *model.Model, seed uint64, o Options) Outcome {
	w := newWorld(m, seed, o)
	w.days = newDice(seed, "days", 0).chance(0.15)
	w.enableMigrations()
	acts := w.runRough(o)
	w.settle()
	w.laterOn()
	w.lastWord()
	w.retryLetters()
	if len(w.failures) > 0 {
		return w.finishRun(acts)
	}
	if w.trims.hasGaps() {
		w.compareDrift()
		w.checkCounts()
	} else if w.judgeAll(); len(w.failures) == 0 {
		w.verifyAndSpoil()
		w.replayTwice()
		w.checkRecordings()
		w.replayOnDisk()
	}
	return w.finishRun(acts)
}

// finishRun ends all processes and returns the outcome of the run.
func (w *world) finishRun(acts int) Outcome {
	out := Outcome{
		Seed: w.seed, Failures: w.failures, Acts: acts, Faults: w.faults.struck, Pairs: w.faults.pairsStruck(), Counted: w.counted,
		Trace: w.trace.Sum64(), Records: w.countRecords(), strikes: w.faults.log,
	}
	w.allDie()
	return out
}

// runKind does one run, of the kind that the options say.
func (o Options) runKind(m *model.Model, seed uint64) Outcome {
	if o.Builds {
		return RunBuilds(m, seed, o)
	}
	if o.Bulk {
		return RunBulk(m, seed, o)
	}
	return Run(m, seed, o)
}

// runRough is the part of a run in which faults strike.
func (w *world) runRough(o Options) (acts int) {
	d := newDice(w.seed, "length", 0)
	acts = 20 + d.n(60)
	if o.Acts > 0 {
		acts = o.Acts
	}
	next, crowd := 0, 1
	least, every := 400, 6
	if w.way == byReader { // this way needs more turns for the same work
		least, every, crowd = 1500, 3, 1+d.n(3)
	}
	act := func() {
		if next < acts && !o.Skip[next] {
			w.app.doAct(next)
		}
		next++
	}
	away := w.trims != nil && w.faults.rates[Trim] > 0 && d.chance(0.4)
	w.faults.spells = newSpells(w.seed)
	for turn := 0; turn < 6000 && len(w.failures) == 0; turn++ {
		if w.way == byReader {
			w.faults.nextTurn()
		}
		if away && next >= acts/2 {
			away = false
			w.leaveAlone(func() {
				for range 10 {
					act()
				}
			})
		}
		if u := w.sched.n(100); u < every || w.app.isTempted() {
			act()
		} else if u == 17 && w.strike(TwoWorkers) {
			crowd = 1 + w.faults.dice.n(3)
			w.stallReader()
		} else {
			doBelow(u, []choice{{12, w.showStreams}, {15, func() {
				w.advanceClock()
				if w.days && w.sched.chance(0.1) {
					w.leapTime(30 * time.Hour)
				}
			}}, {16, func() {
				w.app.sweepExpired(w.sched)
				w.sweepOwnTable()
			}}, {17, w.disturbAndRedeliver}, {100, func() {
				w.deliverMore(crowd)
				if w.mapping != nil && w.mapping.beside && w.sched.chance(0.05) {
					w.mapping.toggleReader()
				}
				w.resumeFiber()
			}}})
		}
		if next >= acts && turn > least && w.sched.chance(0.01) {
			break
		}
	}
	w.faults.fair = false
	return acts
}

// advanceClock lets up to four seconds pass.
func (w *world) advanceClock() {
	w.clock = w.clock.Add(time.Duration(w.sched.n(4000)) * time.Millisecond)
}

// deliverMore starts processes until there is a crowd that follows, or lets the mapping invoke the function now and then.
func (w *world) deliverMore(crowd int) {
	for w.mapping == nil && len(w.nodes)-len(w.builderNodes()) < crowd {
		w.startFollowing()
	}
	if w.mapping != nil && w.sched.chance(0.2) {
		w.mapping.abandonSlow()
		w.mapping.pollQueues()
	}
}

// disturbAndRedeliver applies faults to the streams, and may deliver records again.
func (w *world) disturbAndRedeliver() {
	w.disturbStreams()
	if w.mapping == nil {
		w.redeliverRecords()
	}
}

// showStreams lets readers see more of the streams, of some shards sooner than of others.
func (w *world) showStreams() {
	for _, name := range w.base.names {
		for _, s := range w.base.tables[name].shards {
			behind := len(s.records) - s.seen
			if behind > 0 && w.faults.strikeWeighted(Reorder, 0.5) {
				continue
			}
			if behind > 0 {
				s.seen += 1 + w.sched.n(behind)
			}
		}
	}
}

// disturbStreams applies one round of faults to the streams.
func (w *world) disturbStreams() {
	t := w.base.tables[pick(w.sched, w.model.Tables).Name]
	s := pick(w.sched, t.shards)
	if w.way == byReader {
		w.maySplit(t, s, 15)
	} else {
		w.maySplit(t, s, 5)
	}
	if w.strikeWeighted(Skew, 5) { // another machine has the shard, with another clock
		s.ahead = time.Duration(w.faults.dice.n(13)-6) * time.Second
	}
	switch w.way {
	case byReader:
		w.trims.expireFirst()
	case byShard:
		w.mapping.trimAnswered()
	}
	if w.base.keep && w.strikeWeighted(PowerCut, 2) {
		clear(w.foreign)
		w.foreign[""] = true // from now on it is unknown who wrote a version
		w.traceStep("world", fmt.Sprintf("power cut: %d changes lost", w.base.cut(w.faults.dice)), nil)
		w.app.copies = nil // some rows that it read were never durable
		w.allDie()
	}
}

// leaveAlone lets weir apply everything and then stops all its processes until records expire,
// while the application goes on.
func (w *world) leaveAlone(meanwhile func()) {
	w.settle()
	w.faults.over, w.calm = false, false
	w.allDie()
	meanwhile()
	w.trims.expireUnread()
}

// allDie ends all processes at once.
func (w *world) allDie() {
	for len(w.nodes) > 0 {
		w.nodes[0].killProcess()
	}
}

// maySplit may close a shard, if there are not too many.
func (w *world) maySplit(t *table, s *shard, times float64) {
	if !s.Closed && len(s.records) > 0 && len(t.shards) < 12 && w.strikeWeighted(Split, times) {
		t.splitShard(s, w.faults.dice)
		s.ended = w.clock
	}
}

// resumeFiber lets one fiber run to its next pause.
func (w *world) resumeFiber() {
	var can []*fiber
	var of []*node
	waits := false
	for _, n := range w.nodes {
		for _, f := range n.fibers {
			if f.asleep > 0 {
				f.asleep--
				continue
			}
			if f.ready != nil && !f.ready() {
				waits = true
				continue
			}
			can, of = append(can, f), append(of, n)
		}
	}
	if len(can) == 0 {
		if waits {
			w.clock = w.clock.Add(time.Second)
		} else if w.mapping == nil {
			w.startFollowing() // all are asleep: a new process goes on
		}
		return
	}
	i := w.sched.n(len(can))
	f := can[i]
	f.idle = false
	f.resume()
	if f.drag > 0 {
		f.asleep = max(f.asleep, w.sched.n(f.drag))
	}
	if f.bug != "" {
		w.addFailure(Stuck, "%s", f.bug)
	}
	w.endProcess(f, of[i])
}

// endProcess ends the process of a fiber that has ended. An instance of a function goes on, as
// it may be invoked again.
func (w *world) endProcess(f *fiber, n *node) {
	if !f.over {
		return
	}
	if n.builds || f.crashed {
		n.killProcess()
	} else if w.mapping != nil {
		w.mapping.handleEnded(n)
	} else if f.part {
		n.fibers = slices.DeleteFunc(n.fibers, func(o *fiber) bool { return o == f })
	} else {
		n.killProcess()
	}
}

// killProcess ends a process at once.
func (n *node) killProcess() {
	for _, f := range slices.Clone(n.fibers) {
		f.kill()
	}
	n.nodes = slices.DeleteFunc(n.nodes, func(o *node) bool { return o == n })
	if n.mapping != nil && !n.builds {
		n.mapping.handleEnded(n)
	}
}

// settle is the part of a run in which no fault strikes any more: everything must catch up.
func (w *world) settle() { w.settleFor(3) }

// mostCalls is how many calls a fiber may make before it has nothing to do.
const mostCalls = 100_000

// settleFor lets everything go on until nothing has happened for the given number of rounds.
func (w *world) settleFor(times int) {
	w.faults.over, w.calm = true, true
	for _, n := range w.nodes {
		for _, f := range n.fibers {
			f.asleep = 0
		}
	}
	for quiet, turns := 0, 0; quiet < times && len(w.failures) == 0; turns++ {
		if turns > 200000 || w.way == byReader && turns > 1000 {
			w.addFailure(Stuck, "it does not catch up")
			return
		}
		if len(w.nodes) == 0 && w.mapping == nil {
			w.startFollowing()
		}
		for _, name := range w.base.names {
			for _, s := range w.base.tables[name].shards {
				s.seen = len(s.records)
			}
		}
		before := w.countRecords()
		still := true
		for w.mapping != nil && w.mapping.pollQueues() {
			still = false
		}
		for _, n := range slices.Clone(w.nodes) {
			fibers := slices.Clone(n.fibers)
			if n.reader != nil {
				w.sched.shuffle(len(fibers), func(i, j int) { fibers[i], fibers[j] = fibers[j], fibers[i] })
			}
			for _, f := range fibers {
				if w.mapping != nil { // other instances of a function go on
					w.changes++
				}
				f.idle = false
				for calls := 0; !f.idle && !f.over; calls++ {
					if f.resume(); calls == mostCalls {
						w.addFailure(Stuck, "%s does not rest", f.name)
						return
					}
				}
				if f.bug != "" {
					w.addFailure(Stuck, "%s", f.bug)
				}
				if f.over && (w.mapping != nil || f.part && !f.crashed) {
					w.endProcess(f, n)
					still = false
					continue
				}
				if f.over {
					n.killProcess()
					still = false
					break
				}
				if f.err != nil {
					still = false
					if turns > 50 {
						w.addFailure(Stuck, "%s still changes: %v", f.name, f.err)
					}
					f.err = nil
				}
			}
		}
		if w.way == byReader {
			w.clock = w.clock.Add(3 * time.Second)
			w.changes++
			still = still && w.trims.caughtUp()
		}
		if quiet++; !still || w.countRecords() != before {
			quiet = 0
		}
	}
}

// retryLetters treats dead letters as operators do: it makes room in rows that are too large,
// often replaces numbers that no sum takes, and retries.
func (w *world) retryLetters() {
	w.lettersHave()
	tame := newDice(w.seed, "tame", 0).chance(0.3)
	for _, o := range w.app.standingRows(nil) {
		var ops []store.Op
		if o.image.Has(ballast) {
			ops = append(ops, store.Op{Kind: store.Remove, Attr: ballast})
		}
		e := o.table.Classify(o.image)
		for _, a := range o.image {
			if a.Value.Kind() == value.Number && tame && slices.Contains(wildNumbers, a.Value.Text()) && !inKey(e, a.Name) {
				ops = append(ops, store.Op{Kind: store.Set, Attr: a.Name, Value: value.OfInt(1)})
			}
		}
		if len(ops) > 0 {
			w.app.changeRow(o, ops, false)
		}
	}
	why := map[string]string{} // of refused retries: the reason may differ from the one that is kept
	for range 3 {
		w.settle()
		for _, d := range w.operatorLetters() {
			id := d.ID
			err := w.runAlone("retry "+id, func(r *runner.Runner) error { return r.RetryLetter(context.Background(), id) })
			if delete(why, id); err != nil {
				why[id] = err.Error()
			}
		}
	}
	w.settle()
	for _, d := range w.operatorLetters() {
		reason := cmp.Or(why[d.ID], d.Reason)
		if kind := deadletter.Kind(d.Kind); kind == deadletter.Parked || kind == deadletter.Publish {
			w.addFailure(Lost, "parked: %s is still kept: %s", d.Target, reason)
		}
	}
}

// lastWord lets the application overwrite and delete rows that nothing else changes any
// more: only the application's own writes can make weir restore them.
func (w *world) lastWord() {
	if w.faults.rates[HostileOverwrite] == 0 || len(w.failures) > 0 {
		return
	}
	for i := range 4 {
		w.app.overwriteRow(newDice(w.seed, "last word", i))
	}
	w.settle()
}

// laterOn lets days pass, until all has expired that weir keeps for a limited time.
func (w *world) laterOn() {
	if !w.days {
		return
	}
	for range 4 {
		w.leapTime(30 * time.Hour)
		w.settle()
	}
	if w.hours > 2*24*time.Hour {
		w.counted["runs of days"]++
	}
}

// runAlone runs one function of weir to its end, with no other fiber in between.
func (w *world) runAlone(name string, do func(*runner.Runner) error) (err error) {
	n := &node{world: w, name: name}
	f := newFiber(name, func(f *fiber) error { return do(n.newRunner(f)) })
	for !f.over {
		f.resume()
	}
	if f.bug != "" {
		w.addFailure(Stuck, "%s", f.bug)
	}
	return f.err
}

// countRecords is how many records the streams of the model have had.
func (w *world) countRecords() (n int) {
	for _, t := range w.model.Tables {
		n += sumRecords(w.base.tables[t.Name])
	}
	return n
}

// judgeAll compares everything with the truth.
func (w *world) judgeAll() {
	t := w.app.computeTruth()
	t.compareRows()
	t.compareSets()
	t.compareHistory()
	t.compareMoves()
	t.countLong()
	w.lettersHave()
	if w.mapping == nil {
		w.checkCounts()
	}
}

// countLong counts the lists and sets that are too long to be processed at once.
func (t *truth) countLong() {
	for _, p := range t.base.tables[owntable.TableName].parts {
		if len(p.keys) > atOnce {
			kind, _, _ := strings.Cut(p.keys[0].Partition.Text(), "|")
			t.counted["long list: "+kind]++
		}
	}
	for _, s := range t.members {
		for tally, values := range s.values {
			if tally.IsSet() && len(values) > atOnce {
				t.counted["long set"]++
			}
		}
	}
}

// atOnce is how many entries of a list weir processes at once.
const atOnce = 200

// checkCounts checks that every record was counted once, as applied, skipped or kept.
func (w *world) checkCounts() {
	for _, mt := range w.model.Tables {
		in := w.base.tables[mt.Name]
		for _, s := range in.shards {
			n := recordsCounted(w.decodeCheckpoint(w.checkpointRow(in, s))) + w.trims.lostRecords(in, s)
			if n != len(s.records) {
				w.addFailure(Unaccounted, "unaccounted: shard %s of %s: %d of %d records are counted", s.ID, mt.Name, n, len(s.records))
			}
		}
	}
}

// recordsCounted is how many records a checkpoint has counted.
func recordsCounted(c owntable.CheckpointRow) int { return c.Applied + c.Skipped + c.Dead }

// operatorLetters are the dead letters that need an operator: all but those about values that cannot be
// computed.
func (w *world) operatorLetters() []owntable.LetterRow {
	return slices.DeleteFunc(w.letterHeads(), func(d owntable.LetterRow) bool {
		return slices.Contains([]string{string(deadletter.Number), string(deadletter.Status)}, d.Kind)
	})
}

// letterHeads are the heads of all dead letters, including those about values that cannot be computed.
func (w *world) letterHeads() (out []owntable.LetterRow) {
	of := []string{owntable.Dead(w.model.Name)}
	for _, b := range w.shownBuilds() {
		of = append(of, owntable.Dead(b.Ledgers(w.model.Name)))
	}
	return w.lettersIn(of...)
}

// lettersIn are the heads of dead letters in some partitions.
func (w *world) lettersIn(of ...string) (out []owntable.LetterRow) {
	w.base.tables[owntable.TableName].eachRow(func(k store.Key, row value.Item) {
		if slices.Contains(of, k.Partition.Text()) {
			out = append(out, owntable.LetterFrom(row))
		}
	})
	return out
}

func (o *Outcome) String() string {
	return fmt.Sprintf("seed %d: %d acts, %d records, %d failures", o.Seed, o.Acts, o.Records, len(o.Failures))
}
