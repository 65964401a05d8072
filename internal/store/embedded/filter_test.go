package embedded

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// TestKeyFilter: a key that was added may have a row, and of those that were not most have
// none; it says so only when it has all keys.
func TestKeyFilter(t *testing.T) {
	const keys = 8 << 10
	var f keyFilter
	f.allocate(keys * bitsPerKey / 8)
	hash := func(i int) uint64 { return uint64(i+1) * 0xd1342543de82ef95 }
	for i := range keys {
		f.addKey(hash(i))
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
	if passed > keys/10 {
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
		failtest.On(t, err)
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
			failtest.On(t, err)
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
	failtest.On(t, s.Close())

	s = opened()
	if s.cache.keys.whole.Load() {
		t.Error("a store with rows knows their keys before it has looked")
	}
	check(s, before)
	if s.addKeys(before - 1); s.cache.keys.whole.Load() {
		t.Error("it takes on more keys than it was told")
	}
	rows := before
	for rows < before+learnAfter {
		write(s, rows, rows+1000)
		rows += 1000
	}
	for range 200 { // while it learns, and after
		write(s, rows, rows+1)
		rows++
	}
	s.beside.Wait()
	if !s.cache.keys.whole.Load() {
		t.Error("it has written much and not learned its keys")
	}
	write(s, rows, rows+100)
	rows += 100
	s.cache.clear()
	check(s, rows)
	failtest.On(t, s.Close())

	s = opened() // closed while it learns
	s.learnKeys(learnAfter)
	failtest.On(t, s.Close())
}

// TestSmallCache: whatever the size of the cache, every reader sees everything that was
// written and acknowledged before, also while rows are packed and unpacked and the keys
// are learned.
func TestSmallCache(t *testing.T) {
	soaktest.Calm(t)
	rooms := []int64{1, 100, 3 << 10, 64 << 10, 384 << 10}
	if testing.Short() {
		rooms = []int64{100, 64 << 10}
	}
	for _, room := range rooms {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			const keys, writers, rounds = 400, 4, 40
			fs, tables := vfs.NewMem(), []store.Table{{Name: "t", Key: store.KeySchema{Partition: store.KeyAttr{Name: "k", Type: value.Number}}}}
			s, err := Open("db", tables, Options{FS: fs, RowCacheBytes: room})
			failtest.On(t, err)
			ref := func(k int) store.Ref {
				return store.Ref{Table: "t", Key: store.Key{Partition: value.OfInt(int64(k))}}
			}
			if rows, err := s.Get(t.Context(), []store.Ref{ref(0)}); err != nil || rows[0] != nil {
				t.Fatal(rows, err)
			}
			s.cache.keys.whole.Store(false) // as if it had been opened again
			var written [keys]atomic.Int64  // by key, acknowledged
			t.Run("all", func(t *testing.T) {
				for w := range writers {
					t.Run("", func(t *testing.T) {
						t.Parallel()
						for n := range int64(rounds) {
							if w == 0 && n == rounds/4 {
								s.learnKeys(learnAfter)
							}
							for k := w; k < keys; k += writers {
								pad := make([]byte, (k*37+int(n)*11)%400)
								write := store.Write{Ref: ref(k), Ops: []store.Op{
									{Kind: store.Set, Attr: "n", Value: value.OfInt(n + 1)},
									{Kind: store.Set, Attr: "pad", Value: value.OfString(string(pad))},
								}}
								if out, err := s.Write(t.Context(), []store.Write{write}); err != nil || out[0].Err != nil {
									t.Error(err, out[0].Err)
									return
								}
								written[k].Store(n + 1)
							}
						}
					})
					t.Run("", func(t *testing.T) {
						t.Parallel()
						for i := range keys * rounds / 2 {
							k := (i*i + w*7) % keys
							least := written[k].Load()
							rows, err := s.Get(t.Context(), []store.Ref{ref(k)})
							if err != nil {
								t.Error(err)
								return
							}
							have, _ := rows[0].Get("n").Int64()
							if have < least {
								t.Errorf("row %d is at %d, and was written to %d before", k, have, least)
								return
							}
						}
					})
				}
			})
			failtest.On(t, s.Close())
		})
	}
}

// clear forgets all rows, but not which keys have rows.
func (c *rowCache) clear() {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		p.young, p.old = nil, nil
		for j := range p.counts {
			p.counts[j].changes++
		}
		p.mu.Unlock()
	}
}
