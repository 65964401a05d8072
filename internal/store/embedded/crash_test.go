package embedded

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// quiet is for stores whose crashes are the test.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// crashes takes the disk as a power cut would leave it, at operations of the file
// system chosen by chance, and with each what was promised by then.
type crashes struct {
	mem     *vfs.MemFS
	twice   sync.Mutex   // held where the file system takes its lock for clones twice: a clone in between would wait for ever
	promise atomic.Int64 // of what must survive, as far as the test knows

	mu    sync.Mutex
	rng   *rand.Rand
	every int
	disks []crash
}

type crash struct {
	at      string
	disk    *vfs.MemFS
	promise int64
}

func newCrashes(seed uint64, every int) *crashes {
	return &crashes{mem: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(seed, 0)), every: every}
}

func (c *crashes) fs() vfs.FS {
	return errorfs.Wrap(crashing{c.mem, c}, errorfs.InjectorFunc(c.before))
}

// crashing is the file system, which no crash takes while a file is linked or used again.
type crashing struct {
	*vfs.MemFS
	of *crashes
}

func (f crashing) Link(old, name string) error {
	f.of.twice.Lock()
	defer f.of.twice.Unlock()
	return f.MemFS.Link(old, name)
}

func (f crashing) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.of.twice.Lock()
	defer f.of.twice.Unlock()
	return f.MemFS.ReuseForWrite(old, name, c)
}

// before comes before each operation of the file system.
func (c *crashes) before(op errorfs.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || c.rng.IntN(c.every) > 0 || len(c.disks) >= 90 {
		return nil
	}
	// Keep all or nothing of what is not synced: Pebble may be about to move from one
	// manifest to the next, and relies on the file system to keep a directory's changes
	// in order.
	c.take(fmt.Sprintf("operation %d on %s", op.Kind, op.Path), 100*c.rng.IntN(2))
	return nil
}

// take lets the power fail now; of what was not synced, so much stays.
func (c *crashes) take(at string, percent int) {
	c.twice.Lock()
	defer c.twice.Unlock()
	promise, cfg := c.promise.Load(), vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng}
	c.disks = append(c.disks, crash{at, c.mem.CrashClone(cfg), promise})
}

// between lets the power fail between two calls of the store.
func (c *crashes) between(at string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(at, []int{0, 20, 50, 80, 100}[c.rng.IntN(5)])
}

// TestCrash: wherever the power fails, the store opens again, agrees with itself,
// and its streams hold a prefix of what was written with all that was promised.
func TestCrash(t *testing.T) {
	soaktest.Calm(t)
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { testCrash(t, seed) })
	}
}

func testCrash(t *testing.T, seed uint64) {
	c := newCrashes(seed, 12)
	tables := []store.Table{things()}
	opts := Options{FS: c.fs(), MemTableBytes: 64 << 10, Logger: quiet}
	s, err := Open("data", tables, opts)
	failtest.On(t, err)
	g := generator{rng: rand.New(rand.NewPCG(seed, 1))}
	for round := range 120 {
		g.round(t, s, c)
		if round%40 == 39 {
			splitOne(t, s, g.rng)
		}
		if round == 70 { // a clean restart in between
			failtest.On(t, s.Close())
			c.promise.Store(int64(g.written))
			if s, err = Open("data", tables, opts); err != nil {
				t.Fatal(err)
			}
		}
		if round%3 == 0 {
			c.between(fmt.Sprint("after round ", round))
		}
	}
	verify(t, s)
	want := allRecords(t, s, "things")
	failtest.On(t, s.Close())
	c.promise.Store(int64(len(want)))
	c.between("the end")
	t.Logf("%d crashes, %d records", len(c.disks), len(want))
	for _, disk := range c.disks {
		checkCrash(t, disk, tables, want)
	}
}

func checkCrash(t *testing.T, c crash, tables []store.Table, want []events.Record) {
	t.Helper()
	s, err := Open("data", tables, Options{FS: c.disk, Logger: quiet})
	if err != nil {
		t.Fatalf("%s: %v", c.at, err)
	}
	defer s.Close()
	verify(t, s)
	got := allRecords(t, s, "things")
	if int64(len(got)) < c.promise || len(got) > len(want) {
		t.Fatalf("%s: %d records of %d, %d were promised", c.at, len(got), len(want), c.promise)
	}
	for i := range got {
		if got[i].Position != want[i].Position || !value.EqualItems(got[i].New, want[i].New) {
			t.Fatalf("%s: record %d of %d is not what was written", c.at, i, len(got))
		}
	}
	do(t, s, put("after", "crash", "kind", "k", "at", "now"))
	all := allRecords(t, s, "things")
	if last := all[len(all)-1]; len(got) > 0 && last.Position.Compare(got[len(got)-1].Position) <= 0 {
		t.Fatalf("%s: the next record has the position %v after %v", c.at, last.Position, got[len(got)-1].Position)
	}
	verify(t, s)
}

// generator writes at random, and knows how many records that made.
type generator struct {
	rng     *rand.Rand
	written int
}

func (g *generator) write() store.Write {
	pk, sk := fmt.Sprint("p", g.rng.IntN(6)), fmt.Sprint("s", g.rng.IntN(8))
	switch g.rng.IntN(6) {
	case 0:
		return del(pk, sk)
	case 1, 2:
		return put(pk, sk, "kind", fmt.Sprint("k", g.rng.IntN(3)), "at", fmt.Sprint(g.rng.IntN(100)), "score", g.rng.IntN(100), "ttl", 1+g.rng.IntN(1000), "pad", pad(g.rng.IntN(300)))
	case 3:
		return put(pk, sk, "n", g.rng.IntN(2))
	}
	return store.Write{Ref: ref(pk, sk), Ops: []store.Op{
		{Kind: store.Add, Attr: "n", Value: val(1)}, {Kind: store.Set, Attr: "kind", Value: val(fmt.Sprint("k", g.rng.IntN(3)))}}}
}

func pad(n int) string { return string(make([]byte, n)) }

// round writes, by one of the ways there are, and sometimes syncs, which makes what
// was written so far a promise.
func (g *generator) round(t *testing.T, s *Store, c *crashes) {
	t.Helper()
	ctx := context.Background()
	var ws []store.Write
	for range 1 + g.rng.IntN(20) {
		ws = append(ws, g.write())
	}
	if g.rng.IntN(4) == 0 {
		seen := map[string]bool{}
		var distinct []store.Write
		for _, w := range ws {
			if !seen[w.Ref.String()] {
				distinct = append(distinct, w)
			}
			seen[w.Ref.String()] = true
		}
		failtest.On(t, s.Transact(ctx, distinct))
	} else {
		do(t, s, ws...)
	}
	if g.rng.IntN(3) == 0 {
		n := len(allRecords(t, s, "things"))
		failtest.On(t, s.Sync(ctx))
		g.written = n
		c.promise.Store(int64(n))
	}
}

func splitOne(t *testing.T, s *Store, rng *rand.Rand) {
	t.Helper()
	shards, err := s.Shards(context.Background(), "things")
	failtest.On(t, err)
	for {
		if sh := shards[rng.IntN(len(shards))]; !sh.Closed {
			failtest.On(t, s.Split(context.Background(), "things", sh.ID))
			return
		}
	}
}

// noLock lets a directory be opened beside an owner that is as good as dead.
type noLock struct{ vfs.FS }

func (noLock) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// TestPowerCutAfterKill: data that is there after kill -9, from a log that was never
// synced, survives a power cut after a Sync.
func TestPowerCutAfterKill(t *testing.T) {
	mem := vfs.NewCrashableMem()
	opts := Options{FS: noLock{mem}, Logger: quiet}
	tables := []store.Table{things()}
	killed, err := Open("data", tables, opts)
	failtest.On(t, err)
	for i := range 500 {
		do(t, killed, put("p", fmt.Sprint(i), "pad", pad(1000)))
	}
	next, err := Open("data", tables, opts)
	failtest.On(t, err)
	got := allRecords(t, next, "things")
	if len(got) == 0 {
		t.Fatal("nothing was in the log yet")
	}
	failtest.On(t, next.Sync(context.Background()))
	after := open(t, "data", tables, Options{FS: mem.CrashClone(vfs.CrashCloneCfg{}), Logger: quiet})
	if kept := allRecords(t, after, "things"); len(kept) < len(got) {
		t.Errorf("%d records of %d that a reader had", len(kept), len(got))
	}
	verify(t, after)
}

// TestCrashWhileIndexing: an index that was being built over existing rows is
// right after the next Open, and so is one that was being dropped.
func TestCrashWhileIndexing(t *testing.T) {
	soaktest.Calm(t)
	bare := things()
	bare.Indexes, bare.TTL = nil, ""
	half := things()
	half.Indexes = half.Indexes[:1]
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		c := newCrashes(seed, 4)
		opts := Options{FS: c.fs(), MemTableBytes: 64 << 10, Logger: quiet}
		written := 0
		for i, tables := range [][]store.Table{{bare}, {things()}, {half}, {things()}} {
			s, err := Open("data", tables, opts)
			failtest.On(t, err)
			if i == 0 {
				for n := range 800 {
					do(t, s, put("p", fmt.Sprintf("%05d", n), "kind", fmt.Sprint("k", n%9), "at", fmt.Sprint(n), "score", n, "ttl", n+1, "pad", pad(100)))
				}
				written = len(allRecords(t, s, "things"))
				failtest.On(t, s.Sync(context.Background()))
				c.promise.Store(int64(written))
			}
			verify(t, s)
			c.between(fmt.Sprint("opened ", i))
			failtest.On(t, s.Close())
		}
		t.Logf("%d crashes", len(c.disks))
		for _, disk := range c.disks {
			if disk.promise < int64(written) {
				continue
			}
			for _, tables := range [][]store.Table{{half}, {things()}} {
				s, err := Open("data", tables, Options{FS: disk.disk, Logger: quiet})
				if err != nil {
					t.Fatalf("%s: %v", disk.at, err)
				}
				verify(t, s)
				failtest.On(t, s.Close())
			}
		}
	}
}
