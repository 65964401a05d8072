package embedded

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// verify checks that a store is consistent: each table's rows are the result of its
// stream, and its indexes hold their entries and no others. Streams must not be trimmed
// and must have existed from the beginning.
func verify(t testing.TB, s *Store) {
	t.Helper()
	for _, tab := range s.tables {
		rows := allRows(t, s, tab)
		verifyIndexes(t, s, tab, rows)
		if !tab.Stream {
			continue
		}
		folded := map[string]value.Item{}
		for _, r := range allRecords(t, s, tab.Name) {
			k, ok := tab.KeyOf(r.Keys)
			if !ok {
				t.Fatalf("table %s: record %v has the keys %s", tab.Name, r.Position, show(r.Keys))
			}
			id := string(appendRowKey(nil, tab, k))
			if !value.EqualItems(folded[id], r.Old) {
				t.Fatalf("table %s: record %v has the old image %s, the one before left %s", tab.Name, r.Position, show(r.Old), show(folded[id]))
			}
			folded[id] = r.New
			if r.New == nil {
				delete(folded, id)
			}
		}
		if len(folded) != len(rows) {
			t.Fatalf("table %s has %d rows, its stream adds up to %d", tab.Name, len(rows), len(folded))
		}
		for id, row := range rows {
			if !value.EqualItems(row, folded[id]) {
				t.Fatalf("table %s: row %s, its stream adds up to %s", tab.Name, show(row), show(folded[id]))
			}
		}
	}
}

func show(it value.Item) string {
	if it == nil {
		return "nothing"
	}
	return string(value.AppendPlainItem(nil, it))
}

// scan calls do for each key under a prefix.
func scan(t testing.TB, s *Store, prefix []byte, do func(k, v []byte)) {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: keyAfter(bytes.Clone(prefix))})
	failtest.On(t, err)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		failtest.On(t, err)
		do(it.Key(), v)
	}
	failtest.On(t, it.Error())
}

func allRows(t testing.TB, s *Store, tab *table) map[string]value.Item {
	t.Helper()
	rows := map[string]value.Item{}
	scan(t, s, appendSpace(nil, spaceRow, tab.id), func(k, v []byte) {
		row, err := decodeRow(bytes.Clone(v))
		failtest.On(t, err)
		id, ok := tab.KeyOf(row)
		if !ok || !bytes.Equal(appendRowKey(nil, tab, id), k) {
			t.Fatalf("table %s: under %x is %s", tab.Name, k, show(row))
		}
		rows[string(k)] = row
	})
	return rows
}

func verifyIndexes(t testing.TB, s *Store, tab *table, rows map[string]value.Item) {
	t.Helper()
	for _, ix := range tab.indexes {
		want := map[string]bool{}
		for _, row := range rows {
			id, _ := tab.KeyOf(row)
			if entry, ok, err := ix.entryKey(tab.keyValues(nil, row)); ok && err == nil {
				want[string(appendEntryKey(nil, ix, entry, id))] = true
			}
		}
		n := 0
		scan(t, s, appendSpace(nil, spaceIndex, ix.id), func(k, _ []byte) {
			if n++; !want[string(k)] {
				t.Fatalf("table %s: index %q has the entry %q of no row", tab.Name, ix.Name, k)
			}
		})
		if n != len(want) {
			t.Fatalf("table %s: index %q has %d entries, its rows want %d", tab.Name, ix.Name, n, len(want))
		}
	}
}

// allRecords reads a table's whole stream, in the order of sequence numbers.
func allRecords(t testing.TB, s *Store, tableName string) (out []events.Record) {
	t.Helper()
	ctx := context.Background()
	shards, err := s.Shards(ctx, tableName)
	failtest.On(t, err)
	for _, sh := range shards {
		rs, err := drain(ctx, s, tableName, sh.ID, events.Position{}, 100)
		failtest.On(t, err)
		out = append(out, rs...)
	}
	slices.SortFunc(out, func(a, b events.Record) int { return a.Position.Compare(b.Position) })
	return out
}

// drain reads a shard to its current end.
func drain(ctx context.Context, s *Store, tableName, shard string, at events.Position, limit int) (out []events.Record, err error) {
	for {
		page, err := s.Read(ctx, tableName, shard, at, limit)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			if r.Position.Compare(at) <= 0 {
				return nil, fmt.Errorf("position %v after %v", r.Position, at)
			}
			at = r.Position
		}
		out = append(out, page.Records...)
		if page.End || len(page.Records) == 0 {
			return out, nil
		}
	}
}

// Short names for tests.

func item(pairs ...any) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i].(string), Value: val(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}

func val(x any) value.Value {
	switch x := x.(type) {
	case string:
		return value.OfString(x)
	case int:
		return value.OfInt(int64(x))
	case value.Value:
		return x
	}
	panic(fmt.Sprintf("no value for %T", x))
}

func ref(pk, sk string) store.Ref {
	return store.Ref{Table: "things", Key: store.Key{Partition: val(pk), Sort: val(sk)}}
}

func put(pk, sk string, pairs ...any) store.Write {
	return store.Write{Ref: ref(pk, sk), Put: item(append([]any{"PK", pk, "SK", sk}, pairs...)...)}
}

func del(pk, sk string) store.Write { return store.Write{Ref: ref(pk, sk), Delete: true} }

// things is a table with every kind of index.
func things() store.Table {
	return store.Table{
		Name: "things", Key: store.KeySchema{Partition: str("PK"), Sort: str("SK")}, TTL: "ttl", Stream: true,
		Indexes: []store.Index{
			{Name: "kind", Key: store.KeySchema{Partition: str("kind"), Sort: str("at")}},
			{Name: "score", Key: store.KeySchema{Partition: str("kind"), Sort: store.KeyAttr{Name: "score", Type: value.Number}}, KeysOnly: true},
		},
	}
}

// do writes what must happen.
func do(t testing.TB, s *Store, ws ...store.Write) {
	t.Helper()
	out, err := s.Write(context.Background(), ws)
	failtest.On(t, err)
	for i := range out {
		if out[i].Err != nil {
			t.Fatalf("write %d: %v", i, out[i].Err)
		}
	}
}

func get(t testing.TB, s *Store, pk, sk string) value.Item {
	t.Helper()
	got, err := s.Get(context.Background(), []store.Ref{ref(pk, sk)})
	failtest.On(t, err)
	return got[0]
}
