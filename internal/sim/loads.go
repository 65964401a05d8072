package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// loader is a computer on which processes replay the run's streams in bulk, one after the other:
// each dies at some change of its disk, or finds the disk full. The next one opens the store as the disk
// has it, and does the same again. A window must be there whole, or not at all; once it is said to
// have landed it stays. What comes last is replayed live, beside a follower.
type loader struct {
	stored
	number int
	d      *dice
	disk   *cutDisk
	loads  [][]events.Entry // replayed in bulk
	after  [][]events.Entry // and then live
	bad    int              // entries of loads that cannot be read
	size   replay.Size
	was    map[string]value.Item // the rows when the last window landed
	next   map[string]value.Item // with the window during the landing of which the process died
	live   bool                  // a record has made the replay go on live
}

// mostLoads is how often a process that replays in bulk may die.
const mostLoads = 6

// RunBulk does one run of a model whose recordings are replayed in replay. The same model, seed and options give
// the same run, but for where a window ends: that depends on how the store hashes keys, which is another way each
// time, and moves the moment of a death by a window now and then.
func RunBulk(m *model.Model, seed uint64, o Options) Outcome {
	o.Bulk = true
	w := newWorld(m, seed, o)
	w.deliverBy(byFollower)
	w.faults.fair = true // faults of processes that do not load are for other runs
	acts := w.runRough(o)
	w.settle()
	w.retryLetters()
	if w.judgeAll(); len(w.failures) == 0 && len(w.operatorLetters()) == 0 {
		for i := range timesLoaded {
			w.loadInBulk(i)
		}
	}
	return w.finishRun(acts)
}

// timesLoaded is on how many computers the recordings of a run are replayed in replay.
const timesLoaded = 3

// loadInBulk replays the run in bulk, as often as it takes. The result must equal that of the run.
func (w *world) loadInBulk(number int) {
	if len(w.failures) > 0 {
		return
	}
	w.counted["replays in bulk"]++
	o := newWorld(w.model, w.seed, Options{})
	o.mapping, o.way, o.calm, o.clock = nil, byFollower, true, w.clock
	o.trims, o.base.keep, o.built, o.index = nil, false, true, w.index
	o.faults, o.trace, o.log, o.counted = w.faults, w.trace, w.log, w.counted
	l := &loader{stored: stored{world: o}, number: number, d: newDice(w.seed, "load", number), disk: newCutDisk()}
	bytes := l.recordStreams(w)
	windows := 1 + l.d.n(1+l.d.n(20)) // about
	l.size = replay.Size{Memory: bytes/windows + 4096, Disk: int64(bytes/windows + 1)}
	w.faults.over, w.faults.left = false, max(w.faults.left, mostLoads)
	l.runProcesses()
	w.faults.over = true
	for _, f := range o.failures {
		w.addFailure(f.Class, "in bulk: %s", f.What)
	}
	if len(w.failures) > 0 || len(o.operatorLetters()) > 0 {
		return
	}
	w.compareWorlds(o, "replayed in bulk")
	if found := o.runVerify(); len(found) > 0 && len(w.failures) == 0 {
		w.addFailure(Reordered, "in bulk: verify: it finds %+v", found[0])
	}
}

// recordStreams makes recordings of the streams of another world: each shard whole and in order, with pieces
// that come again, and lines that cannot be read. It returns about how many bytes they have.
func (l *loader) recordStreams(from *world) (bytes int) {
	var all [][]events.Entry
	for _, mt := range l.model.Tables {
		for _, s := range from.base.tables[mt.Name].shards {
			for at := 0; at < len(s.records); {
				n := min(len(s.records)-at, 1+l.d.n(40))
				var batch []events.Entry
				for i, r := range s.records[at : at+n] {
					batch = append(batch, events.Entry{Record: r, Location: events.Location{File: s.ID, Line: int64(at + i + 1)}})
					bytes += r.Old.Size() + r.New.Size() + 500
				}
				all = append(all, batch)
				if at += n; l.d.chance(0.15) {
					all = append(all, all[l.d.n(len(all))])
				}
			}
		}
	}
	n := len(all)
	if l.d.chance(0.5) {
		n = l.d.n(len(all) + 1)
	}
	l.loads, l.after = all[:n:n], all[n:]
	if l.d.chance(0.3) {
		l.loads = append(l.loads, []events.Entry{{Bad: &events.Bad{Err: errors.New("torn"), Raw: []byte(`{"torn`), Size: 6}}})
		l.bad++
	}
	return bytes
}

// runProcesses runs one process after another, and then one that nothing kills.
func (l *loader) runProcesses() {
	for lives := 0; len(l.failures) == 0; lives++ {
		kind, opening := l.chooseKind(lives), l.d.chance(0.15)
		if opening {
			l.armDisk(kind, lives)
		}
		if !l.openStore() {
			return
		}
		if !opening {
			l.armDisk(kind, lives)
		}
		sum, err := l.loadRecordings()
		l.disk.disarm()
		if died := l.disk.hasStruck(); kind != "" && (died || err != nil) {
			l.replaceProcess(kind, err)
			continue
		}
		if err != nil {
			l.addFailure(Stuck, "%v", err)
			return
		}
		n := 0
		for _, batch := range l.loads {
			n += len(batch)
		}
		if sum.Records() != n || sum.Dead != l.bad && !l.live {
			l.addFailure(Unaccounted, "of %d entries, %d of which cannot be read, %+v are counted", n, l.bad, sum)
		}
		l.finishLoading()
		return
	}
}

// chooseKind chooses the fault by which the process is to die, "" for a process that nothing kills.
func (l *loader) chooseKind(lives int) Kind {
	if lives >= mostLoads {
		return ""
	}
	for _, k := range []Kind{PowerCut, TornLog, CrashAfter, DiskFull} {
		if l.faults.strikeWeighted(k, 6) {
			return k
		}
	}
	return ""
}

// armDisk chooses when it is to die.
func (l *loader) armDisk(k Kind, lives int) {
	if d := newDice(l.seed, "moment", 100*l.number+lives); k != "" {
		l.disk.strikeAfter(k, d.n(1+d.n(150)), d)
	}
}

// openStore opens the store on the disk. Its rows must be the rows as they were when the last
// window landed.
func (l *loader) openStore() bool {
	disk := l.disk
	db, err := l.openDisk(disk, func(string) { disk.keepImage() })
	if err != nil {
		if disk.hasStruck() {
			l.disk = disk.afterCrash() // it died while it opened
			return l.openStore()
		}
		l.addFailure(Stuck, "it cannot be opened: %v", err)
		return false
	}
	l.db = db
	have := l.allRows()
	if l.next != nil && sameRows(have, l.next) {
		l.was = l.next
	} else if !sameRows(have, l.was) {
		l.addFailure(Lost, "after a death, rows are not as the last window left them: %v", firstUnlike(have, l.was))
	}
	l.next = nil
	l.checkIndexesAndStreams(have)
	return len(l.failures) == 0
}

// replaceProcess ends a process, and goes on with the data that its disk kept.
func (l *loader) replaceProcess(k Kind, err error) {
	l.counted["died in bulk"]++
	if k == DiskFull && err != nil && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, replay.ErrLive) {
		l.addFailure(Stuck, "on a full disk it says: %v", err)
	}
	l.traceStep("loader", "dead: "+string(k), nil)
	_ = l.db.Close()
	l.disk = l.disk.afterCrash()
}

// newReplay makes the runner and the replay of a process.
func (l *loader) newReplay(s store.Store) *replay.Replay {
	now := func() time.Time { return l.clock }
	r := &runner.Runner{Kinds: kinds.All(), Model: l.model, Store: s, Now: now, Mono: now, Alone: true, Mover: &ingest.Mover{Model: l.model, Store: s, Now: now}}
	return &replay.Replay{Model: l.model, Store: s, Runner: r, Apart: true, Gap: func(g replay.Gap) {
		l.addFailure(Unaccounted, "a gap in a whole recording: %s: %s: %s", g.Where, refName(g.Row), g.Reason)
	}}
}

// loadRecordings replays the recordings in replay. If bulk refuses to go on, it replays live the records that have not landed.
func (l *loader) loadRecordings() (sum replay.Summary, err error) {
	ctx := context.Background()
	r := l.newReplay(loadStore{l.db, l})
	b, why, err := replay.New(ctx, r, l.size)
	if err != nil {
		return sum, err
	}
	if why != "" {
		return sum, fmt.Errorf("not in bulk: %s", why)
	}
	if b.Reduces() {
		l.counted["replays in bulk that reduce changes"]++
	}
	for _, batch := range l.loads {
		if err = b.Batch(ctx, slices.Clone(batch), ""); err != nil {
			break
		}
	}
	if err == nil {
		err = b.Land(ctx)
	}
	landed := b.Landed()
	err = errors.Join(err, b.Close())
	if !errors.Is(err, replay.ErrLive) || l.disk.hasStruck() {
		return r.Summary, err
	}
	l.disk.disarm()
	l.live = true
	l.counted["replays in bulk that go on live"]++
	for _, batch := range l.loads {
		n := min(landed, len(batch))
		landed -= n
		if err := r.Batch(ctx, slices.Clone(batch[n:]), ""); err != nil {
			return r.Summary, err
		}
	}
	return r.Summary, nil
}

// finishLoading ends the run: all that was loaded is loaded again, which changes nothing; what is left is replayed
// live, beside a follower, and the rows are those of the run.
func (l *loader) finishLoading() {
	ctx := context.Background()
	if !l.live {
		before := l.allRows()
		if sum, err := l.loadRecordings(); err != nil || sum.Applied > 0 || !sameRows(before, l.allRows()) {
			l.addFailure(Doubled, "loaded again: %+v, %v", sum, err)
		}
	}
	r := l.newReplay(l.db)
	step := (&reader.Follower{Runner: r.Runner}).NewStepper()
	for _, batch := range l.after {
		if err := r.Batch(ctx, slices.Clone(batch), ""); err != nil {
			l.addFailure(Stuck, "%v", err)
			return
		}
		if l.d.chance(0.3) {
			l.stepFollower(step, 1)
		}
	}
	l.stepFollower(step, mostCalls)
	have := l.allRows()
	l.checkIndexesAndStreams(have)
	if err := l.db.Close(); err != nil {
		l.addFailure(Stuck, "%v", err)
	}
	for _, name := range l.base.names {
		t := l.base.tables[name]
		for at, row := range have {
			if strings.HasPrefix(at, name+"|") {
				k, _ := t.KeyOf(row)
				t.put(k, row)
			}
		}
	}
}

// stepFollower lets a follower do so many steps, or all that it has to do.
func (l *loader) stepFollower(s *reader.Stepper, most int) {
	for quiet := 0; most > 0 && quiet < 3; most-- {
		n, left, err := s.Step(context.Background())
		if err != nil {
			l.addFailure(Stuck, "following: %v", err)
			return
		}
		if quiet++; n > 0 || left {
			quiet = 0
		}
	}
}

// loadStore is the store with Loads that tell when they land.
type loadStore struct {
	*embedded.Store
	l *loader
}

// Load is that of the store.
func (s loadStore) Load(ctx context.Context, o store.LoadOptions) (store.Load, error) {
	load, err := s.Store.Load(ctx, o)
	if err != nil || load == nil {
		return nil, err
	}
	return landing{load, s.l}, nil
}

// landing is a Load that tells when it lands.
type landing struct {
	aLoad
	l *loader
}

type aLoad = store.Load

// Land lands, and notes the rows of then. If the process died meanwhile, either may be true.
func (s landing) Land(ctx context.Context) error {
	l, before := s.l, s.l.disk.hasStruck()
	err := s.aLoad.Land(ctx)
	if before { // the process is dead
		return err
	}
	l.counted["windows"]++
	if l.disk.hasStruck() {
		l.counted["died while a window landed"]++
		l.next = l.allRows()
	} else if err == nil {
		l.was = l.allRows()
	}
	return err
}

// sameRows reports whether rows are the same.
func sameRows(a, b map[string]value.Item) bool { return len(firstUnlike(a, b)) == 0 }

// firstUnlike are the first few names of rows that differ, sorted.
func firstUnlike(a, b map[string]value.Item) []string {
	names := map[string]bool{}
	for name, row := range a {
		if other, ok := b[name]; !ok || !value.EqualItems(row, other) {
			names[name] = true
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names[name] = true
		}
	}
	return firstOf(names)
}
