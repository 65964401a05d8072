package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// scripted tells records of the shop one after the other.
type scripted struct {
	at   uint64
	rows map[string]value.Item
	all  []events.Entry
}

// put is the record of a write of a row of the shop's table, or of its removal without attributes.
func (s *scripted) put(pk, sk string, attrs ...string) {
	if s.rows == nil {
		s.rows = map[string]value.Item{}
	}
	keys := value.NewItem(value.Attr{Name: "PK", Value: value.OfString(pk)}, value.Attr{Name: "SK", Value: value.OfString(sk)})
	var row value.Item
	if len(attrs) > 0 {
		row = keys
		for i := 0; i < len(attrs); i += 2 {
			row = row.With(value.Attr{Name: attrs[i], Value: value.OfString(attrs[i+1])})
		}
	}
	s.at++
	s.all = append(s.all, events.Entry{
		Record: events.Record{
			Table: "shop", Keys: keys, Old: s.rows[pk+sk], New: row, Position: events.PositionOf(s.at), Time: time.Unix(1_700_000_000+int64(s.at), 0).UTC(),
		},
		Location: events.Location{File: "scripted", Line: int64(s.at), Offset: int64(s.at)},
	})
	s.rows[pk+sk] = row
}

// both replays batches live and in bulk, and compares.
func both(t *testing.T, text, what string, batches ...[]events.Entry) *bulkWorld {
	t.Helper()
	m, err := model.Parse("shop.yaml", []byte(text))
	failtest.On(t, err)
	live, one := newBulkWorld(t, m), newBulkWorld(t, m)
	want := live.live(copied(batches))
	sameRows(t, what, live, one, want, one.bulk(copied(batches), 1<<30))
	if one.bulks != 1 {
		t.Errorf("%s: it was not done in bulk", what)
	}
	return one
}

// TestManyValues: a target gets more amounts in one window than one write of its ledger takes.
func TestManyValues(t *testing.T) {
	soaktest.Calm(t)
	var s scripted
	s.put("B#b", "META", "kind", "branch")
	for i := range 700 {
		s.put("B#b", fmt.Sprint("G#", i), "kind", "gift", "city", fmt.Sprint("c", i))
	}
	both(t, flat+"  Branch.givers: {distinct: Gift.city, to: {branch: branch}, max: 900}\n", "700 values", s.all)
}

// TestComesBack: a row that is removed and comes again in one window counts once, shows what
// counts for it, and keeps the mark of its removal.
func TestComesBack(t *testing.T) {
	var s scripted
	s.put("B#b", "META", "kind", "branch", "city", "c")
	s.put("B#b", "O#o", "kind", "order", "city", "c")
	first := len(s.all)
	s.put("B#b", "O#o")
	s.put("B#b", "META")
	s.put("B#b", "O#p", "kind", "order", "city", "d")
	s.put("B#b", "O#o", "kind", "order", "city", "d")
	s.put("B#b", "META", "kind", "branch", "city", "d")
	w := both(t, flat, "at once", s.all)
	w.bulk([][]events.Entry{s.all[:first+2]}, 1<<30) // older records again
	w.verified()

	m, err := model.Parse("shop.yaml", []byte(flat))
	failtest.On(t, err)
	w = newBulkWorld(t, m)
	w.bulk([][]events.Entry{s.all[:first]}, 1<<30)
	w.bulk([][]events.Entry{s.all[first:]}, 1<<30)
	w.verified()
	row, err := store.GetRow(context.Background(), w.sys.Store, store.Ref{Table: "shop", Key: store.Key{Partition: value.OfString("B#b"), Sort: value.OfString("META")}})
	failtest.On(t, err)
	if n := row.Get("orders").Text(); n != "2" {
		t.Errorf("the branch shows %q orders, not 2", n)
	}
}

// TestAmongBad: a batch with an entry that cannot be used sees what came before it in the window,
// and what comes behind it sees the batch.
func TestAmongBad(t *testing.T) {
	var s scripted
	s.put("B#b", "META", "kind", "branch", "city", "c")
	s.put("B#b", "O#o", "kind", "order", "city", "c")
	s.put("B#b", "O#o", "kind", "order", "city", "d")
	s.put("B#b", "O#o", "kind", "order", "city", "e")
	s.put("B#b", "O#p", "kind", "order", "city", "e")
	torn := s.all[2]
	torn.Bad = &events.Bad{Err: fmt.Errorf("torn"), Raw: []byte(`{"torn`), Size: 6}
	both(t, flat, "among bad", s.all[:2], []events.Entry{torn, s.all[2]}, s.all[3:])
}

// TestAmongLarge: a batch with a row that may be too large for the store is written record by
// record. It sees what came before it, and what comes behind it sees the batch.
func TestAmongLarge(t *testing.T) {
	var s scripted
	s.put("B#b", "META", "kind", "branch", "city", "c")
	s.put("B#b", "O#o", "kind", "order", "city", "c")
	s.put("B#b", "O#o", "kind", "order", "city", "d", "note", strings.Repeat("x", 150_000))
	s.put("B#b", "O#p", "kind", "order", "city", "e", "note", strings.Repeat("x", 500_000))
	s.put("B#b", "O#o", "kind", "order", "city", "e")
	s.put("B#b", "O#q", "kind", "order", "city", "e")
	both(t, flat, "among large", s.all[:2], s.all[2:3], s.all[3:4], s.all[4:5], s.all[5:])
}

// TestUnfitBetween: a row is for a while one that a derivation cannot use. Live, that leaves a dead
// letter, so it does in bulk, though nothing of it is left in the end.
func TestUnfitBetween(t *testing.T) {
	var s scripted
	s.put("B#b", "META", "kind", "branch", "city", "c")
	s.put("B#b", "O#o", "kind", "order", "city", "c", "amount", "much")
	s.put("B#b", "O#o", "kind", "order", "city", "d")
	m, err := model.Parse("shop.yaml", []byte(flat))
	failtest.On(t, err)
	live, one := newBulkWorld(t, m), newBulkWorld(t, m)
	want := live.live(copied([][]events.Entry{s.all}))
	sameRows(t, "unfit for a while", live, one, want, one.bulk(copied([][]events.Entry{s.all}), 1<<30))
	if live.derivedLetters() == 0 {
		t.Error("there is no letter")
	}
}

// TestBecomesAnother: a row that was a target and is one of no entity keeps none of the values.
func TestBecomesAnother(t *testing.T) {
	var s scripted
	s.put("B#b", "META", "kind", "branch", "city", "c")
	s.put("B#b", "O#o", "kind", "order", "city", "c")
	first := len(s.all)
	s.put("B#b", "META", "kind", "branch", "city", "d")
	s.put("B#b", "META", "kind", "nothing")
	m, err := model.Parse("shop.yaml", []byte(flat))
	failtest.On(t, err)
	live, one := newBulkWorld(t, m), newBulkWorld(t, m)
	want := live.live(copied([][]events.Entry{s.all[:first], s.all[first:]}))
	got := one.bulk(copied([][]events.Entry{s.all[:first]}), 1<<30)
	rest := one.bulk(copied([][]events.Entry{s.all[first:]}), 1<<30)
	got.Applied += rest.Applied
	sameRows(t, "a branch becomes something else", live, one, want, got)
}

// TestLedgerOfGone: the ledger of a row that a window removes expires, if nothing counts for the
// row any more.
func TestLedgerOfGone(t *testing.T) {
	var s scripted
	s.put("B#b", "META", "kind", "branch")
	s.put("B#b", "O#o", "kind", "order")
	s.put("B#b", "O#o")
	s.put("B#b", "META")
	m, err := model.Parse("shop.yaml", []byte(flat))
	failtest.On(t, err)
	w := newBulkWorld(t, m)
	for _, window := range [][]events.Entry{s.all[:2], s.all[2:3], s.all[3:]} {
		w.bulk([][]events.Entry{window}, 1<<30)
		w.verified()
	}
}

// TestClaimFreed: a claim on a unique value is freed when a window removes its row, and stays
// while the row is there.
func TestClaimFreed(t *testing.T) {
	m, err := model.Parse("shop.yaml", []byte(flat))
	failtest.On(t, err)
	w := newBulkWorld(t, m)
	var s scripted
	s.put("B#a", "META", "kind", "branch", "mood", "x")
	s.put("B#b", "META", "kind", "branch", "mood", "y")
	w.bulk([][]events.Entry{s.all}, 1<<30)
	for _, name := range []string{"a", "b"} {
		row := store.Ref{Table: "shop", Key: store.Key{Partition: value.OfString("B#" + name), Sort: value.OfString("META")}}
		mood := map[string]string{"a": "x", "b": "y"}[name]
		var take owntable.ClaimRow
		_, err := w.sys.Store.Write(context.Background(), []store.Write{take.Take(owntable.Claim("shop", "Branch", "mood", mood), row, value.Item{}, name)})
		failtest.On(t, err)
	}
	s.put("B#a", "META")
	w.bulk([][]events.Entry{s.all[2:]}, 1<<30)
	for mood, want := range map[string]bool{"x": false, "y": true} {
		row, err := store.GetRow(context.Background(), w.sys.Store, owntable.Claim("shop", "Branch", "mood", mood))
		failtest.On(t, err)
		if there := row != nil; there != want {
			t.Errorf("the claim on %s: %v, not %v", mood, there, want)
		}
	}
}

// TestOlderBehind: an older record of a row stands behind a newer one, in what is sorted on disk at once.
func TestOlderBehind(t *testing.T) {
	var s scripted
	for round := range 60 {
		for i := range 10 {
			s.put("B#b", fmt.Sprint("O#", i), "kind", "order", "city", fmt.Sprint(round, strings.Repeat("x", 200)))
		}
	}
	s.put("B#b", "META", "kind", "branch", "city", "c")
	slices.Reverse(s.all)
	m, err := model.Parse("shop.yaml", []byte(flat))
	failtest.On(t, err)
	live, one := newBulkWorld(t, m), newBulkWorld(t, m)
	batches := [][]events.Entry{s.all}
	want := live.live(copied(batches))
	sameRows(t, "backwards", live, one, want, one.bulk(copied(batches), 128<<10))
	if one.bulks != 1 {
		t.Error("it was not done in bulk")
	}
}

// TestTargetComesLater: a row shows what a window before it has counted for it.
func TestTargetComesLater(t *testing.T) {
	var s scripted
	s.put("B#b", "O#o", "kind", "order", "city", "c")
	s.put("B#b", "O#p", "kind", "order", "city", "c")
	first := len(s.all)
	s.put("B#b", "META", "kind", "branch", "city", "c")
	m, err := model.Parse("shop.yaml", []byte(flat))
	failtest.On(t, err)
	w := newBulkWorld(t, m)
	w.bulk([][]events.Entry{s.all[:first]}, 1<<30)
	w.bulk([][]events.Entry{s.all[first:]}, 1<<30)
	w.verified()
	row, err := store.GetRow(context.Background(), w.sys.Store, store.Ref{Table: "shop", Key: store.Key{Partition: value.OfString("B#b"), Sort: value.OfString("META")}})
	failtest.On(t, err)
	if n := row.Get("orders").Text(); n != "2" {
		t.Errorf("the branch shows %q orders, not 2", n)
	}
}
