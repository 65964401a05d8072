package embedded

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// TestRowCache: the cache returns the current row or nothing, stays within its memory,
// and knows what it holds. A reader that was overtaken by a writer fills in nothing.
// All rows are in one part, with two counts of changes.
func TestRowCache(t *testing.T) {
	grewOld := 0
	rapid.Check(t, func(t *rapid.T) {
		c := rowCache{room: 10_000}
		c.keys.allocate(64)
		c.keys.whole.Store(true)
		hash := func(key string) uint64 {
			var h uint64
			for _, b := range []byte(key) {
				h = h<<8 | uint64(b)
			}
			return h | uint64(key[0]&1)<<40
		}
		rows := map[string]value.Item{} // in the store
		started := map[string]uint64{}
		read := map[string]value.Item{}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.StringMatching(`[a-d]{1,2}`).Draw(t, "key")
			h, k := hash(key), []byte(key)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0: // a commit whose outcome is unknown
				c.beginChange(h, k)
				if rapid.Bool().Draw(t, "committed") {
					rows[key] = value.Item{}
				}
				c.drop(h, k)
				c.endChange(h)
			case 1:
				if _, _, found, since := c.get(h, k); !found {
					started[key], read[key] = since, rows[key]
				}
			case 2:
				if since, ok := started[key]; ok {
					c.fillRow(h, k, stored(read[key]), since)
				}
			default:
				row := value.Item{}
				if n := rapid.IntRange(-1, 1500).Draw(t, "row"); n >= 0 {
					row = row.With(value.Attr{Name: "a", Value: value.OfString(strings.Repeat(string(rune('A'+step%50)), n))})
				} else {
					row = nil
				}
				c.beginChange(h, k)
				c.putRow(h, k, stored(row))
				c.endChange(h)
				rows[key] = row
			}
			p := &c.parts[0]
			asked := rapid.StringMatching(`[a-d]{1,2}`).Draw(t, "asked") // all would never let one grow old
			if _, old := p.old[asked]; old {
				grewOld++
			}
			if _, got, found, _ := c.get(hash(asked), []byte(asked)); found && ((got == nil) != (rows[asked] == nil) || !value.EqualItems(got, rows[asked])) {
				t.Fatalf("%s: %v, want %v", asked, got, rows[asked])
			}
			if n := taken(p); n > c.room {
				t.Fatalf("rows take %d bytes, there is room for %d", n, c.room)
			}
		}
	})
	if grewOld == 0 && !testing.Short() { // in few runs it may not happen
		t.Error("no row that was asked for was ever in the old buffer")
	}
}

// taken is about how much memory a part has for rows.
func taken(p *cachePart) int {
	n := 0
	for _, rows := range []map[string][]byte{p.young, p.old} {
		for key, row := range rows {
			n += cachedBytes + len(key) + len(row)
		}
	}
	return n
}

func stored(row value.Item) []byte {
	if row == nil {
		return nil
	}
	return value.AppendItem(nil, row)
}

func TestRowCacheKnowsWhatIsGone(t *testing.T) {
	c := rowCache{room: 1500}
	key := []byte("k")
	c.putRow(0, key, stored(value.Item{}))
	c.putRow(0, key, nil)
	if _, row, found, _ := c.get(0, key); !found || row != nil {
		t.Errorf("a deleted row is %v, known %v", row, found)
	}
	c.putRow(0, key, stored(value.Item{}))
	c.putRow(0, key, make([]byte, 900))
	if _, _, found, _ := c.get(0, key); found {
		t.Error("the row before a large one is cached")
	}
}

// TestCommitShowsAtOnce: a reader that sees one row of a transaction as the transaction
// left it sees the other rows so, too, even before the cache has them.
func TestCommitShowsAtOnce(t *testing.T) {
	tables := []store.Table{{Name: "t", Key: store.KeySchema{Partition: store.KeyAttr{Name: "k", Type: value.String}}}}
	s := open(t, "db", tables, Options{FS: vfs.NewMem()})
	ref := func(key string) store.Ref {
		return store.Ref{Table: "t", Key: store.Key{Partition: value.OfString(key)}}
	}
	set := func(key string, n int64) store.Write {
		return store.Write{Ref: ref(key), Ops: []store.Op{{Kind: store.Set, Attr: "n", Value: value.OfInt(n)}}}
	}
	read := func(key string) string {
		rows, err := s.Get(t.Context(), []store.Ref{ref(key)})
		failtest.On(t, err)
		return rows[0].Get("n").Text()
	}
	failtest.On(t, s.Transact(t.Context(), []store.Write{set("a", 1), set("b", 1)}))
	ws := []store.Write{set("a", 2), set("b", 2)}
	b := newBatch(s, len(ws))
	for i := range ws {
		failtest.On(t, b.addWrite(&ws[i]))
	}
	failtest.On(t, b.lockAndRead(false))
	for i := range ws {
		b.applyStep(i, &store.Outcome{})
	}
	if a, b := read("a"), read("b"); a != "1" || b != "1" {
		t.Errorf("before the commit they are %s and %s", a, b)
	}
	failtest.On(t, b.commitSteps())
	// The cache may forget a row at any time.
	for _, sl := range b.slots[:1] {
		s.cache.drop(sl.hash, sl.key)
	}
	for range 2 {
		if a, b := read("a"), read("b"); a != "2" || b != "2" {
			t.Errorf("after the commit they are %s and %s", a, b)
		}
	}
	b.unlockRows()
	b.releaseMemory()
	if a, b := read("a"), read("b"); a != "2" || b != "2" {
		t.Errorf("at the end they are %s and %s", a, b)
	}
	for i := range s.cache.parts {
		for _, n := range s.cache.parts[i].counts {
			if n.commits != 0 {
				t.Errorf("%d commits are under way", n.commits)
			}
		}
	}
}

// TestRowCacheUnderWay: from before its commit on, a row is read from the store, and a
// reader that read its old state there does not fill the cache with it.
func TestRowCacheUnderWay(t *testing.T) {
	c := rowCache{room: 2000}
	key, was := []byte("k"), value.Item{}
	c.putRow(0, key, stored(was))
	c.beginChange(0, key)
	for range 2 {
		_, _, found, since := c.get(0, key)
		if found {
			t.Fatal("a row is cached whose commit is under way")
		}
		c.fillRow(0, key, stored(was), since)
	}
	c.putRow(0, key, nil)
	c.endChange(0)
	if _, row, found, _ := c.get(0, key); !found || row != nil {
		t.Errorf("after its commit it is %v, known %v", row, found)
	}
}

// TestOldUnderWay is TestRowCacheUnderWay for a row in the old buffer, and for one that
// gets there meanwhile.
func TestOldUnderWay(t *testing.T) {
	c := rowCache{room: 2000}
	p, key, row := &c.parts[0], []byte("k"), stored(value.Item{})
	known := func() bool {
		_, _, found, _ := c.get(0, key)
		return found
	}
	push := func() {
		for i := uint64(1); ; i++ {
			if _, young := p.young[string(key)]; !young {
				return
			}
			c.putRow(i<<40, []byte{byte(i)}, row)
		}
	}
	c.putRow(0, key, row)
	push()
	if !known() {
		t.Fatal("a row that others drove out of the young buffer was to be in the old one")
	}
	push()
	c.beginChange(0, key)
	if known() {
		t.Error("a row is in the old buffer whose commit is under way")
	}
	c.putRow(0, key, row)
	c.endChange(0)
	c.beginChange(0, key)
	push()
	if known() {
		t.Error("a row has grown old while its commit was under way, and is known")
	}
}

// TestRowCacheRoom: the cache has the rows that were put last, as many as fill half of
// its memory, and never uses more than its memory, however the sizes of rows change. A
// row that is read stays.
func TestRowCacheRoom(t *testing.T) {
	const rows = 1000
	c := rowCache{room: 10_000}
	p := &c.parts[0]
	key := func(i int) []byte { return fmt.Append(nil, "key", i) }
	for phase, size := range []int{100, 0, 1000, 0, 300, 100} {
		first := phase * rows
		row := func(i int) []byte {
			if size == 0 {
				return nil
			}
			return stored(value.NewItem(value.Attr{Name: "a", Value: value.OfString(fmt.Sprintf("%0*d", size, i))}))
		}
		has := func(i int) bool {
			got, known := p.young[string(key(i))]
			if !known {
				got, known = p.old[string(key(i))]
			}
			if known && string(got) != string(row(i)) {
				t.Fatalf("row %d is %q", i, got)
			}
			return known
		}
		for i := first; i < first+rows; i++ {
			c.putRow(uint64(i), key(i), row(i))
			if got, _, found, _ := c.get(uint64(first), key(first)); !found || string(got) != string(row(first)) {
				t.Fatalf("row %d is forgotten after %d others, and was asked for after each", first, i-first)
			}
			if n := taken(p); n > c.room {
				t.Fatalf("rows of %d bytes take %d bytes, there is room for %d", size, n, c.room)
			}
		}
		kept := 0
		for i := first; i < first+rows; i++ {
			if has(i) {
				kept++
			} else if kept > 1 {
				t.Errorf("row %d is forgotten, an older one is not", i)
			}
		}
		n := len(key(first)) + len(row(first))
		if kept < c.room/2/(cachedBytes+n) || kept > c.room/n {
			t.Errorf("%d rows of %d bytes in %d", kept, n, c.room)
		}
	}
}

// TestRowCacheKeeps: a row that is dropped, too large or asked for by another key is
// not found; a row that is put again takes no more memory; a returned row does not
// change.
func TestRowCacheKeeps(t *testing.T) {
	const rows = 100
	c := rowCache{room: 10_000}
	p := &c.parts[0]
	key := func(i int) []byte { return fmt.Append(nil, "key", i) }
	row := func(i int) []byte {
		return stored(value.NewItem(value.Attr{Name: "a", Value: value.OfString(fmt.Sprintf("%0100d", i))}))
	}
	has := func(i int) bool {
		got, _, found, _ := c.get(uint64(i), key(i))
		if found && string(got) != string(row(i)) {
			t.Fatalf("row %d is %q", i, got)
		}
		return found
	}
	for i := range rows {
		c.putRow(uint64(i), key(i), row(i))
	}
	if c.drop(rows-1, key(rows-1)); has(rows - 1) {
		t.Error("a row was dropped and is there")
	}
	if _, _, found, _ := c.get(rows-2, []byte("another key")); found {
		t.Error("a row for a key whose hash alone is that row's")
	}
	c.putRow(rows, key(rows), make([]byte, c.room/4))
	if has(rows) || !has(rows-2) {
		t.Error("a row that takes a quarter of the room drove others out")
	}
	used := p.bytes
	for _, again := range [][]byte{row(rows - 2), nil, row(rows - 3)[:50], row(rows - 2)} {
		c.beginChange(rows-2, key(rows-2))
		c.putRow(rows-2, key(rows-2), again)
		c.endChange(rows - 2)
		if p.bytes > used || p.bytes != taken(&cachePart{young: p.young}) {
			t.Errorf("a row that was put again with %d bytes takes its room twice", len(again))
		}
	}
	got, _, _, _ := c.get(rows-2, key(rows-2))
	for i := range rows {
		c.putRow(uint64(2*rows+i), key(2*rows+i), row(2*rows+i))
	}
	if string(got) != string(row(rows-2)) {
		t.Errorf("what it gave out has changed to %q", got)
	}
}
