package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/memory"
	"weir/internal/memory/memorytest"
	"weir/internal/store"
	"weir/internal/value"
)

// everyByte makes TestDamage damage every byte instead of every 64th, and a store of
// more files.
const everyByte = "WEIR_TEST_EVERY_BYTE"

// TestDamage damages every file of a store, closed or killed, in every place: the store
// is refused, with what to do and without a change in any file, or every row is right or
// said to be unreadable.
func TestDamage(t *testing.T) {
	begin := memorytest.Bound(t, memory.GB)
	for _, end := range []ending{closes, killed, powerCut} {
		t.Run(string(end), func(t *testing.T) {
			disk := smallStore(t, end)
			d := damages{t: t, whole: disk, rows: rowsOn(t, disk), end: end, begin: begin}
			if end == powerCut {
				delete(d.rows, lastRow(t, disk))
			}
			if len(d.rows) < 20 {
				t.Fatalf("%d rows", len(d.rows))
			}
			d.everywhere()
			t.Logf("%d files, %d ways of damage: %d refused, %d read on with an error, %d harmless", len(disk), d.said+d.read+d.harmless, d.said, d.read, d.harmless)
			if d.said == 0 || d.read == 0 && end == closes {
				t.Error("nothing was refused, or nothing was read")
			}
		})
	}
}

// small are options of a store that takes little time to open.
func small(fs vfs.FS) Options {
	return Options{FS: fs, Logger: quiet, MemTableBytes: 64 << 10, CacheBytes: 256 << 10, RowCacheBytes: 256 << 10, TailBytes: 16 << 10}
}

// disk is the content of a directory.
type disk map[string][]byte

// ending is how a store's process ended.
type ending string

const (
	closes   ending = "closed"
	killed   ending = "killed"
	powerCut ending = "power cut"
)

// smallStore has rows in tables of two levels and in two logs, and a manifest with a
// history.
func smallStore(t *testing.T, end ending) disk {
	t.Helper()
	mem := vfs.NewCrashableMem()
	rounds := 3
	if os.Getenv(everyByte) != "" {
		rounds = 12
	}
	for round := range rounds {
		s, err := Open("data", []store.Table{things()}, small(noLock{mem}))
		failtest.On(t, err)
		for i := range 10 {
			do(t, s, put("a", fmt.Sprint(round, "-", i), "kind", "k", "at", fmt.Sprint(i), "pad", pad(20)), del("a", "0-0"), put("b", "counted", "n", round))
		}
		if round%2 == 0 {
			failtest.On(t, s.db.Flush())
		}
		do(t, s, put("c", fmt.Sprint(round), "n", round))
		failtest.On(t, s.Sync(t.Context()))
		if end != closes && round == rounds-1 {
			do(t, s, put("z", "last"))
			failtest.On(t, s.Sync(t.Context()))
			if end == killed { // what was written is there
				mem = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
				break
			}
			// What was synced last looks like what a crash tore until the next sync.
			mem = mem.CrashClone(vfs.CrashCloneCfg{})
			break
		}
		failtest.On(t, s.Close())
	}
	return diskOf(t, mem)
}

func diskOf(t *testing.T, fs vfs.FS) disk {
	t.Helper()
	names, err := fs.List("data")
	failtest.On(t, err)
	d := disk{}
	for _, name := range names {
		if d[name], err = readWhole(fs, "data/"+name); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// mem is the directory in memory.
func (d disk) mem(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	failtest.On(t, mem.MkdirAll("data", 0o755))
	for name, b := range d {
		f, err := mem.Create("data/"+name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(slices.Clone(b))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return mem
}

// rowsOn are the rows of a store that is whole.
func rowsOn(t *testing.T, d disk) map[string]value.Item {
	t.Helper()
	s, err := Open("data", []store.Table{things()}, small(d.mem(t)))
	failtest.On(t, err)
	defer s.Close()
	verify(t, s)
	return allRows(t, s, s.tables["things"])
}

// lastRow is the key of the row that was synced last before a crash.
func lastRow(t *testing.T, d disk) string {
	t.Helper()
	s, err := Open("data", []store.Table{things()}, small(d.mem(t)))
	failtest.On(t, err)
	defer s.Close()
	return string(appendRowKey(nil, s.tables["things"], ref("z", "last").Key))
}

type damages struct {
	t                    *testing.T
	whole                disk
	rows                 map[string]value.Item
	said, read, harmless int
	end                  ending
	begin                func(string) func() // of memorytest.Bound
}

func (d *damages) everywhere() {
	step := 64
	switch {
	case os.Getenv(everyByte) != "":
		step = 1
	case testing.Short():
		step = 512
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var last string
	for _, name := range slices.Sorted(maps.Keys(d.whole)) {
		if isLog(name) {
			last = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.whole)) {
		b := d.whole[name]
		if step > 1 && d.end != closes && isTable(name) {
			continue // a killed store's tables are like a closed one's
		}
		d.with("without "+name, name, nil)
		for at := 0; at < len(b); at += step {
			if d.end != powerCut || name != last { // a log that a power cut cut short looks the same
				d.with(fmt.Sprintf("%s cut to %d of %d", name, at, len(b)), name, append([]byte{}, b[:at]...))
			}
			flipped := slices.Clone(b)
			flipped[at] ^= 1 << rng.IntN(8)
			d.with(fmt.Sprintf("%s flipped at %d of %d", name, at, len(b)), name, flipped)
		}
	}
}

// with opens the store with another content of one file, nil for none.
func (d *damages) with(what, name string, b []byte) {
	d.t.Helper()
	defer d.begin(what)()
	disk := maps.Clone(d.whole)
	if disk[name] = b; b == nil {
		delete(disk, name)
	}
	mem := disk.mem(d.t)
	opts := small(mem)
	opts.Still, opts.Fatal = true, func(reason string) { d.t.Errorf("%s: fatal: %s", what, reason) }
	s, err := Open("data", []store.Table{things()}, opts)
	if err != nil {
		d.said++
		d.refused(what, name, err, disk, mem)
		return
	}
	unread := d.right(what, s)
	if unread {
		d.read++
	} else {
		d.harmless++
	}
	if err := s.Close(); err != nil && !unread {
		d.t.Errorf("%s: closing: %v", what, err)
	}
}

// refused checks that an error says what to do, and that everything is as it was. Blocks
// of tables are read when the store is open: then everything is there again with the table.
func (d *damages) refused(what, name string, err error, before disk, fs *vfs.MemFS) {
	d.t.Helper()
	if !strings.Contains(err.Error(), "put back a copy") {
		d.t.Errorf("%s: it does not say what to do: %v", what, err)
	}
	if isTable(name) && len(before[name]) == len(d.whole[name]) {
		mended := diskOf(d.t, fs)
		mended[name] = d.whole[name]
		if rows := rowsOn(d.t, mended); !d.all(len(rows)) {
			d.t.Errorf("%s, and mended: %d rows of %d", what, len(rows), len(d.rows))
		}
		return
	}
	after := diskOf(d.t, fs)
	for name, b := range before {
		switch got, there := after[name]; {
		case name == ownerFile || name == filesFile || name == syncedFile:
		case !there:
			d.t.Errorf("%s: %s was deleted: %v", what, name, err)
		case !bytes.Equal(got, b):
			d.t.Errorf("%s: %s was changed: %v", what, name, err)
		}
	}
}

// right checks that every row is right, or cannot be read.
func (d *damages) right(what string, s *Store) (unread bool) {
	d.t.Helper()
	tab := s.tables["things"]
	wrong, errs := 0, 0
	for key, want := range d.rows {
		id, _ := tab.KeyOf(want)
		got, err := s.Get(context.Background(), []store.Ref{{Table: "things", Key: id}})
		if err != nil {
			unread = true
			errs++ // one is enough: Pebble looks for the bit, which takes a while
		} else if !value.EqualItems(got[0], want) {
			wrong++
			d.t.Errorf("%s: %x is %s, not %s", what, key, show(got[0]), show(want))
		}
		if wrong > 2 || errs > 0 {
			return unread
		}
	}
	if n, err := countRows(s, tab); err == nil && !d.all(n) {
		d.t.Errorf("%s: %d rows of %d", what, n, len(d.rows))
	}
	return unread
}

// all reports whether n rows are all of them. What was synced last before a power cut may be
// there.
func (d *damages) all(n int) bool {
	return n == len(d.rows) || d.end == powerCut && n == len(d.rows)+1
}

func countRows(s *Store, tab *table) (n int, err error) {
	for rows, err := range store.Pages(context.Background(), s, store.Query{Table: tab.Name}) {
		if n += len(rows); err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestDirectoryWithoutList: what opens a directory whose list is missing might delete its files.
func TestDirectoryWithoutList(t *testing.T) {
	d := smallStore(t, closes)
	delete(d, filesFile)
	_, err := Open("data", []store.Table{things()}, small(d.mem(t)))
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "FILES, the list of its files, is missing") {
		t.Errorf("error %v", err)
	}
}

// TestListIsTrue: wherever the process is killed or the power fails, every listed file
// exists.
func TestListIsTrue(t *testing.T) {
	for _, d := range crashedDisks(t) {
		if _, err := d.disk.Stat("data"); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if _, _, err := checkFiles(d.disk, "data"); err != nil {
			t.Fatalf("%s: %v", d.at, err)
		}
	}
}

// crashedDisks are those of a store that writes, flushes and compacts.
func crashedDisks(t *testing.T) []crash {
	t.Helper()
	c := newCrashes(7, 5)
	s, err := Open("data", []store.Table{things()}, small(c.fs()))
	failtest.On(t, err)
	for i := range 300 {
		do(t, s, put("a", fmt.Sprint(i), "pad", pad(2000)))
		if i%50 == 0 {
			failtest.On(t, s.Sync(t.Context()))
			c.between(fmt.Sprint("after ", i))
		}
	}
	failtest.On(t, s.Close())
	return c.disks
}

// TestManifestIsDemanded: before a table goes, the list demands the manifest that lets it go.
func TestManifestIsDemanded(t *testing.T) {
	mem := vfs.NewMem()
	failtest.On(t, mem.MkdirAll("data", 0o755))
	g := guard{mem, func(reason string) { t.Error(reason) }, &files{fs: mem, dir: "data", known: map[string]*tracked{}}}
	write := func(f vfs.File, text string) {
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		failtest.On(t, f.Sync())
	}
	demanded := func() int64 {
		list, err := readList(mem, "data")
		failtest.On(t, err)
		return list.Files["MANIFEST-000001"].Bytes
	}
	create := func(name string) vfs.File {
		f, err := g.Create("data/"+name, vfs.WriteCategoryUnspecified)
		failtest.On(t, err)
		return f
	}
	manifest := create("MANIFEST-000001")
	write(manifest, "all files")
	create("marker.manifest.000001.MANIFEST-000001")
	if n := demanded(); n != 9 {
		t.Errorf("%d bytes when the marker was made", n)
	}
	write(create("000002.sst"), "rows")
	write(manifest, ", without 2")
	failtest.On(t, g.Remove("data/000002.sst"))
	if n := demanded(); n != 20 {
		t.Errorf("%d bytes when a table was deleted", n)
	}
}
