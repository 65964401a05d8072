package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// loading returns a Load of the store for things, and for plain, which has no stream.
func loading(t testing.TB, s *Store, o store.LoadOptions) store.Load {
	t.Helper()
	o.Tables = []string{"things"}
	l, err := s.Load(context.Background(), o)
	if err != nil || l == nil {
		t.Fatalf("no load: %v", err)
	}
	return l
}

func land(t testing.TB, l store.Load) {
	t.Helper()
	failtest.On(t, l.Land(context.Background()))
}

// TestLoad: random writes and transactions on a Load have the outcomes, records, rows and
// entries that they have on a store.
func TestLoad(t *testing.T) {
	for seed := range uint64(6) {
		g := generator{rng: rand.New(rand.NewPCG(seed, 3))}
		plain := open(t, fmt.Sprint("plain", seed), []store.Table{things()}, Options{FS: vfs.NewMem()})
		mem := vfs.NewMem()
		loaded := open(t, "loaded", []store.Table{things()}, Options{FS: mem, MemTableBytes: 64 << 10})
		l := loading(t, loaded, store.LoadOptions{})
		var got []string
		for range 150 {
			var ws []store.Write
			for range 1 + g.rng.IntN(12) {
				ws = append(ws, g.hard())
			}
			compare(t, plain, l, ws, g.rng.IntN(3) == 0)
			for _, r := range l.Take() {
				got = append(got, show(r.Keys)+show(r.Old)+show(r.New))
			}
			if g.rng.IntN(8) == 0 {
				land(t, l)
				if l.Bytes() != 0 {
					t.Fatalf("%d bytes after it landed", l.Bytes())
				}
			}
		}
		land(t, l)
		var want []string
		for _, r := range allRecords(t, plain, "things") {
			want = append(want, show(r.Keys)+show(r.Old)+show(r.New))
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: %d records, want %d", seed, len(got), len(want))
		}
		sameRows(t, plain, loaded)
		if rs := allRecords(t, loaded, "things"); len(rs) > 0 {
			t.Fatalf("%d records are in the stream", len(rs))
		}
		if is, err := loaded.Identity(context.Background(), "things"); err != nil || is.Whole {
			t.Fatalf("the stream is whole: %+v, %v", is, err)
		}
		do(t, loaded, put("after", "all"))
		if l, err := loaded.Load(context.Background(), store.LoadOptions{Tables: []string{"things"}}); l != nil || err != nil {
			t.Fatalf("a load beside a stream: %v", err)
		}
	}
}

// hard is a write that may fail: its condition, or by what the table refuses.
func (g *generator) hard() store.Write {
	w := g.write()
	w.Return = g.rng.IntN(2) == 0
	switch g.rng.IntN(8) {
	case 0:
		w.If = store.Cond{{{Attr: "PK", Is: store.Absent}}}
	case 1:
		w.If = store.Cond{{{Attr: "n", Is: store.Lt, Value: val(2)}, {Attr: "n", Is: store.Absent}}}
	case 2:
		w = put("p1", "s1", "kind", 5)
		w.Return = true
	case 3:
		w = store.Write{Ref: ref("p2", "s2"), Ops: []store.Op{{Kind: store.Add, Attr: "kind", Value: val(1)}}}
	}
	return w
}

// compare does writes on both, and compares what comes back.
func compare(t *testing.T, plain *Store, l store.Load, ws []store.Write, together bool) {
	t.Helper()
	ctx := context.Background()
	if together {
		if a, b := plain.Transact(ctx, ws), l.Transact(ctx, ws); fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("a transaction: %v; loading: %v", a, b)
		}
	} else {
		a, err := plain.Write(ctx, ws)
		b, err2 := l.Write(ctx, ws)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for i := range a {
			if fmt.Sprint(a[i].Err) != fmt.Sprint(b[i].Err) || !value.EqualItems(a[i].Row, b[i].Row) {
				t.Fatalf("write %d: %v %s; loading: %v %s", i, a[i].Err, show(a[i].Row), b[i].Err, show(b[i].Row))
			}
		}
	}
	var refs []store.Ref
	for _, w := range ws {
		refs = append(refs, w.Ref)
	}
	a, err := plain.Get(ctx, refs)
	b, err2 := l.Get(ctx, refs)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || !value.EqualItems(a[i], b[i]) {
			t.Fatalf("row %v: %s; loading: %s", refs[i], show(a[i]), show(b[i]))
		}
	}
}

// sameRows compares the rows of two stores, and their indexes with these.
func sameRows(t *testing.T, a, b *Store) {
	t.Helper()
	want, got := allRows(t, a, a.tables["things"]), allRows(t, b, b.tables["things"])
	for id, row := range want {
		if !value.EqualItems(row, got[id]) {
			t.Fatalf("row %x: %s, want %s", id, show(got[id]), show(row))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	verifyIndexes(t, b, b.tables["things"], got)
}

// without leaves an attribute out of rows.
func without(name string) func(value.Item) value.Item {
	return func(row value.Item) value.Item { return row.Filter(func(is string) bool { return is != name }) }
}

// TestLoadLimits: what a Load cannot do is refused, and what it must not write.
func TestLoadLimits(t *testing.T) {
	ctx := context.Background()
	own := store.Table{Name: "own", Key: store.KeySchema{Partition: str("k")}}
	s := open(t, "data", []store.Table{things(), own}, Options{FS: vfs.NewMem()})
	stop := errors.New("not this one")
	l := loading(t, s, store.LoadOptions{Drop: without("p"), Refuse: func(r store.Ref) error {
		if r.Key.Partition.Text() == "bad" {
			return stop
		}
		return nil
	}})
	for what, do := range map[string]func() error{
		"query": func() error { _, err := l.Query(ctx, store.Query{Table: "things", Partition: val("a")}); return err },
		"scan":  func() error { _, err := l.Query(ctx, store.Query{Table: "own"}); return err },
		"sweep": func() error { _, err := l.Sweep(ctx, s.opts.Now(), 1, nil); return err },
		"load":  func() error { _, err := l.Load(ctx, store.LoadOptions{}); return err },
	} {
		if err := do(); !errors.Is(err, store.ErrLoading) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := l.Write(ctx, []store.Write{put("bad", "x")}); !errors.Is(err, stop) {
		t.Errorf("a refused write: %v", err)
	}
	if err := l.Transact(ctx, []store.Write{put("good", "x"), put("bad", "x")}); !errors.Is(err, stop) || len(l.Take()) > 0 {
		t.Errorf("a refused transaction: %v", err)
	}
	row := store.Write{Ref: store.Ref{Table: "own", Key: store.Key{Partition: val("r")}}, Put: item("k", "r", "p", 1, "q", 2)}
	if out, err := l.Write(ctx, []store.Write{row, put("a", "b", "p", 1)}); err != nil || out[0].Err != nil || out[1].Err != nil {
		t.Fatal(out, err)
	}
	land(t, l)
	rows, err := s.Get(ctx, []store.Ref{row.Ref, ref("a", "b"), ref("good", "x")})
	if err != nil || rows[2] != nil || rows[0].Has("p") || !rows[0].Has("q") || !rows[1].Has("p") {
		t.Errorf("%s, %s, %v", show(rows[0]), show(rows[1]), err)
	}
}

// TestStage: what is staged in pieces is in the store once it lands, and not before. What comes out
// of order is refused, and what is given up is gone.
func TestStage(t *testing.T) {
	ctx := context.Background()
	own := store.Table{Name: "own", Key: store.KeySchema{Partition: str("k")}}
	other := things()
	other.Name, other.Indexes = "other", nil
	mem := vfs.NewMem()
	s := open(t, "data", []store.Table{things(), own, other}, Options{FS: mem})
	l, err := s.Load(ctx, store.LoadOptions{Tables: []string{"things", "other"}})
	failtest.On(t, err)
	write := writing(t, l)
	stage := func() error { return l.Stage(ctx) }
	note := func(key string) store.Write {
		return store.Write{Ref: store.Ref{Table: "own", Key: store.Key{Partition: val(key)}}, Put: item("k", key)}
	}
	elsewhere := put("a", "a")
	elsewhere.Table = "other"
	left := func() (names []string) {
		all, err := mem.List("data")
		failtest.On(t, err)
		return slices.DeleteFunc(all, func(name string) bool {
			return !strings.HasPrefix(name, landing) && !strings.HasPrefix(name, scratchName)
		})
	}

	write(put("b", "b", "kind", "k"), note("z"))
	err = stage()
	write(put("c", "c", "kind", "k"), note("a"), elsewhere)
	if err = errors.Join(err, stage()); err != nil {
		t.Fatal(err)
	}
	if rows := allRows(t, s, s.tables["things"]); len(rows) > 0 || l.Bytes() > 0 {
		t.Fatalf("%d rows before they landed, %d bytes", len(rows), l.Bytes())
	}
	land(t, l)
	rows := allRows(t, s, s.tables["things"])
	verifyIndexes(t, s, s.tables["things"], rows)
	got, err := s.Get(ctx, []store.Ref{ref("b", "b"), ref("c", "c"), note("a").Ref, note("z").Ref, elsewhere.Ref})
	if err != nil || len(rows) != 2 || slices.ContainsFunc(got, func(row value.Item) bool { return row == nil }) || len(left()) > 0 {
		t.Fatalf("%d rows landed; %v, %v; left: %v", len(rows), got, err, left())
	}

	write(put("e", "e"))
	err = stage()
	write(put("d", "d"))
	if again := errors.Join(stage(), stage()); err != nil || !errors.Is(again, store.ErrLoading) {
		t.Errorf("rows out of order: %v, %v", err, again)
	}
	if err := l.Close(); err != nil || len(left()) > 0 {
		t.Errorf("given up: %v, left: %v", err, left())
	}
	write(note("q"))
	err = stage()
	write(note("q"), put("f", "f"))
	failtest.On(t, errors.Join(err, stage()))
	if err := l.Land(ctx); !errors.Is(err, store.ErrLoading) || len(left()) > 0 {
		t.Errorf("a row that is staged twice: %v, left: %v", err, left())
	}
	if rows := allRows(t, s, s.tables["things"]); len(rows) != 2 {
		t.Errorf("%d rows, though nothing more has landed", len(rows))
	}
	for _, ref := range []store.Ref{ref("b", "b"), note("z").Ref} {
		name, err := l.AppendName([]byte(nil), ref)
		back, err2 := l.Named(name)
		if err != nil || err2 != nil || back.String() != ref.String() {
			t.Errorf("%s is named %x, which is %s: %v, %v", ref, name, back, err, err2)
		}
	}
	if _, err := l.Named([]byte("r\xff\xff")); err == nil {
		t.Error("a name of no table is a row")
	}
}

// writing returns what writes into a load; each of the writes must be done.
func writing(t *testing.T, l store.Load) func(ws ...store.Write) {
	return func(ws ...store.Write) {
		t.Helper()
		out, err := l.Write(context.Background(), ws)
		for _, o := range out {
			err = errors.Join(err, o.Err)
		}
		failtest.On(t, err)
	}
}

// TestLandedRowsAreNew: rows that the row cache has when a window is staged are, after the window has landed, as it
// left them, whether they were staged before or in the end; and so are rows of which someone else reads the old state while they
// land. Of a window that is given up, none is seen.
func TestLandedRowsAreNew(t *testing.T) {
	for _, staged := range []bool{false, true} {
		for _, lands := range []bool{true, false} {
			t.Run(fmt.Sprintf("staged %v, lands %v", staged, lands), func(t *testing.T) { testLandedRowsAreNew(t, staged, lands) })
		}
	}
}

func testLandedRowsAreNew(t *testing.T, staged, lands bool) {
	ctx := context.Background()
	disk := &noIngest{FS: vfs.NewMem()}
	s := open(t, "data", []store.Table{things()}, Options{FS: disk})
	l := loading(t, s, store.LoadOptions{})
	refs := []store.Ref{ref("a", "changes"), ref("b", "goes"), ref("c", "comes")}
	write := writing(t, l)
	read := func() (all string) {
		t.Helper()
		for range 2 { // the second time from the cache
			rows, err := s.Get(ctx, refs)
			failtest.On(t, err)
			all = ""
			for _, row := range rows {
				all += show(row) + ";"
			}
		}
		return all
	}
	write(put("a", "changes", "n", 1), put("b", "goes", "n", 1))
	land(t, l)
	before := read()
	var since []uint64
	for _, r := range refs {
		key := appendRowKey(nil, s.tables["things"], r.Key)
		_, _, n := s.cache.find(maphash.Bytes(s.seed, key), key)
		since = append(since, n)
	}
	write(put("a", "changes", "n", 2), store.Write{Ref: refs[1], Delete: true}, put("c", "comes", "n", 2))
	if staged {
		failtest.On(t, errors.Join(l.Stage(ctx), l.(*load).staging.Wait()))
	}
	if now := read(); now != before {
		t.Fatalf("before they land they are %s, not %s", now, before)
	}
	want := before
	if lands {
		land(t, l)
		want = show(item("PK", "a", "SK", "changes", "n", 2)) + ";" + show(nil) + ";" + show(item("PK", "c", "SK", "comes", "n", 2)) + ";"
	} else {
		disk.refuses = true
		if err := l.Land(ctx); !errors.Is(err, errNoIngest) {
			t.Fatalf("a disk that refuses: %v", err)
		}
	}
	for i, r := range refs { // readers that read the store before it landed
		key := appendRowKey(nil, s.tables["things"], r.Key)
		s.cache.fillRow(maphash.Bytes(s.seed, key), key, stored(item("PK", "p", "SK", "s", "n", 9)), since[i])
	}
	if now := read(); now != want {
		t.Errorf("then they are %s, not %s", now, want)
	}
	for i := range s.cache.parts {
		for _, n := range s.cache.parts[i].counts {
			if n.commits != 0 {
				t.Errorf("%d commits are under way", n.commits)
			}
		}
	}
}

// noIngest is a disk on which no table becomes the store's while refuses is set.
type noIngest struct {
	vfs.FS
	refuses bool
}

var errNoIngest = fmt.Errorf("no link: %w", fs.ErrPermission) // another error has Pebble copy the table

func (d *noIngest) Link(from, to string) error {
	if d.refuses {
		return errNoIngest
	}
	return d.FS.Link(from, to)
}

// openStay is a disk on which an open file keeps its name, as on Windows.
type openStay struct {
	vfs.FS
	opened map[string]bool
}

func (d *openStay) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, opts...)
	if strings.Contains(name, scratchName) {
		d.opened[name] = true
		f = &closing{f, func() { delete(d.opened, name) }}
	}
	return f, err
}

func (d *openStay) Remove(name string) error {
	if d.opened[name] {
		return errors.New("the file is open")
	}
	return d.FS.Remove(name)
}

type closing struct {
	vfs.File
	closed func()
}

func (f *closing) Close() error { f.closed(); return f.File.Close() }

// TestScratchStays: where an open file cannot be removed, files to sort in go when they are closed, or when the store
// is opened after a crash.
func TestScratchStays(t *testing.T) {
	mem := vfs.NewMem()
	disk := &openStay{mem, map[string]bool{}}
	s := open(t, "data", []store.Table{things()}, Options{FS: disk})
	l, err := s.Load(t.Context(), store.LoadOptions{Tables: []string{"things"}})
	failtest.On(t, err)
	var files []store.Scratch
	for _, text := range []string{"one", "two"} {
		f, err := l.Scratch()
		failtest.On(t, err)
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for i, text := range []string{"one", "two"} {
		b := make([]byte, 3)
		if _, err := files[i].ReadAt(b, 0); err != nil || string(b) != text {
			t.Errorf("file %d has %q, %v", i, b, err)
		}
	}
	left := func() []string {
		all, err := mem.List("data")
		failtest.On(t, err)
		return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, scratchName) })
	}
	if err := files[0].Close(); err != nil || len(left()) != 1 {
		t.Errorf("after one of two was closed: %v, %v", left(), err)
	}
	if err := errors.Join(l.Close(), s.Close()); err != nil { // the other one is as after a crash
		t.Fatal(err)
	}
	clear(disk.opened)
	again := open(t, "data", []store.Table{things()}, Options{FS: disk})
	if len(left()) > 0 {
		t.Errorf("the next open leaves %v", left())
	}
	failtest.On(t, again.Close())
}

// TestLandCrash: wherever the power fails, windows are in the store as a whole, all that
// landed are, and what the store acknowledged before them is too.
func TestLandCrash(t *testing.T) {
	soaktest.Calm(t)
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	own := store.Table{Name: "own", Key: store.KeySchema{Partition: str("k")}}
	tables := []store.Table{things(), own}
	for seed := range seeds {
		c := newCrashes(seed, 5)
		s, err := Open("data", tables, Options{FS: c.fs(), MemTableBytes: 64 << 10, Logger: quiet})
		failtest.On(t, err)
		g := generator{rng: rand.New(rand.NewPCG(seed, 4))}
		l := loading(t, s, store.LoadOptions{})
		states, numbers := []map[string]value.Item{allRows(t, s, s.tables["things"])}, []uint64{0}
		for n := range 20 {
			// What the store itself writes before a window is there if the window is.
			note := store.Write{Ref: store.Ref{Table: "own", Key: store.Key{Partition: val("n")}}, Put: item("k", "n", "n", n+1)}
			if n%2 == 1 {
				do(t, s, note)
			}
			for range 1 + g.rng.IntN(60) {
				if _, err := l.Write(context.Background(), []store.Write{g.write()}); err != nil {
					t.Fatal(err)
				}
			}
			mark := put("mark", "mark", "n", n+1)
			if _, err := l.Write(context.Background(), []store.Write{mark}); err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, l.(*load).last)
			land(t, l)
			states = append(states, allRows(t, s, s.tables["things"]))
			c.promise.Store(int64(n + 1))
			c.between(fmt.Sprint("after window ", n+1))
		}
		failtest.On(t, s.Close())
		t.Logf("%d crashes", len(c.disks))
		for _, disk := range c.disks {
			checkLanded(t, disk, tables, states, numbers)
		}
	}
}

func checkLanded(t *testing.T, c crash, tables []store.Table, states []map[string]value.Item, numbers []uint64) {
	t.Helper()
	s, err := Open("data", tables, Options{FS: c.disk, Logger: quiet})
	if err != nil {
		t.Fatalf("%s: %v", c.at, err)
	}
	defer s.Close()
	rows := allRows(t, s, s.tables["things"])
	n, _ := get(t, s, "mark", "mark").Get("n").Int64()
	if n < c.promise || int(n) >= len(states) {
		t.Fatalf("%s: %d windows, %d were promised", c.at, n, c.promise)
	}
	if given := s.numbers.given(); given < numbers[n] {
		t.Fatalf("%s: after window %d, numbers go on behind %d, and rows may have %d", c.at, n, given, numbers[n])
	}
	for id, row := range states[n] {
		if !value.EqualItems(row, rows[id]) {
			t.Fatalf("%s: after window %d, row %x is %s, not %s", c.at, n, id, show(rows[id]), show(row))
		}
	}
	if len(rows) != len(states[n]) {
		t.Fatalf("%s: after window %d, %d rows, not %d", c.at, n, len(rows), len(states[n]))
	}
	verifyIndexes(t, s, s.tables["things"], rows)
	noted, err := s.Get(context.Background(), []store.Ref{{Table: "own", Key: store.Key{Partition: val("n")}}})
	failtest.On(t, err)
	if has, _ := noted[0].Get("n").Int64(); has < n&^1 {
		t.Fatalf("%s: %d was written before window %d, and %d is there", c.at, n, n, has)
	}
	if is, err := s.Identity(context.Background(), "things"); err != nil || n > 0 && is.Whole {
		t.Fatalf("%s: the stream is whole after %d windows: %v", c.at, n, err)
	}
	if names, err := c.disk.List("data"); err != nil || slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, landing) || strings.HasPrefix(name, scratchName)
	}) {
		t.Fatalf("%s: a table that did not land is left: %v", c.at, err)
	}
}
