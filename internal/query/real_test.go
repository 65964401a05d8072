package query

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/search"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/store"
	storeembedded "weir/internal/store/embedded"
)

// newRealWorld is a world on the embedded store and index. Rows are put into a
// fake first, for the helpers; settle takes them over.
func newRealWorld(t *testing.T, m *model.Model) *world {
	t.Helper()
	s, err := storeembedded.Open("data", tablesOf(m), storeembedded.Options{FS: vfs.NewMem(), Now: atNoon, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return newWorldOn(t, m, s)
}

func atNoon() time.Time { return noon }

// tablesOf are a model's tables and our own.
func tablesOf(m *model.Model) []store.Table {
	tables := []store.Table{owntable.Table()}
	for _, tab := range m.Tables {
		tables = append(tables, tab.Table)
	}
	return tables
}

// newWorldOn is a world on a store, and on the embedded index.
func newWorldOn(t *testing.T, m *model.Model, s store.Store) *world {
	t.Helper()
	w, now := newWorld(t, m, 0), atNoon
	var schemas []search.Schema
	for _, sr := range m.Searches {
		sc := search.Schema{Name: document.IndexName(m, sr)}
		for _, f := range sr.Filters {
			sc.Filters = append(sc.Filters, f.Name)
		}
		for _, f := range sr.Sorts {
			sc.Sorts = append(sc.Sorts, f.Name)
		}
		schemas = append(schemas, sc)
	}
	ix, err := searchembedded.Open("", schemas, searchembedded.Options{InMemory: true, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	secret, err := LoadSecret(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	w.store = s
	if w.engine, err = New(Config{Model: m, Store: s, Search: ix, Now: now, Secret: secret}); err != nil {
		t.Fatal(err)
	}
	return w
}

// settle writes what was put into the store and the index, unless these are the fakes.
func (w *world) settle() {
	w.Helper()
	if w.store == store.Store(w.fake) {
		return
	}
	ctx := context.Background()
	for table, rows := range w.fake.rows {
		for _, row := range rows {
			k, _ := w.fake.tables[table].KeyOf(row)
			out, err := w.store.Write(ctx, []store.Write{{Ref: store.Ref{Table: table, Key: k}, Put: row}})
			if err != nil || out[0].Err != nil {
				w.Fatal(err, out)
			}
		}
	}
	if len(w.ids.docs) == 0 {
		return
	}
	errs, err := w.engine.Search.Apply(ctx, w.ids.docs)
	if err = errors.Join(append(errs, err)...); err != nil {
		w.Fatal(err)
	}
}

// The embedded drivers page to the same rows as the ones in memory.
func TestPagingOnTheEmbeddedDrivers(t *testing.T) {
	m := parseModel(t, shopModel)
	for seed := range 4 {
		w := newRealWorld(t, m)
		w.fill(crowd.Example(seed * 7))
		w.settle()
		kind := mustEngine(t, Config{Model: m, Store: w.fake, Search: w.ids})
		for _, p := range paged {
			if p.query == "search-products" && p.given != "q=com maker=b1 stars=2 sort=at" {
				continue // scores are a driver's own
			}
			want := rowTexts(ask(t, kind, p.query, params(p.given), 0))
			for _, limit := range []int{0, 1, 3} {
				if got := rowTexts(ask(t, w.engine, p.query, params(p.given), limit)); got != want {
					t.Errorf("seed %d: %s %s by %d:\n got %s\nwant %s", seed, p.query, p.given, limit, got, want)
				}
			}
		}
		all := rowTexts(ask(t, w.engine, "search-products", params("q=common"), 0))
		if got := rowTexts(ask(t, w.engine, "search-products", params("q=common"), 2)); got != all {
			t.Errorf("search by 2:\n got %s\nwant %s", got, all)
		}
	}
}

func TestSecretOnTheEmbeddedStore(t *testing.T) {
	w := newRealWorld(t, parseModel(t, shopModel))
	again, err := LoadSecret(context.Background(), w.store)
	if err != nil || !bytes.Equal(again, w.engine.Secret) {
		t.Error("the secret is another one", err)
	}
	w.store.Close()
	if _, err := w.engine.Run(context.Background(), "shelves", nil, Page{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store answers %v", err)
	}
}
