package sim

import (
	"context"
	"errors"
	"fmt"
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
// store; the next one opens what the disk holds and does the same again.
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

// machine replays the run on a machine with a faulty disk, as often as it takes. The result
// must then equal that of the run.
func (w *world) machine() {
	if len(w.kept()) > 0 || newDice(w.seed, "machine", 0).n(7) > 0 {
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
	m.run()
	w.faults.over = true
	for _, f := range o.failures {
		w.fail(f.Class, "on a disk: %s", f.What)
	}
	if len(w.failures) == 0 && len(o.kept()) == 0 {
		w.compare(o, "replayed on a disk")
	}
}

// run runs one process after another.
func (m *machine) run() {
	for turns := 0; len(m.failures) == 0; {
		m.open()
		m.start()
		for ; m.dead == "" && !m.rests() && len(m.failures) == 0; turns++ {
			if turns > 100000 {
				m.fail(Stuck, "it does not catch up")
			}
			m.turn()
		}
		for _, f := range m.fibers {
			f.kill()
		}
		if m.dead == "" {
			if m.close(); m.dead == "" {
				m.faults.over = true
				m.open()
				m.discard(m.db)
				return
			}
		}
		m.note("machine", "dead: "+m.dead, nil)
		if m.lives++; m.lives >= mostLives {
			m.faults.over = true
		}
	}
}

// turn lets one fiber run to its next pause.
func (m *machine) turn() {
	f := pick(m.sched, m.fibers)
	for f.over || f.idle && !slices.ContainsFunc(m.fibers, func(o *fiber) bool { return !o.over && !o.idle }) {
		f.idle = false
		f = pick(m.sched, m.fibers)
	}
	f.resume()
	switch {
	case f.bug != "":
		m.fail(Stuck, "%s: %s", f.name, f.bug)
	case f.over && f.err != nil && m.dead == "":
		m.fail(Stuck, "%s: %v", f.name, f.err)
	}
}

// rests reports whether no fiber has anything to do.
func (m *machine) rests() bool {
	return m.done && !slices.ContainsFunc(m.fibers, func(f *fiber) bool { return !f.over && !f.idle })
}

// start begins the fibers of a process.
func (m *machine) start() {
	m.done, m.fibers = false, nil
	run := func(f *fiber) *runner.Runner {
		at := &atMachine{m, f}
		r := &runner.Runner{Kinds: kinds.All(), Model: m.model, Store: at, Now: m.time, Mono: m.time, Alone: true, Mover: &ingest.Mover{Model: m.model, Store: at, Now: m.time}}
		if len(m.model.Searches) > 0 {
			r.Index = m.index
		}
		return r
	}
	m.fibers = append(m.fibers, newFiber("replay", func(f *fiber) error { return m.replay(run(f)) }))
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
			for _, o := range m.fibers { // other fibers may read what it wrote
				o.idle = o.idle && n == 0
			}
		}
	}))
}

// replay does what projector replay does with a recording of the run.
func (m *machine) replay(run *runner.Runner) error {
	r := replay.Replay{Model: m.model, Store: run.Store, Runner: run}
	r.Gap = func(g replay.Gap) {
		if len(m.kept()) == 0 { // else a row has no room for a replay's mark
			m.fail(Unaccounted, "a gap in a whole recording: %s: %s", refName(g.Row), g.Reason)
		}
	}
	for _, mt := range m.model.Tables {
		for _, s := range m.from.base.tables[mt.Name].shards {
			for at := 0; at < len(s.records); {
				var batch []events.Entry
				for _, rec := range s.records[at:min(len(s.records), at+1+m.sched.n(30))] {
					batch = append(batch, events.Entry{Record: rec})
				}
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

// open opens the store on what the disk holds, as often as it takes.
func (m *machine) open() {
	for tries := 0; ; tries++ {
		m.dead, m.bytes = "", 0
		refuses := tries == 0 && m.lives > 0 && !m.disk.flipped && m.faults.might(DiskFull, 2)
		if refuses {
			m.disk.fill(m.d.n(5))
		}
		db, err := m.openOnce()
		switch {
		case m.dead != "" || err != nil && refuses:
			if text := fmt.Sprint(m.dead, err); !strings.Contains(text, "no space left on device") {
				m.fail(Stuck, "on a full disk it says: %s", text)
			}
			if db != nil {
				m.discard(db)
			}
			m.note("machine", "the disk is still full", nil)
			m.disk = m.disk.after(m.disk.length())
			continue
		case err != nil && m.disk.flipped && strings.Contains(err.Error(), "put back a copy"):
			m.note("machine", "damage is said", nil)
			m.from.counted["damage of a log said"]++
			m.disk = m.disk.before
			continue
		case err != nil:
			m.fail(Stuck, "it cannot be opened again: %v", err)
			return
		}
		m.disk.fill(-1)
		m.db = db
		m.reconcile()
		return
	}
}

// openOnce opens the store on the disk as it is. If a fault kills the process meanwhile,
// m.dead says why, and the store is to be discarded.
func (m *machine) openOnce() (*embedded.Store, error) {
	disk := m.disk
	return m.store(disk, func(reason string) {
		disk.dies(false) // the next process finds what is on the disk now
		m.dead = reason
	})
}

// discard closes a store whose process is dead.
func (m *machine) discard(db *embedded.Store) {
	defer func() { _ = recover() }()
	m.disk.lies()
	_ = db.Close()
}

// close closes the store as a process does that ends in order.
func (m *machine) close() {
	fails := m.arm()
	err := m.db.Close()
	if m.fell(fails) {
		return
	}
	if err != nil {
		m.fail(Stuck, "closing: %v", err)
	}
	m.durable()
}

// restart closes the store and opens it again. So the store holds so little in memory that
// it writes the same files each time.
func (m *machine) restart() {
	m.note("machine", "restart", nil)
	if m.close(); m.dead == "" {
		m.open()
	}
}

// sync syncs the store, which may fail.
func (m *machine) sync() error {
	fails := m.arm()
	err := m.db.Sync(context.Background())
	if m.fell(fails) {
		return errDown
	}
	if err == nil {
		m.durable()
		m.disk.asked()
	}
	m.power()
	return err
}

// durable notes that nothing written so far can be lost any more.
func (m *machine) durable() {
	m.base.undo, m.touched = m.base.undo[:0], m.touched[:0]
}

// arm may make the disk fail with the next sync; it returns the kind of fault, "" for none.
func (m *machine) arm() Kind {
	kinds := []Kind{DiskFull, ShortWrite, FailedSync}
	m.d.shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, k := range kinds {
		if m.faults.might(k, 2) {
			m.push()
			m.unsynced()
			m.disk.arm(k, 1+m.d.n(m.disk.length()-m.disk.synced+1))
			return k
		}
	}
	return ""
}

// push makes the store write all that it holds back, without syncing. How much it has
// written by itself depends on timing.
func (m *machine) push() {
	m.disk.lies()
	m.unsynced()
	if err := m.db.Sync(context.Background()); err != nil {
		m.fail(Stuck, "%v", err)
	}
}

// unsynced gives the store something to sync, by a write that changes nothing.
func (m *machine) unsynced() {
	out, err := m.db.Write(context.Background(), []store.Write{{Ref: m.nowhere(), Delete: true}})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		m.fail(Stuck, "%v", err)
	}
}

// fell reports whether an armed fault has killed the process, as it must, and goes on with
// the disk as the fault left it.
func (m *machine) fell(fails Kind) bool {
	if fails == "" {
		return false
	}
	if m.dead == "" {
		m.fail(Lost, "%s: no error says so", fails)
		return false
	}
	m.from.counted["died of a disk"]++
	end := m.disk.length()
	if fails == FailedSync { // any part of what was not synced may be lost for good
		end = m.disk.synced + m.d.n(end-m.disk.synced+1)
	}
	old := m.disk
	m.discard(m.db)
	m.disk = old.after(end)
	return true
}

// power may cut the power. The log then ends with what was synced, or anywhere behind that;
// or its last bytes are changed, or a byte that was durable.
func (m *machine) power() {
	kind := TornLog
	switch {
	case m.faults.might(TornLog, 0.8):
	case m.faults.might(FlippedLog, 0.8):
		kind = FlippedLog
	case m.faults.might(PowerCut, 0.8):
		kind = PowerCut
	default:
		return
	}
	old := m.disk
	m.push()
	end, durable := old.length(), old.told()
	cut := old.synced + m.d.n(end-old.synced+1)
	old.dies(true)
	m.dead = string(kind)
	m.discard(m.db)
	m.disk = old.after(end)
	switch {
	case kind == PowerCut:
		m.disk = old.after(old.synced)
	case kind == TornLog && m.d.chance(0.6):
		m.disk = old.after(cut)
	case kind == TornLog:
		m.disk = m.disk.changed(cut, min(end, cut+m.d.n(5000)), func(byte) byte { return 0 })
	case durable > 0 && m.d.chance(0.6):
		at, bit := m.d.n(durable), byte(1)<<m.d.n(8)
		m.disk = m.disk.changed(at, at+1, func(b byte) byte { return b ^ bit })
		m.disk.flipped = true
	default:
		bit := byte(1) << m.d.n(8)
		m.disk = m.disk.changed(cut, min(end, cut+1), func(b byte) byte { return b ^ bit })
	}
	m.note("machine", fmt.Sprintf("%s: %d synced of %d", kind, old.synced, end), nil)
}

// nowhere is a row that no program writes.
func (m *machine) nowhere() store.Ref {
	t := &m.base.tables[m.base.names[0]].Table
	k := store.Key{Partition: value.OfString("no row's")}
	if t.Key.Sort.Name != "" {
		k.Sort = value.OfString("nothing")
	}
	return store.Ref{Table: t.Name, Key: k}
}

// reconcile undoes in the mirror what the store has lost: some of the newest changes that
// were not durable. Any other difference is a failure.
func (m *machine) reconcile() {
	have := m.rows()
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
		m.base.tables[name].each(func(k store.Key, _ value.Item) {
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
		m.fail(Lost, "%d changes back from what was written last, and %d lives in, these rows are not as they were: %v", lost, m.lives, firstOf(differs))
		return
	}
	m.note("machine", fmt.Sprintf("opened: %d changes lost", lost), nil)
	m.durable() // it was read from a log that is replayed into synced files
	m.agree(have)
}

// firstOf are the first five names, sorted.
func firstOf(names map[string]bool) (out []string) {
	for n := range names {
		out = append(out, n)
	}
	slices.Sort(out)
	return out[:min(len(out), 5)]
}

// atMachine is a fiber's access to the store of its machine.
type atMachine struct {
	*machine
	f *fiber
}

var _ store.Store = (*atMachine)(nil)

// call gives control back before a call.
func (a *atMachine) call(what string, names ...string) {
	a.note(a.f.name, what, names)
	a.f.pause()
	a.base.who = a.f.name
}

// over ends the fiber if its machine has died.
func (a *atMachine) over() {
	if a.dead != "" || len(a.failures) > 0 {
		panic(crash{})
	}
}

// Get reads rows.
func (a *atMachine) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	a.call("get", refNames(refs)...)
	return a.db.Get(ctx, refs)
}

// Query reads a page.
func (a *atMachine) Query(ctx context.Context, q store.Query) (store.Page, error) {
	a.call("query", q.Table, q.Partition.Text())
	return a.db.Query(ctx, q)
}

// room restarts the store if it holds too much in memory for what is about to be written.
func (a *atMachine) room(ws []store.Write) {
	size := 0
	for i := range ws {
		size += 500 + 2*ws[i].Put.Size()
		if t := a.base.tables[ws[i].Table]; t != nil {
			size += 2 * t.get(ws[i].Key).Size()
		}
	}
	if a.bytes > 0 && a.bytes+size > 100<<10 {
		a.restart()
		a.over()
	}
	a.bytes += size
}

// Write does the writes in the store and in the mirror; both must answer the same.
func (a *atMachine) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	a.call("write", writeNames(ws)...)
	a.room(ws)
	out, err := a.db.Write(ctx, ws)
	if err != nil {
		return out, err
	}
	want, err := a.base.Write(ctx, ws)
	for i := range want {
		if fmt.Sprint(want[i].Err) != fmt.Sprint(out[i].Err) || !value.EqualItems(want[i].Row, out[i].Row) {
			a.fail(Reordered, "a write of %s: %v %s, expected %v %s", refName(ws[i].Ref), out[i].Err, plain(out[i].Row), want[i].Err, plain(want[i].Row))
		}
	}
	a.asked()
	return out, err
}

// Transact does all of the writes or none, in the store and in the mirror.
func (a *atMachine) Transact(ctx context.Context, ws []store.Write) error {
	a.call("transact", writeNames(ws)...)
	a.room(ws)
	err := a.db.Transact(ctx, ws)
	if want := a.base.Transact(ctx, ws); (want == nil) != (err == nil) || want != nil && !errors.Is(err, kindOf(want)) {
		a.fail(Reordered, "a transaction: %v, expected %v", err, want)
	}
	a.asked()
	return err
}

// asked comes after a write: another user of the store may ask for a sync, or the power
// fails.
func (a *atMachine) asked() {
	if a.d.chance(0.15) {
		if err := a.sync(); err != nil && a.dead == "" {
			a.fail(Stuck, "%v", err)
		}
	} else {
		a.power()
	}
	a.over()
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
	a.call("shards", table)
	return a.db.Shards(ctx, table)
}

// Read reads a page of a shard.
func (a *atMachine) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	a.call("read", table, shard)
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

// Sweep is refused: the mirror would not see what it deletes.
func (a *atMachine) Sweep(context.Context, time.Time, int, store.Prepare) (int, error) {
	return 0, errors.New("sim: nothing is swept here")
}

// Sync makes everything durable, or the process dies.
func (a *atMachine) Sync(ctx context.Context) error {
	a.call("sync")
	if len(a.base.undo) == 0 {
		return a.db.Sync(ctx)
	}
	err := a.sync()
	a.over()
	return err
}

// Close does nothing: the store outlives a fiber.
func (a *atMachine) Close() error { return nil }

// Load returns none: rows come with their stream records here.
func (a *atMachine) Load(context.Context, store.LoadOptions) (store.Load, error) { return nil, nil }
