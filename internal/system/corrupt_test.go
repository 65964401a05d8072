package system_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/repair"
	"weir/internal/sample"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
	"weir/internal/verify"
)

var builtIn = []string{"gallery", "wardrobe", "watchlists", "viewing", "movienight", "../sim/testdata/shops.yaml", "../sim/testdata/rooms.yaml"}

func embeddedStore(t *testing.T, tables []store.Table) store.Store {
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: now, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// sampled is a system with the sample rows of a model, and what is derived from them.
func sampled(t *testing.T, name string, open func(*testing.T, []store.Table) store.Store) *system.System {
	t.Helper()
	m, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, tables)
	systemtest.Made(t, db, m)
	s, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{NoSearch: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &ingest.Writer{Model: m, Store: s.Store, Again: true, Brief: true}
	for _, r := range w.Do(t.Context(), sample.Commands(m, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	verifyNothing(t, s)
	return s
}

// repaired wants repair to name each value that verify still finds, and no other. A value has several differences
// where its ledger was put right and a row that shows it was not; repair names the first. It returns how many there are.
func repaired(t *testing.T, s *system.System) int {
	t.Helper()
	var found []verify.Difference
	r := repair.Repair{
		Verify: s.Verify(s.Models[0]), Runner: s.Models[0].Runner, NoCounts: true, // as repair --aws does
		Passed: func(context.Context) error { return nil },
		Yield:  func(d verify.Difference) { found = append(found, d) },
	}
	left, _, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diffs, err := verifyAll(s)
	if err != nil {
		t.Fatal(err)
	}
	type derived struct{ derivation, row string }
	of := func(d verify.Difference) derived { return derived{d.Derivation, d.Row} }
	named, differing := map[derived]bool{}, map[derived]bool{}
	for _, l := range left {
		named[of(l.Difference)] = true
	}
	for _, d := range diffs {
		if differing[of(d)] = true; !named[of(d)] {
			t.Errorf("repair does not name %+v", d.Plain())
		}
		for _, f := range found {
			if f.Derivation == d.Derivation && f.Row == d.Row && f.Want == d.Want {
				t.Errorf("repair says that it put right %+v, and verify finds %+v", f.Plain(), d.Plain())
			}
		}
	}
	for v := range named {
		if !differing[v] {
			t.Errorf("repair leaves %+v, and verify finds %+v", v, diffs)
		}
	}
	return len(diffs)
}

// spoilers are what attributes are spoilt with.
var spoilers = []value.Value{
	{}, {}, value.OfNull(), value.OfBool(true), value.OfInt(0), value.OfInt(-7), value.MustNumber("1e125"), value.MustNumber("-1e-130"),
	value.OfString(""), value.OfString("x"), value.OfString("2025-13-41"), value.OfString("a\x00b"), value.OfString(strings.Repeat("k", 3000)),
	value.OfBinary("\x00\xff"), value.OfList(), value.OfList(value.OfInt(1), value.OfString("x")), value.OfMap(value.Item{}),
	value.OfMap(value.Item{{Name: "m", Value: value.OfList()}}), value.OfStrings([]string{"a", "b"}),
}

func pick[T any](d *rand.Rand, from []T) T { return from[d.IntN(len(from))] }

func allRows(t *testing.T, db store.Store, table string) (out []value.Item) {
	t.Helper()
	for q := (store.Query{Table: table}); ; {
		page, err := db.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page.Rows...)
		if q.After = page.Next; q.After == nil {
			return out
		}
	}
}

// TestRepairSaysWhatHolds: a row that comes to show its ledger is not put right where
// the ledger is wrong and is left.
func TestRepairSaysWhatHolds(t *testing.T) {
	s := sampled(t, "gallery", embeddedStore)
	defer s.Close()
	for _, sp := range []spoil{
		{table: "gallery", row: []string{"mediaCount", "EntityType=Album"}, put: setting("mediaCount", value.OfInt(99))},
		{table: "weir", row: []string{"k=ledger|gallery", "a:mediaCount"}, put: setting("a:mediaCount", value.OfInt(77))},
	} {
		for _, row := range allRows(t, s.Store, sp.table) {
			if !has(row, sp.row) {
				continue
			}
			st := owntable.Table()
			if mt := s.Models[0].Model.Table(sp.table); mt != nil {
				st = mt.Table
			}
			key, _ := st.KeyOf(row)
			writeOne(t, s.Store, store.Write{Ref: store.Ref{Table: sp.table, Key: key}, Put: sp.put(row)})
		}
	}
	lose(t, s)
	if repaired(t, s) == 0 {
		t.Error("nothing is left")
	}
}

func has(row value.Item, names []string) bool {
	for _, n := range names {
		name, begins, _ := strings.Cut(n, "=")
		if v := row.Get(name); v.IsMissing() || !strings.HasPrefix(value.Scalar(v), begins) {
			return false
		}
	}
	return true
}
