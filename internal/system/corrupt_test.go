package system_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/repair"
	"weir/internal/sample"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
	"weir/internal/verify"
)

var builtIn = []string{"gallery", "wardrobe", "watchlists", "viewing", "movienight", "../sim/testdata/shops.yaml", "../sim/testdata/rooms.yaml"}

// TestCorrupted: whatever a row is spoilt with, what repair says it put right a later
// verification does not find, and what that finds is what repair left.
func TestCorrupted(t *testing.T) {
	times := soaktest.Count(100, 200) // in a few models only one in ten changes a derived value
	for _, name := range builtIn {
		t.Run(path.Base(name), func(t *testing.T) {
			t.Parallel()
			c := &corruption{name: name, open: embeddedStore, d: newRand(12)}
			if c.run(t, times); c.said == 0 {
				t.Error("nothing was put right")
			}
			c = &corruption{name: name, open: embeddedStore, noCounts: true, d: newRand(13)}
			c.run(t, times/4)
		})
	}
}

// TestCorruptedOnDynamoDB spoils 140 rows, in short 35, or as many as WEIR_CORRUPTIONS says.
func TestCorruptedOnDynamoDB(t *testing.T) {
	t.Parallel()
	dynamodbtest.Config(t)
	var said atomic.Int64 // of few rows of a model, repair may say nothing
	t.Cleanup(func() {
		if said.Load() == 0 {
			t.Error("nothing was put right")
		}
	})
	times := soaktest.Count(5, 20) * len(builtIn)
	if s := os.Getenv("WEIR_CORRUPTIONS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < len(builtIn) {
			t.Fatalf("WEIR_CORRUPTIONS is %q, and must be a number of at least %d", s, len(builtIn))
		}
		times = n
	}
	for _, name := range builtIn {
		t.Run(path.Base(name), func(t *testing.T) {
			t.Parallel()
			c := &corruption{name: name, open: dynamoStore, dynamo: true, noCounts: true, d: newRand(12)}
			c.run(t, times/len(builtIn))
			said.Add(int64(c.said))
		})
	}
}

func embeddedStore(t *testing.T, tables []store.Table) store.Store {
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: now, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func dynamoStore(t *testing.T, tables []store.Table) store.Store {
	return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
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

// corruption spoils rows at random, and repairs them.
type corruption struct {
	name     string
	open     func(*testing.T, []store.Table) store.Store
	dynamo   bool
	noCounts bool // as repair --aws does
	d        *rand.Rand
	s        *system.System
	said     int // values that repair said it put right
	fresh    int // systems of which something was left
}

func (c *corruption) run(t *testing.T, times int) {
	for i := range times {
		if c.s == nil {
			c.s = sampled(t, c.name, c.open)
			c.fresh++
		}
		what := c.spoil(t)
		if !c.dynamo {
			lose(t, c.s)
		}
		found, left := c.repair(t, what)
		diffs, err := verifyAll(c.s)
		if err != nil {
			t.Fatalf("%d, %s: verify: %v", i, what, err)
		}
		c.compare(t, fmt.Sprintf("%d, %s", i, what), found, left, diffs)
		if c.said += len(found); len(diffs) > 0 { // what is left stays out of the next one
			if !c.dynamo {
				c.s.Close()
			}
			c.s = nil
		}
	}
	t.Logf("%d values put right, %d systems", c.said, c.fresh)
}

func (c *corruption) repair(t *testing.T, what string) (found []verify.Difference, left []repair.Left) {
	r := repair.Repair{
		Verify: c.s.Verify(c.s.Models[0]), Runner: c.s.Models[0].Runner, NoCounts: c.noCounts,
		Passed: func(context.Context) error { return nil },
		Yield:  func(d verify.Difference) { found = append(found, d) },
	}
	left, _, err := r.Run(t.Context())
	if err != nil {
		t.Fatalf("%s: repair: %v", what, err)
	}
	return found, left
}

// compare wants repair to have named each value that verify still finds, and no other. A value has several differences
// where its ledger was put right and a row that shows it was not; repair names the first.
func (c *corruption) compare(t *testing.T, what string, found []verify.Difference, left []repair.Left, diffs []verify.Difference) {
	t.Helper()
	type derived struct{ derivation, row string }
	of := func(d verify.Difference) derived { return derived{d.Derivation, d.Row} }
	named, differing := map[derived]bool{}, map[derived]bool{}
	for _, l := range left {
		named[of(l.Difference)] = true
	}
	for _, d := range diffs {
		if differing[of(d)] = true; !named[of(d)] {
			t.Errorf("%s: repair does not name %+v", what, d.Plain())
		}
		for _, f := range found {
			if f.Derivation == d.Derivation && f.Row == d.Row && f.Want == d.Want {
				t.Errorf("%s: repair says that it put right %+v, and verify finds %+v", what, f.Plain(), d.Plain())
			}
		}
	}
	for v := range named {
		if !differing[v] {
			t.Errorf("%s: repair leaves %+v, and verify finds %+v", what, v, diffs)
		}
	}
}

// spoil changes or removes a row that is there.
func (c *corruption) spoil(t *testing.T) string {
	m := c.s.Models[0].Model
	tables := []string{owntable.TableName, owntable.TableName}
	for _, mt := range m.Tables {
		tables = append(tables, mt.Name)
	}
	for {
		table := pick(c.d, tables)
		rows := slices.DeleteFunc(allRows(t, c.s.Store, table), func(row value.Item) bool { // rows of no derivation
			return table == owntable.TableName && !strings.Contains(row.Get(owntable.Partition).Text(), "|"+m.Name+"|")
		})
		if len(rows) == 0 {
			continue
		}
		row := pick(c.d, rows)
		st := owntable.Table()
		if mt := m.Table(table); mt != nil {
			st = mt.Table
		}
		key, _ := st.KeyOf(row)
		w := store.Write{Ref: store.Ref{Table: table, Key: key}}
		what := "removed " + w.Ref.String()
		if w.Delete = c.d.IntN(4) == 0; !w.Delete {
			a := pick(c.d, row)
			if a.Name == st.Key.Partition.Name || a.Name == st.Key.Sort.Name {
				continue
			}
			v := pick(c.d, spoilers)
			w.Ops = []store.Op{{Kind: store.Set, Attr: a.Name, Value: v}}
			if v.IsMissing() {
				w.Ops[0].Kind = store.Remove
			}
			what = fmt.Sprintf("%s: %s = %s", w.Ref, a.Name, value.AppendPlain(nil, v))
		}
		out, err := c.s.Store.Write(t.Context(), []store.Write{w})
		if err != nil {
			t.Fatal(err)
		}
		if out[0].Err == nil {
			return what
		}
	}
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
	c := &corruption{name: "gallery", open: embeddedStore, noCounts: true}
	c.s = sampled(t, c.name, c.open)
	defer c.s.Close()
	for _, sp := range []spoil{
		{table: "gallery", row: []string{"mediaCount", "EntityType=Album"}, put: setting("mediaCount", value.OfInt(99))},
		{table: "weir", row: []string{"k=ledger|gallery", "a:mediaCount"}, put: setting("a:mediaCount", value.OfInt(77))},
	} {
		for _, row := range allRows(t, c.s.Store, sp.table) {
			if !has(row, sp.row) {
				continue
			}
			st := owntable.Table()
			if mt := c.s.Models[0].Model.Table(sp.table); mt != nil {
				st = mt.Table
			}
			key, _ := st.KeyOf(row)
			writeOne(t, c.s.Store, store.Write{Ref: store.Ref{Table: sp.table, Key: key}, Put: sp.put(row)})
		}
	}
	lose(t, c.s)
	found, left := c.repair(t, "ledgers and what shows them")
	diffs, err := verifyAll(c.s)
	if err != nil || len(diffs) == 0 {
		t.Fatal(diffs, err)
	}
	c.compare(t, "ledgers and what shows them", found, left, diffs)
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
