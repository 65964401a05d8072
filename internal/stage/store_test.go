package stage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/soaktest"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/store/storetest"
	"weir/internal/value"
)

// crossed are names of the suite's tables of which two have changed places, and one has
// another name.
func crossed(t *testing.T, tables []store.Table) stage.Names {
	t.Helper()
	n, err := stage.New(stage.Stage{Name: "s-1", Tables: []stage.Pair{
		{Logical: tables[0].Name, Real: tables[1].Name}, {Logical: tables[1].Name, Real: tables[0].Name}, {Logical: tables[2].Name, Real: "elsewhere"},
	}}, tables)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestContract: a store under other names keeps the contract of stores.
func TestContract(t *testing.T) {
	soaktest.Calm(t)
	storetest.Run(t, func(t *testing.T, tables []store.Table) store.Store {
		n := crossed(t, tables)
		s, err := embedded.Open("data", n.Tables(tables), embedded.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return stage.Wrap(s, n)
	})
}

// table is one with a stream and a TTL.
func table(name string) store.Table {
	return store.Table{Name: name, Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}, TTL: "expires", Stream: true}
}

func row(key, table string, expires int) value.Item {
	return value.NewItem(value.Attr{Name: "PK", Value: value.OfString(key)}, value.Attr{Name: "expires", Value: value.OfInt(int64(expires))}, value.Attr{Name: "table", Value: value.OfString(table)})
}

func ref(table, key string) store.Ref {
	return store.Ref{Table: table, Key: store.Key{Partition: value.OfString(key)}}
}

// open opens a store of the tables AAA and BBB, which have changed places.
func open(t *testing.T) (inner, outer store.Store, n stage.Names) {
	t.Helper()
	tables := []store.Table{table("AAA"), table("BBB"), table("CCC")}
	n, err := stage.New(stage.Stage{Tables: []stage.Pair{{Logical: "AAA", Real: "BBB"}, {Logical: "BBB", Real: "AAA"}, {Logical: "CCC", Real: "ccc-prod"}}}, tables)
	if err != nil {
		t.Fatal(err)
	}
	inner, err = embedded.Open("data", n.Tables(tables), embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	return inner, stage.Wrap(inner, n), n
}

// TestNamesInTheStore: rows are in the real table, and records of its stream have the
// logical name, for every reader: a driver's own records are left as they are.
func TestNamesInTheStore(t *testing.T) {
	inner, outer, n := open(t)
	out, err := outer.Write(t.Context(), []store.Write{{Ref: ref("AAA", "k"), Put: row("k", "AAA", 0)}})
	if err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
	for name, is := range map[string]bool{"AAA": false, "BBB": true} {
		rows, err := inner.Get(t.Context(), []store.Ref{ref(name, "k")})
		if err != nil || (rows[0] != nil) != is {
			t.Errorf("the real table %s has %v, %v", name, rows[0], err)
		}
	}
	read := func(s store.Store, table string) (records []events.Record) {
		shards, err := s.Shards(t.Context(), table)
		if err != nil {
			t.Fatal(err)
		}
		for _, sh := range shards {
			page, err := s.Read(t.Context(), table, sh.ID, events.Position{}, 10)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, page.Records...)
		}
		return records
	}
	if got := read(outer, "AAA"); len(got) != 1 || got[0].Table != "AAA" {
		t.Errorf("the stream of AAA has %+v", got)
	}
	kept := &keeps{Store: inner}
	if got := read(stage.Wrap(kept, n), "AAA"); len(got) != 1 || got[0].Table != "AAA" || kept.page.Records[0].Table != "BBB" {
		t.Errorf("records that the driver keeps became %+v", kept.page.Records)
	}
	if got := read(inner, "BBB"); len(got) != 1 || got[0].Table != "BBB" {
		t.Errorf("the stream of the real table has %+v", got)
	}
	if got := read(outer, "BBB"); len(got) != 0 {
		t.Errorf("the stream of BBB has %+v", got)
	}
	if err := outer.Transact(t.Context(), []store.Write{{Ref: ref("BBB", "k"), Check: true, If: store.Cond{{{Attr: "PK", Is: store.Absent}}}}, {Ref: ref("AAA", "k"), Delete: true}}); err != nil {
		t.Error(err)
	}
}

// keeps is a store that keeps the pages with records that it gave.
type keeps struct {
	store.Store
	page store.Records
}

func (k *keeps) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := k.Store.Read(ctx, table, shard, after, limit)
	if len(page.Records) > 0 {
		k.page = page
	}
	return page, err
}

// TestRealNamesAreUnknown: only logical names are names, so that one that was not
// translated is an error and not another table.
func TestRealNamesAreUnknown(t *testing.T) {
	_, outer, _ := open(t)
	for _, name := range []string{"ccc-prod", "weir-prod", ""} {
		if _, err := outer.Get(t.Context(), []store.Ref{ref(name, "k")}); !errors.Is(err, store.ErrNoTable) {
			t.Errorf("Get %q: %v", name, err)
		}
		if _, err := outer.Shards(t.Context(), name); !errors.Is(err, store.ErrNoTable) {
			t.Errorf("Shards %q: %v", name, err)
		}
		if err := outer.Transact(t.Context(), []store.Write{{Ref: ref(name, "k"), Delete: true}}); !errors.Is(err, store.ErrNoTable) {
			t.Errorf("Transact %q: %v", name, err)
		}
	}
}

// TestErrorsNameBoth: an error of the store says which table of the model it means.
func TestErrorsNameBoth(t *testing.T) {
	_, outer, _ := open(t)
	never := store.Write{Ref: ref("CCC", "k"), Delete: true, If: store.Cond{{{Attr: "PK", Is: store.Exists}}}}
	out, err := outer.Write(t.Context(), []store.Write{never})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{out[0].Err, outer.Transact(t.Context(), []store.Write{never})} {
		if !errors.Is(err, store.ErrCondition) || !strings.Contains(err.Error(), "ccc-prod is the model's CCC") || !slices.Equal(store.FailedTables(err), []string{"CCC"}) {
			t.Errorf("%v", err)
		}
	}
}

// TestSweepTellsLogicalNames: what runs before a sweep is told of the model's tables, and
// the conditions that it adds hold.
func TestSweepTellsLogicalNames(t *testing.T) {
	inner, outer, _ := open(t)
	now := time.Now()
	old := int(now.Add(-time.Hour).Unix())
	var ws []store.Write
	for _, k := range []string{"goes", "stays"} {
		ws = append(ws, store.Write{Ref: ref("AAA", k), Put: row(k, "AAA", old)})
	}
	if _, err := outer.Write(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	told := 0
	n, err := outer.Sweep(t.Context(), now, 10, func(_ context.Context, ws []store.Write) error {
		for i := range ws {
			told++
			if ws[i].Table != "AAA" {
				t.Errorf("told of %s", ws[i].Table)
			}
			if ws[i].Key.Partition.Text() == "stays" {
				ws[i].If = append(ws[i].If, []store.Test{{Attr: "PK", Is: store.Absent}})
			}
		}
		return nil
	})
	left, gerr := inner.Get(t.Context(), []store.Ref{ref("BBB", "goes"), ref("BBB", "stays")})
	if err != nil || gerr != nil || n != 1 || told < 2 || left[0] != nil || left[1] == nil {
		t.Errorf("%d removed, %d told, %v left, %v, %v", n, told, left, err, gerr)
	}
}
