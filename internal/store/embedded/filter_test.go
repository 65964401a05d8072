package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/store"
	"weir/internal/value"
)

// TestKeyFilter: a key that was added may have a row, and of those that were not most have
// none; it says so only when it has all keys.
func TestKeyFilter(t *testing.T) {
	const keys = 8 << 10
	var f keyFilter
	f.size(keys * bitsPerKey / 8)
	hash := func(i int) uint64 { return uint64(i+1) * 0xd1342543de82ef95 }
	for i := range keys {
		f.add(hash(i))
	}
	if !f.mayHave(hash(keys)) || !f.mayHave(hash(2*keys)) {
		t.Error("it knows of keys before it has all")
	}
	f.whole.Store(true)
	passed := 0
	for i := range 2 * keys {
		switch may := f.mayHave(hash(i)); {
		case i < keys && !may:
			t.Fatalf("key %d was added and has no row", i)
		case i >= keys && may:
			passed++
		}
	}
	if passed > keys/4 {
		t.Errorf("of %d keys without a row %d pass, with as many keys as it is filled with", keys, passed)
	}
}

// TestLearnKeys: a new store knows all its keys; one that was opened again learns those it
// had when much is written, also rows written before, meanwhile and after, unless there are
// too many.
func TestLearnKeys(t *testing.T) {
	fs, tables := vfs.NewMem(), []store.Table{{Name: "t", Key: store.KeySchema{Partition: store.KeyAttr{Name: "k", Type: value.Number}}}}
	ref := func(i int) store.Ref {
		return store.Ref{Table: "t", Key: store.Key{Partition: value.OfInt(int64(i))}}
	}
	opened := func() *Store {
		s, err := Open("db", tables, Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write := func(s *Store, from, to int) {
		t.Helper()
		var ws []store.Write
		for i := from; i < to; i++ {
			ws = append(ws, store.Write{Ref: ref(i), Ops: []store.Op{{Kind: store.Set, Attr: "n", Value: value.OfInt(int64(i))}}})
		}
		if _, err := s.Write(t.Context(), ws); err != nil {
			t.Fatal(err)
		}
	}
	check := func(s *Store, rows int) {
		t.Helper()
		for i := range rows + 100 {
			got, err := s.Get(t.Context(), []store.Ref{ref(i)})
			if err != nil {
				t.Fatal(err)
			}
			if (got[0] != nil) != (i < rows) {
				t.Fatalf("of %d rows, row %d is %v", rows, i, got[0])
			}
		}
	}
	const before = 3000
	s := opened()
	if !s.cache.keys.whole.Load() {
		t.Error("a new store does not know that it is empty")
	}
	check(s, 0)
	write(s, 0, before)
	check(s, before)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = opened()
	if s.cache.keys.whole.Load() {
		t.Error("a store with rows knows their keys before it has looked")
	}
	check(s, before)
	if err := s.addKeys(before - 1); err != nil || s.cache.keys.whole.Load() {
		t.Errorf("it takes on more keys than it was told (%v)", err)
	}
	rows := before
	for rows < before+learnAfter {
		write(s, rows, rows+1000)
		rows += 1000
	}
	s.beside.Wait()
	if !s.cache.keys.whole.Load() {
		t.Error("it has written much and not learned its keys")
	}
	s.cache.clear()
	check(s, rows)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = opened() // closed while it learns
	s.learnKeys(learnAfter)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
