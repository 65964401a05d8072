package sim

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// stored is the embedded store of a computer, and the world whose tables it has.
type stored struct {
	*world
	db *embedded.Store
}

func (m *stored) time() time.Time { return m.clock }

// openDisk opens the store on a disk. fatal is called when that fails it.
func (m *stored) openDisk(disk vfs.FS, fatal func(reason string)) (*embedded.Store, error) {
	tables := seq.Map(m.base.names, func(name string) store.Table { return m.base.tables[name].Table })
	return embedded.Open("store", tables, embedded.Options{
		FS: disk, Now: m.time, ID: "machine", Still: true, Shards: 2, CacheBytes: 1 << 20, RowCacheBytes: 384 << 10, TailBytes: 64 << 10,
		Logger: slog.New(slog.DiscardHandler), Fatal: fatal,
	})
}

// allRows are all rows of the store.
func (m *stored) allRows() map[string]value.Item {
	have := map[string]value.Item{}
	for _, name := range m.base.names {
		t := &m.base.tables[name].Table
		m.scanRows(store.Query{Table: name}, func(row value.Item) {
			k, _ := t.KeyOf(row)
			have[refName(store.Ref{Table: name, Key: k})] = row
		})
	}
	return have
}

// scanRows yields all rows that a query finds, page by page. An error is a failure of the run.
func (m *stored) scanRows(q store.Query, yield func(value.Item)) {
	for row, err := range store.EachRow(context.Background(), m.db, q) {
		if err != nil {
			m.addFailure(Lost, "reading the rows: %v", err)
			return
		}
		yield(row)
	}
}

// checkIndexesAndStreams compares the store's indexes and streams with its rows.
func (m *stored) checkIndexesAndStreams(have map[string]value.Item) {
	for _, name := range m.base.names {
		t := &m.base.tables[name].Table
		for i := range t.Indexes {
			m.checkIndex(t, &t.Indexes[i], have)
		}
		if t.Stream {
			m.checkStream(t, have)
		}
	}
}

// checkIndex compares an index of the store with its rows, in both directions.
func (m *stored) checkIndex(t *store.Table, ix *store.Index, have map[string]value.Item) {
	want := map[string]bool{}
	for name, row := range have {
		if _, ok, err := store.IndexEntry(ix, row); ok && err == nil && strings.HasPrefix(name, t.Name+"|") {
			want[name] = true
		}
	}
	m.scanRows(store.Query{Table: t.Name, Index: ix.Name}, func(row value.Item) {
		k, _ := t.KeyOf(row)
		name := refName(store.Ref{Table: t.Name, Key: k})
		if !want[name] {
			m.addFailure(Doubled, "index %s has an entry of %s, which should have none", ix.Name, name)
		}
		delete(want, name)
	})
	if len(want) > 0 {
		m.addFailure(Lost, "index %s has no entry of %v", ix.Name, firstOf(want))
	}
}

// checkStream checks that each record begins where the row's record before it ended, and that
// the last one ends at the row.
func (m *stored) checkStream(t *store.Table, have map[string]value.Item) {
	ctx := context.Background()
	is := map[string]value.Item{}
	shards, err := m.db.Shards(ctx, t.Name)
	for _, sh := range shards {
		var at events.Position
		if at, err = m.db.Horizon(ctx, t.Name, sh.ID); err != nil {
			break
		}
		for {
			var page store.Records
			if page, err = m.db.Read(ctx, t.Name, sh.ID, at, 1000); err != nil || len(page.Records) == 0 {
				break
			}
			for i := range page.Records {
				r := &page.Records[i]
				at = r.Position
				k, _ := t.KeyOf(r.Keys)
				name := refName(store.Ref{Table: t.Name, Key: k})
				if was, ok := is[name]; ok && !value.EqualItems(was, r.Old) {
					m.addFailure(Lost, "the stream has a gap before record %v of %s", r.Position, name)
				}
				is[name] = r.New
			}
		}
	}
	if err != nil {
		m.addFailure(Lost, "reading the stream of %s: %v", t.Name, err)
	}
	for name, row := range is {
		if !value.EqualItems(row, have[name]) {
			m.addFailure(Lost, "the stream ends with %s as %s, it is %s", name, plainText(row), plainText(have[name]))
		}
	}
}
