package reader_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// lease is short, so that many can run out.
const lease = 250 * time.Millisecond

// world is a store, an application that writes into it, and processes that follow.
type world struct {
	*testing.T
	model *model.Model
	db    *embedded.Store
	procs []*process

	forgetful atomic.Bool
	notes     atomic.Int64 // of gaps
	dropped   atomic.Int64 // records of checkpoints that were deleted
	watched   atomic.Int64 // records handed to reader.Options.Records

	mu    sync.Mutex
	reads map[string][]string // who read each shard, in order
	ahead time.Duration       // of the clocks of processes that start
	read  map[events.Position]bool
}

func newWorld(t *testing.T) *world { return worldOf(t, 3, 2) }

// worldOf is a world with so many shards, for so many processes.
func worldOf(t *testing.T, shards, processes int) *world {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	st := m.Tables[0].Table
	st.Stream = true
	db, err := embedded.Open("store", []store.Table{owntable.Table(), st}, embedded.Options{InMemory: true, Shards: shards})
	failtest.On(t, err)
	t.Cleanup(func() { db.Close() })
	w := &world{T: t, model: m, db: db, reads: map[string][]string{}, read: map[events.Position]bool{}}
	w.procs = make([]*process, processes)
	return w
}

// process is what one process has: its way to the store, which may stand still or be
// cut for good, and its Follow.
type process struct {
	store.Store
	world *world
	name  string
	stop  context.CancelFunc
	ended chan error

	mu     sync.Mutex
	still  chan struct{} // closed when it goes on; nil while it does
	full   chan struct{} // the same for writes into the application's table
	killed bool
}

var errKilled = errors.New("the process is dead")

func (w *world) start(i int) {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{Store: w.db, world: w, name: fmt.Sprintf("%d-%d", i, time.Now().UnixNano()), stop: stop, ended: make(chan error, 1)}
	w.procs[i] = p
	ahead := w.ahead
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: p, Now: func() time.Time { return time.Now().Add(ahead) }}
	go func() {
		p.ended <- reader.Follow(ctx, run, w.options())
	}()
}

func (w *world) options() reader.Options {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return reader.Options{Lease: lease, Poll: 10 * time.Millisecond, Retire: time.Millisecond, List: lease / 5, Log: log, Noted: func(n reader.Note) {
		if n == reader.Gap {
			w.notes.Add(1)
		}
	}, Records: func(_ *model.Table, records []events.Record) { w.watched.Add(int64(len(records))) }}
}

// kill ends a process as kill -9 does: nothing it does arrives any more.
func (w *world) kill(i int) {
	p := w.procs[i]
	p.kill()
	p.stop()
	failtest.On(w.T, <-p.ended)
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
}

// sink has writes into the application's table stand still, or go on.
func (p *process) sink(still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full != nil {
		close(p.full)
		p.full = nil
	}
	if still {
		p.full = make(chan struct{})
	}
}

func (p *process) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = make(chan struct{})
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.still)
	p.still = nil
}

// pass lets a request through, or keeps it.
func (p *process) pass() error {
	p.mu.Lock()
	still := p.still
	p.mu.Unlock()
	if still != nil {
		<-still
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return errKilled
	}
	return nil
}

func (p *process) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if err := p.pass(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	full := p.full
	p.mu.Unlock()
	if full != nil && ws[0].Table != owntable.TableName {
		<-full
		if err := p.pass(); err != nil {
			return nil, err
		}
	}
	rows, _ := p.Store.Get(ctx, []store.Ref{ws[0].Ref})
	out, err := p.Store.Write(ctx, ws)
	if ws[0].Delete && err == nil && out[0].Err == nil {
		p.world.noteDropped(rows[0])
	}
	return out, errors.Join(err, p.pass()) // it happened, and nobody knows
}

func (p *process) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if err := p.pass(); err != nil {
		return nil, err
	}
	return p.Store.Get(ctx, refs)
}

func (p *process) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := p.pass(); err != nil {
		return store.Page{}, err
	}
	return p.Store.Query(ctx, q)
}

func (p *process) Transact(ctx context.Context, ws []store.Write) error {
	if err := p.pass(); err != nil {
		return err
	}
	return p.Store.Transact(ctx, ws)
}

// byReader reports whether the reader of a shard begins to read a page, and not one that had begun before it stood still.
func byReader() bool {
	stack := make([]byte, 16<<10)
	stack = stack[:runtime.Stack(stack, false)]
	return bytes.Contains(stack, []byte("reader.(*Leased).Read")) && !bytes.Contains(stack, []byte("resumeBehindGap"))
}

func (p *process) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	p.world.mu.Lock()
	if rs := p.world.reads[shard]; byReader() && (len(rs) == 0 || rs[len(rs)-1] != p.name) {
		p.world.reads[shard] = append(rs, p.name)
	}
	p.world.mu.Unlock()
	if err := p.pass(); err != nil {
		return store.Records{}, err
	}
	if p.world.gone(shard) {
		return store.Records{}, store.ErrNoTable
	}
	page, err := p.Store.Read(ctx, table, shard, after, limit)
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	for _, r := range page.Records {
		p.world.read[r.Position] = true
	}
	return page, err
}

// Shards leaves closed shards out when the world says that the stream forgot them.
func (p *process) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	shards, err := p.Store.Shards(ctx, table)
	if p.world.forgetful.Load() {
		shards = slices.DeleteFunc(shards, func(s store.Shard) bool { return s.Closed })
	}
	return shards, errors.Join(err, p.pass())
}

// gone reports whether the stream forgot a shard.
func (w *world) gone(shard string) bool {
	shards, err := w.db.Shards(context.Background(), "gallery")
	failtest.On(w.T, err)
	i := slices.IndexFunc(shards, func(s store.Shard) bool { return s.ID == shard })
	return w.forgetful.Load() && (i < 0 || shards[i].Closed)
}

func item(pairs ...string) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}

func (w *world) put(row value.Item) {
	key, _ := w.model.Tables[0].KeyOf(row)
	out, err := w.db.Write(context.Background(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		w.Error(err)
	}
}

// deed is something that people do with 12 albums and 200 pictures; albums are also
// overwritten, deleted and made again.
func (w *world) deed(rng *rand.Rand) {
	a, m := fmt.Sprint("a", rng.IntN(12)), fmt.Sprint("m", rng.IntN(200))
	link := item("PK", "ALBUM#"+a, "SK", "MEDIA#"+m, "EntityType", "AlbumMedia", "albumId", a, "mediaId", m, "addedAt", "2025-01-01T00:00:00Z")
	album := item("PK", "ALBUM#"+a, "SK", "METADATA", "EntityType", "Album", "id", a, "title", fmt.Sprint("title ", rng.IntN(9)), "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z")
	switch n := rng.IntN(20); {
	case n < 11:
		w.put(link)
	case n < 16:
		w.remove(link)
	case n < 19:
		w.put(album)
	default:
		w.remove(album)
	}
}

func (w *world) remove(row value.Item) {
	key, _ := w.model.Tables[0].KeyOf(row)
	_, err := w.db.Write(context.Background(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Delete: true}})
	if err != nil {
		w.Error(err)
	}
}

// differences recounts.
func (w *world) differences() (out []string) {
	v := scratch.Verify{Model: w.model, Store: w.db, InMemory: true}
	failtest.On(w.T, v.Run(context.Background(), func(d scratch.Difference) {
		out = append(out, fmt.Sprintf("%s of %s: is %s, should be %s", d.Derivation, d.Row, d.Have, d.Want))
	}))
	return out
}

// settles waits until everything is derived.
func (w *world) settles() {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		bad := w.differences()
		if len(bad) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%d differ, such as %s", len(bad), bad[0])
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// checkpointed waits until each shard has a checkpoint: what the stream forgets of a shard without one is no gap.
func (w *world) checkpointed() {
	w.Helper()
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.db, Now: time.Now}
	shards, err := w.db.Shards(w.Context(), "gallery")
	failtest.On(w.T, err)
	for deadline := time.Now().Add(time.Minute); len(shards) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%d shards have no checkpoint", len(shards))
		}
		shards = slices.DeleteFunc(shards, func(s store.Shard) bool {
			p, err := reader.ReadPlace(w.Context(), run, "gallery", s.ID)
			failtest.On(w.T, err)
			return !p.At.IsZero()
		})
	}
}

// application writes until the test says stop, which waits for it.
func (w *world) application(seed uint64) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for rng := rand.New(rand.NewPCG(seed, 1)); ; {
			select {
			case <-done:
				return
			default:
				w.deed(rng)
				time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
			}
		}
	}()
	return func() { close(done); <-stopped }
}

func (w *world) split(rng *rand.Rand) {
	shards, err := w.db.Shards(context.Background(), "gallery")
	failtest.On(w.T, err)
	open := shards[:0]
	for _, s := range shards {
		if !s.Closed {
			open = append(open, s)
		}
	}
	failtest.On(w.T, w.db.Split(context.Background(), "gallery", open[rng.IntN(len(open))].ID))
}

// TestProcessesTakeOver has two processes follow while an application writes and
// shards split; in turn one of them is killed and started again, or stands still
// for longer than its lease and goes on. Whatever happens, what is derived is right,
// and no shard is read by two at a time.
func TestProcessesTakeOver(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(7, 7))
	stop := w.application(1)
	w.start(0)
	w.start(1)
	rounds := 8
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		time.Sleep(lease)
		i := round / 2 % 2
		if round%2 == 0 {
			w.kill(i)
			w.split(rng)
			time.Sleep(2 * lease)
			w.start(i)
			continue
		}
		w.procs[i].pause()
		time.Sleep(2*lease + lease/2)
		w.procs[i].resume()
	}
	stop()
	w.settles()
	w.countsEachOnce()
	for i := range w.procs {
		w.procs[i].stop()
		failtest.On(t, <-w.procs[i].ended)
	}
	w.oneReaderEach()
	failtest.On(t, (&runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.db}).EachDeadLetter(context.Background(), func(d deadletter.Letter) error {
		t.Errorf("kept: %s: %s", d.Target, d.Reason)
		return nil
	}))
}

// oneReaderEach checks that a shard never went back to a reader that had not taken the lease again.
func (w *world) oneReaderEach() {
	w.Helper()
	row, err := store.GetRow(context.Background(), w.db, owntable.Lease("gallery"))
	failtest.On(w.T, err)
	holds, _ := row.Get("n").Int64()
	taken := 0
	for shard, readers := range w.reads {
		if int64(len(readers)) > holds {
			w.Errorf("the lease was taken %d times, and shard %s changed readers %d times", holds, shard, len(readers)-1)
		}
		taken += len(readers) - 1
	}
	if taken == 0 {
		w.Error("no shard was ever taken over")
	}
}

// TestGracefulStop says that a process that is told to stop gives the lease back at
// once, and that the next goes on where it was.
func TestGracefulStop(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		w.deed(rng)
	}
	w.start(0)
	w.settles()
	w.procs[0].stop()
	failtest.On(t, <-w.procs[0].ended)
	if row, err := store.GetRow(t.Context(), w.db, owntable.Lease("gallery")); err != nil || row == nil || row.Has("o") {
		t.Errorf("the lease is %v, %v", row, err)
	}
	for range 300 {
		w.deed(rng)
	}
	w.start(1)
	w.settles()
	w.countsEachOnce()
	w.procs[1].stop()
	failtest.On(t, <-w.procs[1].ended)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.watched.Load(); n != int64(len(w.read)) {
		t.Errorf("%d records were handed on as applied, the stream had %d", n, len(w.read))
	}
}

// noteDropped counts the records of a checkpoint that was deleted.
func (w *world) noteDropped(row value.Item) {
	if is, err := owntable.DecodeCheckpoint(row); err == nil {
		w.dropped.Add(int64(is.Applied + is.Skipped + is.Dead))
	}
}

// countsEachOnce waits until as many records are counted as the stream had.
func (w *world) countsEachOnce() {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		total, err := runnertest.Counted(context.Background(), &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.db})
		failtest.On(w.T, err)
		w.mu.Lock()
		read := len(w.read)
		w.mu.Unlock()
		switch n := total.Applied + total.Skipped + total.Dead + int(w.dropped.Load()); {
		case n == read:
			return
		case n > read || time.Now().After(deadline):
			w.Fatalf("%d records are counted, the stream had %d", n, read)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestShardsAreForgotten says that what is kept of shards that are over is removed, also positions in ledgers.
func TestShardsAreForgotten(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(11, 11))
	stop := w.application(2)
	w.start(0)
	for range 6 {
		time.Sleep(lease / 2)
		w.split(rng)
	}
	stop()
	w.settles()
	w.kill(0)
	w.start(1)
	w.settles()
	kept := w.keptOfShards()
	w.forgetful.Store(true)
	w.start(0)
	stop = w.application(3)
	deadline := time.Now().Add(time.Minute)
	for w.keptOfShards() > 0 && time.Now().Before(deadline) {
		time.Sleep(lease / 5)
	}
	stop()
	w.settles()
	w.countsEachOnce()
	if after := w.keptOfShards(); kept == 0 || after > 0 {
		t.Errorf("of closed shards there were %d rows, then %d", kept, after)
	}
	if most := w.positions(); most == 0 || most > 20 {
		t.Errorf("a ledger has up to %d positions", most)
	}
	for i := range w.procs {
		w.procs[i].stop()
		failtest.On(t, <-w.procs[i].ended)
	}
}

// keptOfShards is how many rows are kept of closed shards.
func (w *world) keptOfShards() (n int) {
	shards, err := w.db.Shards(context.Background(), "gallery")
	failtest.On(w.T, err)
	open := map[string]bool{}
	for _, s := range shards {
		open[s.ID] = !s.Closed
	}
	count := func(shard string) {
		if !open[shard] {
			n++
		}
	}
	page, err := w.db.Query(context.Background(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Checkpoints("gallery"))})
	failtest.On(w.T, err)
	for _, row := range page.Rows {
		is, err := owntable.DecodeCheckpoint(row)
		failtest.On(w.T, err)
		count(is.Shard)
	}
	return n
}

// positions is how many positions the ledger with the most has.
func (w *world) positions() (most int) {
	for row, err := range store.EachRow(context.Background(), w.db, store.Query{Table: owntable.TableName}) {
		failtest.On(w.T, err)
		if strings.HasPrefix(row.Get("k").Text(), "ledger|") {
			most = max(most, len(owntable.Positions(row)))
		}
	}
	return most
}

// TestGapIsSaid says that records that the stream gave up before they were read are
// a gap that people find, and that what comes after them is applied.
func TestGapIsSaid(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		w.deed(rng)
	}
	w.start(0)
	w.settles()
	w.checkpointed()
	w.kill(0)
	for range 100 {
		w.deed(rng)
	}
	shards, err := w.db.Shards(t.Context(), "gallery")
	failtest.On(t, err)
	for _, s := range shards {
		failtest.On(t, w.db.Trim(t.Context(), "gallery", s.ID, events.PositionOf(1<<40)))
	}
	for range 100 {
		w.deed(rng)
	}
	w.start(1)
	defer func() {
		if n := w.notes.Load(); n != int64(len(shards)) {
			t.Errorf("%d gaps were noted, of %d shards", n, len(shards))
		}
	}()
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.db, Now: time.Now}
	deadline := time.Now().Add(time.Minute)
	gaps := map[string]bool{}
	for len(gaps) < len(shards) && time.Now().Before(deadline) {
		failtest.On(t, run.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
			if d.Kind == deadletter.Gap {
				gaps[d.Target] = true
			}
			return nil
		}))
		time.Sleep(20 * time.Millisecond)
	}
	w.procs[1].stop()
	failtest.On(t, <-w.procs[1].ended)
	if len(gaps) != len(shards) {
		t.Errorf("gaps %v of %d shards", gaps, len(shards))
	}
}

// TestGapThatGrew says that a gap which was named, and has grown before anything
// behind it was applied, is still that one.
func TestGapThatGrew(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(29, 29))
	deeds := func() {
		for range 100 {
			w.deed(rng)
		}
	}
	forget := func(shards []store.Shard) {
		for _, s := range shards {
			failtest.On(t, w.db.Trim(t.Context(), "gallery", s.ID, events.PositionOf(1<<40)))
		}
		deeds()
	}
	deeds()
	shards, err := w.db.Shards(t.Context(), "gallery")
	failtest.On(t, err)
	w.start(0)
	w.settles()
	w.checkpointed()
	w.kill(0)
	deeds()
	forget(shards)
	w.start(1)
	w.procs[1].sink(true) // nothing is applied
	w.gaps(len(shards))
	w.procs[1].kill()
	w.procs[1].sink(false)
	w.kill(1)
	forget(shards)
	told := w.notes.Load()
	w.start(1)
	for deadline := time.Now().Add(time.Minute); w.notes.Load() < told+int64(len(shards)); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not told again")
		}
	}
	w.gaps(len(shards))
	w.procs[1].stop()
	failtest.On(t, <-w.procs[1].ended)
}

// gaps waits until that many are named.
func (w *world) gaps(n int) {
	w.Helper()
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.db, Now: time.Now}
	deadline, where := time.Now().Add(time.Minute), map[string]bool{}
	for ; len(where) != n; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || len(where) > n {
			w.Fatalf("%d gaps are named, should be %d: %v", len(where), n, where)
		}
		failtest.On(w.T, run.EachDeadLetter(context.Background(), func(d deadletter.Letter) error {
			if d.Kind == deadletter.Gap {
				where[d.Target+" "+d.Source] = true
			}
			return nil
		}))
	}
}

// TestShardGoneBeforeItsEnd says that a shard which the stream forgot before its end
// was read is a gap that people find, that what was read of it is applied all the
// same, and that its children are.
func TestShardGoneBeforeItsEnd(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(23, 23))
	for range 200 {
		w.deed(rng)
	}
	w.start(0)
	w.settles()
	w.kill(0)
	for range 200 {
		w.deed(rng)
	}
	parents, err := w.db.Shards(t.Context(), "gallery")
	failtest.On(t, err)
	for _, s := range parents {
		failtest.On(t, w.db.Split(t.Context(), "gallery", s.ID))
	}
	w.forgetful.Store(true)
	for i := range 12 { // what counts from here on
		w.put(item("PK", fmt.Sprint("ALBUM#new", i), "SK", "METADATA", "EntityType", "Album", "id", fmt.Sprint("new", i), "title", "t", "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z"))
		w.put(item("PK", fmt.Sprint("ALBUM#new", i), "SK", "MEDIA#m", "EntityType", "AlbumMedia", "albumId", fmt.Sprint("new", i), "mediaId", "m", "addedAt", "2025-01-01T00:00:00Z"))
	}
	w.start(1)
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.db, Now: time.Now}
	gaps, shown := map[string]bool{}, 0
	for deadline := time.Now().Add(time.Minute); (len(gaps) < len(parents) || shown < 12) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		failtest.On(t, run.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
			if d.Kind == deadletter.Gap && strings.Contains(d.Reason, "gone before its end") {
				gaps[d.Target] = true
			}
			return nil
		}))
		shown = 0
		for i := range 12 {
			ref := store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString(fmt.Sprint("ALBUM#new", i)), Sort: value.OfString("METADATA")}}
			rows, err := w.db.Get(t.Context(), []store.Ref{ref})
			failtest.On(t, err)
			if n, _ := rows[0].Get("mediaCount").Int64(); n == 1 {
				shown++
			}
		}
	}
	if len(gaps) != len(parents) || shown != 12 {
		t.Errorf("gaps %v of %d shards, %d of 12 albums of their children are right", gaps, len(parents), shown)
	}
	w.procs[1].stop()
	failtest.On(t, <-w.procs[1].ended)
}
