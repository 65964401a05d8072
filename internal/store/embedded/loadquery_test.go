package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// notes is a table without a stream, with a sort key.
func notes() store.Table {
	return store.Table{Name: "notes", Key: store.KeySchema{Partition: str("k"), Sort: str("s")}}
}

func noteKey(k, s string) store.Key { return store.Key{Partition: val(k), Sort: val(s)} }

// TestLoadQuery: pages of partitions are what a store gives that has the same rows, whether these are
// in the store below, changed since, new, or gone, and over several windows.
func TestLoadQuery(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		plain := open(t, "plain", []store.Table{things(), notes()}, Options{FS: vfs.NewMem()})
		s := open(t, "loaded", []store.Table{things(), notes()}, Options{FS: vfs.NewMem()})
		l := loading(t, s, store.LoadOptions{})
		t.Cleanup(func() { l.Close() })
		name := func() string { return fmt.Sprint("s", r.IntN(60)) }
		met := 0
		for range 400 {
			switch r.IntN(12) {
			case 0, 1, 2, 3, 4, 5:
				w := store.Write{Ref: store.Ref{Table: "notes", Key: noteKey(fmt.Sprint("k", r.IntN(3)), name())}}
				if r.IntN(3) == 0 {
					w.Delete = true
				} else {
					w.Ops = []store.Op{{Kind: store.Add, Attr: "n", Value: val(1)}}
				}
				for _, on := range []store.Store{plain, l} {
					if out, err := on.Write(t.Context(), []store.Write{w}); err != nil || out[0].Err != nil {
						t.Fatal(out, err)
					}
				}
			case 6:
				land(t, l)
			case 7: // what is taken back is not there
				if err := l.Transact(t.Context(), []store.Write{
					{Ref: store.Ref{Table: "notes", Key: noteKey("k1", name())}, Put: nil, Delete: true},
					{Ref: store.Ref{Table: "notes", Key: noteKey("k9", "x")}, Check: true, If: store.Cond{{{Attr: "k", Is: store.Exists}}}},
				}); !errors.Is(err, store.ErrCondition) {
					t.Fatal(err)
				}
			default:
				q := store.Query{Table: "notes", Partition: val(fmt.Sprint("k", r.IntN(4))), Limit: r.IntN(5)}
				switch r.IntN(4) {
				case 0:
					q.Sort.From = val(name())
				case 1:
					q.Sort.Prefix = val(fmt.Sprint("s", r.IntN(6)))
				case 2:
					q.Sort.From, q.Sort.Below = val("s2"), val(name())
				}
				met += samePages(t, plain, l, q)
			}
		}
		if met == 0 {
			t.Error("no page had a row")
		}
	}
}

// samePages reads all pages of a query from both stores, and returns how many rows these have.
func samePages(t *testing.T, a, b store.Store, q store.Query) (rows int) {
	t.Helper()
	for {
		want, err := a.Query(t.Context(), q)
		got, err2 := b.Query(t.Context(), q)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if len(want.Rows) != len(got.Rows) || (want.Next == nil) != (got.Next == nil) {
			t.Fatalf("%+v: %d rows, more %v; loading: %d, more %v", q, len(want.Rows), want.Next != nil, len(got.Rows), got.Next != nil)
		}
		for i := range want.Rows {
			if rows++; !value.EqualItems(want.Rows[i], got.Rows[i]) {
				t.Fatalf("%+v: row %d is %s, loading %s", q, i, show(want.Rows[i]), show(got.Rows[i]))
			}
		}
		if want.Next == nil {
			return rows
		}
		if a, b := want.Next.Key, got.Next.Key; !value.Equal(a.Partition, b.Partition) || !value.Equal(a.Sort, b.Sort) {
			t.Fatalf("%+v: next is %v, loading %v", q, want.Next.Key, got.Next.Key)
		}
		q.After = want.Next
	}
}

// TestLandedNumbers: once a window has landed, neither the stream nor a Load gives one of its numbers
// again, also after the store was opened again; numbers that nothing landed with may come again. A
// directory with such numbers has the format that older programs refuse, one without has not.
func TestLandedNumbers(t *testing.T) {
	disk := vfs.NewMem()
	tables := []store.Table{things(), notes()}
	s := open(t, "data", tables, Options{FS: disk})
	var last events.Position
	next := func(what string, at events.Position) {
		t.Helper()
		if at.Compare(last) <= 0 {
			t.Errorf("%s: %v comes after %v", what, at, last)
		}
		last = at
	}
	taken := func(l store.Load, what string) {
		t.Helper()
		for _, r := range l.Take() {
			next(what, r.Position)
		}
	}
	load := func(l store.Load, name string) {
		t.Helper()
		if out, err := l.Write(t.Context(), []store.Write{put(name, "a", "n", 1), put(name, "b", "n", 1), put(name, "a", "n", 2)}); err != nil || out[2].Err != nil {
			t.Fatal(out, err)
		}
	}
	l := loading(t, s, store.LoadOptions{})
	load(l, "first")
	taken(l, "the first window")
	land(t, l)
	load(l, "second")
	taken(l, "the second window")
	land(t, l)
	load(l, "lost")
	failtest.On(t, errors.Join(l.Close(), s.Close()))
	s = open(t, "data", tables, Options{FS: disk})
	l = loading(t, s, store.LoadOptions{})
	load(l, "third")
	taken(l, "a Load of the store that was opened again")
	land(t, l)
	failtest.On(t, l.Close())
	if at := s.Tip(); at.Seen.Compare(last) < 0 || at.Given.Compare(last) < 0 {
		t.Errorf("the tip is %v and %v, behind %v", at.Seen, at.Given, last)
	}
	do(t, s, put("live", "a", "n", 1))
	for _, r := range allRecords(t, s, "things") {
		next("the stream", r.Position)
	}
}
