package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// machine is a computer with a faulty disk and the embedded store on it. One process at a
// time replays the run's streams into the store and follows them. The process dies with its
// store; the next one opens the store as the disk has it and does the same again.
//
// The rows of the store are compared with a mirror (base) that gets each write too. After a
// death the store must hold everything, except some of the newest writes that were not
// synced.
type machine struct {
	stored
	from   *world
	d      *dice
	disk   *disk
	bytes  int // about how many were written since the store was opened
	dead   string
	fibers []*fiber
	done   bool // everything is replayed
	lives  int
	writes int // changes of rows since the run began

	touched []store.Ref // the rows of those changes of the mirror that can be undone
}

// disks are the kinds of faults that strike a machine.
var disks = []Kind{PowerCut, DiskFull, ShortWrite, FailedSync, TornLog, FlippedLog}

// mostLives is how often the process of a machine may die of faults.
const mostLives = 16

// replayOnDisk replays the run on a machine with a faulty disk, as often as it takes. The result
// must then equal that of the run.
func (w *world) replayOnDisk() {
	if len(w.operatorLetters()) > 0 || newDice(w.seed, "machine", 0).n(7) > 0 {
		return
	}
	w.counted["replays on a disk"]++
	o := newWorld(w.model, w.seed, Options{})
	o.mapping, o.way, o.calm, o.clock = nil, byFollower, true, w.clock
	o.faults, o.trace, o.log = w.faults, w.trace, w.log
	m := &machine{stored: stored{world: o}, from: w, d: newDice(w.seed, "disk", 0), disk: newDisk()}
	o.base.keep = true
	o.base.wrote = func(_ string, t *table, key store.Key, _, _ value.Item) {
		m.writes++
		m.touched = append(m.touched, store.Ref{Table: t.Name, Key: key})
	}
	w.faults.over, w.faults.left = false, max(w.faults.left, mostLives)
	m.runProcesses()
	w.faults.over = true
	for _, f := range o.failures {
		w.addFailure(f.Class, "on a disk: %s", f.What)
	}
	if len(w.failures) == 0 && len(o.operatorLetters()) == 0 {
		w.compareWorlds(o, "replayed on a disk")
	}
}

// runProcesses runs one process after another.
func (m *machine) runProcesses() {
	for turns := 0; len(m.failures) == 0; {
		m.openStore()
		m.startFibers()
		for ; m.dead == "" && !m.isAtRest() && len(m.failures) == 0; turns++ {
			if turns > 100000 {
				m.addFailure(Stuck, "it does not catch up")
			}
			m.resumeFiber()
		}
		for _, f := range m.fibers {
			f.kill()
		}
		if m.dead == "" {
			if m.closeStore(); m.dead == "" {
				m.faults.over = true
				m.openStore()
				m.discardStore(m.db)
				return
			}
		}
		m.traceStep("machine", "dead: "+m.dead, nil)
		if m.lives++; m.lives >= mostLives {
			m.faults.over = true
		}
	}
}

// resumeFiber lets one fiber run to its next pause.
func (m *machine) resumeFiber() {
	f := pick(m.sched, m.fibers)
	for f.over || f.idle && !slices.ContainsFunc(m.fibers, func(o *fiber) bool { return !o.over && !o.idle }) {
		f.idle = false
		f = pick(m.sched, m.fibers)
	}
	f.resume()
	switch {
	case f.bug != "":
		m.addFailure(Stuck, "%s: %s", f.name, f.bug)
	case f.over && f.err != nil && m.dead == "":
		m.addFailure(Stuck, "%s: %v", f.name, f.err)
	}
}

// isAtRest reports whether no fiber has anything to do.
func (m *machine) isAtRest() bool {
	return m.done && !slices.ContainsFunc(m.fibers, func(f *fiber) bool { return !f.over && !f.idle })
}

// startFibers begins the fibers of a process.
func (m *machine) startFibers() {
	m.done, m.fibers = false, nil
	run := func(f *fiber) *runner.Runner {
		at := &atMachine{m, f}
		r := &runner.Runner{Kinds: kinds.All(), Model: m.model, Store: at, Now: m.time, Mono: m.time, Alone: true, Mover: &ingest.Mover{Model: m.model, Store: at, Now: m.time}}
		if len(m.model.Searches) > 0 {
			r.Index = m.index
		}
		return r
	}
	m.fibers = append(m.fibers, newFiber("replay", func(f *fiber) error { return m.replayRun(run(f)) }))
	m.fibers = append(m.fibers, newFiber("follows", func(f *fiber) error {
		step := (&reader.Follower{Runner: run(f)}).NewStepper()
		for {
			writes := m.writes
			n, left, err := step.Step(context.Background())
			if err != nil {
				return err
			}
			if n == 0 && !left && writes == m.writes { // else it may have read a shard too early
				f.idle = true
				f.pause()
			}
			for _, o := range m.fibers { // other fibers may read its writes
				o.idle = o.idle && n == 0
			}
		}
	}))
}

// replayRun replays a recording of the run, as the command replay does.
func (m *machine) replayRun(run *runner.Runner) error {
	r := replay.Replay{Model: m.model, Store: run.Store, Runner: run}
	r.Gap = func(g replay.Gap) {
		if len(m.operatorLetters()) == 0 { // else a row has no room for a replay's mark
			m.addFailure(Unaccounted, "a gap in a whole recording: %s: %s", refName(g.Row), g.Reason)
		}
	}
	for _, mt := range m.model.Tables {
		for _, s := range m.from.base.tables[mt.Name].shards {
			for at := 0; at < len(s.records); {
				batch := entriesOf(s.records[at:min(len(s.records), at+1+m.sched.n(30))])
				if err := r.Batch(context.Background(), batch, ""); err != nil {
					return err
				}
				at += len(batch)
			}
		}
	}
	m.done = true
	for _, f := range m.fibers {
		f.idle = false
	}
	return nil
}

// openStore opens the store on the disk, as often as it takes.
func (m *machine) openStore() {
	for tries := 0; ; tries++ {
		m.dead, m.bytes = "", 0
		refuses := tries == 0 && m.lives > 0 && !m.disk.flipped && m.faults.strikeWeighted(DiskFull, 2)
		if refuses {
			m.disk.limitRoom(m.d.n(5))
		}
		db, err := m.openOnce()
		switch {
		case m.dead != "" || err != nil && refuses:
			if text := fmt.Sprint(m.dead, err); !strings.Contains(text, "no space left on device") {
				m.addFailure(Stuck, "on a full disk it says: %s", text)
			}
			if db != nil {
				m.discardStore(db)
			}
			m.traceStep("machine", "the disk is still full", nil)
			m.disk = m.disk.diskAfter(m.disk.logLength())
			continue
		case err != nil && m.disk.flipped && strings.Contains(err.Error(), "put back a copy"):
			m.traceStep("machine", "damage is said", nil)
			m.from.counted["damage of a log said"]++
			m.disk = m.disk.before
			continue
		case err != nil:
			m.addFailure(Stuck, "it cannot be opened again: %v", err)
			return
		}
		m.disk.limitRoom(-1)
		m.db = db
		m.reconcileMirror()
		return
	}
}

// openOnce opens the store on the disk as it is. If a fault kills the process meanwhile,
// m.dead says why, and the store is to be discarded.
func (m *machine) openOnce() (*embedded.Store, error) {
	disk := m.disk
	return m.openDisk(disk, func(reason string) {
		disk.keepImage(false) // the next process finds the disk of now
		m.dead = reason
	})
}

// discardStore closes a store whose process is dead.
func (m *machine) discardStore(db *embedded.Store) {
	defer func() { _ = recover() }()
	m.disk.ignoreSyncs()
	_ = db.Close()
}

// closeStore closes the store as a process does that ends in order.
func (m *machine) closeStore() {
	fails := m.armDisk()
	err := m.db.Close()
	if m.hasFallen(fails) {
		return
	}
	if err != nil {
		m.addFailure(Stuck, "closing: %v", err)
	}
	m.noteDurable()
}

// restartStore closes the store and opens it again. So the store holds so little in memory that
// it writes the same files each time.
func (m *machine) restartStore() {
	m.traceStep("machine", "restart", nil)
	if m.closeStore(); m.dead == "" {
		m.openStore()
	}
}

// syncStore syncs the store, which may fail.
func (m *machine) syncStore() error {
	fails := m.armDisk()
	err := m.db.Sync(context.Background())
	if m.hasFallen(fails) {
		return errDown
	}
	if err == nil {
		m.noteDurable()
		m.disk.noteSync()
	}
	m.cutPower()
	return err
}

// noteDurable notes that nothing written so far can be lost any more.
func (m *machine) noteDurable() {
	m.base.undo, m.touched = m.base.undo[:0], m.touched[:0]
}

// armDisk may make the disk fail with the next sync; it returns the kind of fault, "" for none.
func (m *machine) armDisk() Kind {
	kinds := []Kind{DiskFull, ShortWrite, FailedSync}
	m.d.shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, k := range kinds {
		if m.faults.strikeWeighted(k, 2) {
			m.pushLog()
			m.writeNothing()
			m.disk.armSync(k, 1+m.d.n(m.disk.logLength()-m.disk.synced+1))
			return k
		}
	}
	return ""
}

// pushLog makes the store write all that it holds back, without syncing. How much it has
// written by itself depends on timing.
func (m *machine) pushLog() {
	m.disk.ignoreSyncs()
	m.writeNothing()
	if err := m.db.Sync(context.Background()); err != nil {
		m.addFailure(Stuck, "%v", err)
	}
}

// writeNothing gives the store something to sync, by a write that changes nothing.
func (m *machine) writeNothing() {
	out, err := m.db.Write(context.Background(), []store.Write{{Ref: m.unusedRef(), Delete: true}})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		m.addFailure(Stuck, "%v", err)
	}
}

// hasFallen reports whether an armed fault has killed the process, as it must, and goes on with
// the disk as the fault left it.
func (m *machine) hasFallen(fails Kind) bool {
	if fails == "" {
		return false
	}
	if m.dead == "" {
		m.addFailure(Lost, "%s: no error says so", fails)
		return false
	}
	m.from.counted["died of a disk"]++
	end := m.disk.logLength()
	if fails == FailedSync { // any part of the unsynced data may be lost for good
		end = m.disk.synced + m.d.n(end-m.disk.synced+1)
	}
	old := m.disk
	m.discardStore(m.db)
	m.disk = old.diskAfter(end)
	return true
}

// cutPower may cut the power. The log then ends with its synced part, or anywhere behind that;
// or its last bytes are changed, or a byte that was durable.
func (m *machine) cutPower() {
	kind := TornLog
	switch {
	case m.faults.strikeWeighted(TornLog, 0.8):
	case m.faults.strikeWeighted(FlippedLog, 0.8):
		kind = FlippedLog
	case m.faults.strikeWeighted(PowerCut, 0.8):
		kind = PowerCut
	default:
		return
	}
	old := m.disk
	m.pushLog()
	end, durable := old.logLength(), old.syncedBefore()
	cut := old.synced + m.d.n(end-old.synced+1)
	old.keepImage(true)
	m.dead = string(kind)
	m.discardStore(m.db)
	m.disk = old.diskAfter(end)
	switch {
	case kind == PowerCut:
		m.disk = old.diskAfter(old.synced)
	case kind == TornLog && m.d.chance(0.6):
		m.disk = old.diskAfter(cut)
	case kind == TornLog:
		m.disk = m.disk.changedCopy(cut, min(end, cut+m.d.n(5000)), func(byte) byte { return 0 })
	case durable > 0 && m.d.chance(0.6):
		at, bit := m.d.n(durable), byte(1)<<m.d.n(8)
		m.disk = m.disk.changedCopy(at, at+1, func(b byte) byte { return b ^ bit })
		m.disk.flipped = true
	default:
		bit := byte(1) << m.d.n(8)
		m.disk = m.disk.changedCopy(cut, min(end, cut+1), func(b byte) byte { return b ^ bit })
	}
	m.traceStep("machine", fmt.Sprintf("%s: %d synced of %d", kind, old.synced, end), nil)
}

// unusedRef is a row that no program writes.
func (m *machine) unusedRef() store.Ref {
	t := &m.base.tables[m.base.names[0]].Table
	k := store.Key{Partition: value.OfString("no row's")}
	if t.Key.Sort.Name != "" {
		k.Sort = value.OfString("nothing")
	}
	return store.Ref{Table: t.Name, Key: k}
}

// reconcileMirror undoes the changes in the mirror that the store has lost: some of the newest changes that
// were not durable. Any other difference is a failure.
func (m *machine) reconcileMirror() {
	have := m.allRows()
	differs := map[string]bool{}
	look := func(r store.Ref) {
		name := refName(r)
		if row := m.base.tables[r.Table].get(r.Key); value.EqualItems(row, have[name]) && (row == nil) == (have[name] == nil) {
			delete(differs, name)
		} else {
			differs[name] = true
		}
	}
	known := map[string]bool{}
	for _, name := range m.base.names {
		m.base.tables[name].eachRow(func(k store.Key, _ value.Item) {
			r := store.Ref{Table: name, Key: k}
			known[refName(r)] = true
			look(r)
		})
	}
	for name := range have {
		if !known[name] {
			differs[name] = true
		}
	}
	lost := 0
	for ; len(differs) > 0 && len(m.base.undo) > 0; lost++ {
		last := len(m.base.undo) - 1
		m.base.undo[last]()
		look(m.touched[last])
		m.base.undo, m.touched = m.base.undo[:last], m.touched[:last]
	}
	if len(differs) > 0 {
		m.addFailure(Lost, "%d changes back from what was written last, and %d lives in, these rows are not as they were: %v", lost, m.lives, firstOf(differs))
		return
	}
	m.traceStep("machine", fmt.Sprintf("opened: %d changes lost", lost), nil)
	m.noteDurable() // it was read from a log that is replayed into synced files
	m.checkIndexesAndStreams(have)
}

// firstOf are the first five names, sorted.
func firstOf(names map[string]bool) []string {
	out := slices.Sorted(maps.Keys(names))
	return out[:min(len(out), 5)]
}

// atMachine is a fiber's access to the store of its machine.
type atMachine struct {
	*machine
	f *fiber
}

var _ store.Store = (*atMachine)(nil)

// pauseCall gives control back before a call.
func (a *atMachine) pauseCall(what string, names ...string) {
	a.traceStep(a.f.name, what, names)
	a.f.pause()
	a.base.who = a.f.name
}

// endIfDead ends the fiber if its machine has died.
func (a *atMachine) endIfDead() {
	if a.dead != "" || len(a.failures) > 0 {
		panic(crash{})
	}
}

// Get reads rows.
func (a *atMachine) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	a.pauseCall("get", refNames(refs)...)
	return a.db.Get(ctx, refs)
}

// Query reads a page.
func (a *atMachine) Query(ctx context.Context, q store.Query) (store.Page, error) {
	a.pauseCall("query", q.Table, q.Partition.Text())
	return a.db.Query(ctx, q)
}

// makeRoom restarts the store if it holds too much in memory for the coming writes.
func (a *atMachine) makeRoom(ws []store.Write) {
	size := 0
	for i := range ws {
		size += 500 + 2*ws[i].Put.Size()
		if t := a.base.tables[ws[i].Table]; t != nil {
			size += 2 * t.get(ws[i].Key).Size()
		}
	}
	if a.bytes > 0 && a.bytes+size > 100<<10 {
		a.restartStore()
		a.endIfDead()
	}
	a.bytes += size
}

// Write does the writes in the store and in the mirror; both must answer the same.
func (a *atMachine) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	a.pauseCall("write", writeNames(ws)...)
	a.makeRoom(ws)
	out, err := a.db.Write(ctx, ws)
	if err != nil {
		return out, err
	}
	want, err := a.base.Write(ctx, ws)
	for i := range want {
		if fmt.Sprint(want[i].Err) != fmt.Sprint(out[i].Err) || !value.EqualItems(want[i].Row, out[i].Row) {
			a.addFailure(Reordered, "a write of %s: %v %s, expected %v %s", refName(ws[i].Ref), out[i].Err, plainText(out[i].Row), want[i].Err, plainText(want[i].Row))
		}
	}
	a.afterWrite()
	return out, err
}

// Transact does all of the writes or none, in the store and in the mirror.
func (a *atMachine) Transact(ctx context.Context, ws []store.Write) error {
	a.pauseCall("transact", writeNames(ws)...)
	a.makeRoom(ws)
	err := a.db.Transact(ctx, ws)
	if want := a.base.Transact(ctx, ws); (want == nil) != (err == nil) || want != nil && !errors.Is(err, kindOf(want)) {
		a.addFailure(Reordered, "a transaction: %v, expected %v", err, want)
	}
	a.afterWrite()
	return err
}

// afterWrite comes after a write: another user of the store may ask for a sync, or the power
// fails.
func (a *atMachine) afterWrite() {
	if a.d.chance(0.15) {
		if err := a.syncStore(); err != nil && a.dead == "" {
			a.addFailure(Stuck, "%v", err)
		}
	} else {
		a.cutPower()
	}
	a.endIfDead()
}

// kindOf is the kind of a store's error, or the error itself if it has none.
func kindOf(err error) error {
	for _, kind := range []error{store.ErrCondition, store.ErrRefused, store.ErrNoTable} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// Shards lists shards.
func (a *atMachine) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	a.pauseCall("shards", table)
	return a.db.Shards(ctx, table)
}

// Read reads a page of a shard.
func (a *atMachine) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	a.pauseCall("read", table, shard)
	return a.db.Read(ctx, table, shard, after, limit)
}

// Trim releases records.
func (a *atMachine) Trim(ctx context.Context, table, shard string, upTo events.Position) error {
	return a.db.Trim(ctx, table, shard, upTo)
}

// Horizon is that of the store.
func (a *atMachine) Horizon(ctx context.Context, table, shard string) (events.Position, error) {
	return a.db.Horizon(ctx, table, shard)
}

// Changed is nil: the schedule decides when a follower reads.
func (a *atMachine) Changed(string) (<-chan struct{}, error) { return nil, nil }

// Tip is that of the store.
func (a *atMachine) Tip() store.Tip { return a.db.Tip() }

// Streams are those of the store.
func (a *atMachine) Streams(ctx context.Context, table string, met ...string) ([]string, error) {
	return a.db.Streams(ctx, table, met...)
}

// Continues is that of the store.
func (a *atMachine) Continues(ctx context.Context, table, earlier, label string) (bool, error) {
	return a.db.Continues(ctx, table, earlier, label)
}

// Identity is that of the store.
func (a *atMachine) Identity(ctx context.Context, table string) (store.Identity, error) {
	return a.db.Identity(ctx, table)
}

// Sweep is refused: the mirror would not see its deletions.
func (a *atMachine) Sweep(context.Context, time.Time, int, store.Prepare) (int, error) {
	return 0, errors.New("sim: nothing is swept here")
}

// Sync makes everything durable, or the process dies.
func (a *atMachine) Sync(ctx context.Context) error {
	a.pauseCall("sync")
	if len(a.base.undo) == 0 {
		return a.db.Sync(ctx)
	}
	err := a.syncStore()
	a.endIfDead()
	return err
}

// Close does nothing: the store outlives a fiber.
func (a *atMachine) Close() error { return nil }

// Load returns none: rows come with their stream records here.
func (a *atMachine) Load(context.Context, store.LoadOptions) (store.Load, error) { return nil, nil }
