package system_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/sample"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

var builtIn = []string{"gallery", "wardrobe", "watchlists", "viewing", "movienight", "../sim/testdata/shops.yaml", "../sim/testdata/rooms.yaml"}

func embeddedStore(t *testing.T, tables []store.Table) store.Store {
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: now, Shards: 1})
	failtest.On(t, err)
	return db
}

// sampled is a system with the sample rows of a model, and what is derived from them.
func sampled(t *testing.T, name string, open func(*testing.T, []store.Table) store.Store) *system.System {
	t.Helper()
	m, err := model.Load(name)
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	db := open(t, tables)
	systemtest.Made(t, db, m)
	s, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{NoSearch: true})
	failtest.On(t, err)
	w := &ingest.Writer{Model: m, Store: s.Store, Again: true, Brief: true}
	for _, r := range w.Do(t.Context(), sample.Commands(m, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	failtest.On(t, catchUp(t.Context(), s))
	verifyNothing(t, s)
	return s
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
	return scan(t, db, store.Query{Table: table})
}
