package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

func TestSearchReturnsRowsAsTheyAre(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	for i := range 6 {
		w.put("Product", "product", fmt.Sprint("p", i), "title", "blue lamp", "brand", fmt.Sprint("b", i%2), "stars", i, "code", "c", "at", fmt.Sprintf("2025-01-%02dT00:00:00Z", i+1), "hot", "true", "tag", []string{"x", fmt.Sprint("t", i)})
	}
	w.want("search-products", "q=lam", "p0,p1,p2,p3,p4,p5", "product")
	w.want("search-products", "q=lamp sort=-stars", "p5,p4,p3,p2,p1,p0", "product")
	w.want("search-products", "q= maker=b1", "p1,p3,p5", "product")
	w.want("search-products", "q=lamp stars=4.0", "p4 true 0", "product", "hot", "marks")
	w.want("search-products", "q=lamp tag=t3 hot=true", "p3", "product")
	w.want("search-products", "q=lamp hot=false", "")
	w.want("search-products", "q=!", "")

	// The documents are as before; the rows are not.
	w.fake.remove("shop", w.key("Product", "product", "p0"))
	change := func(product string, attrs ...value.Attr) {
		row := makeRow(t, w.model, "Product", "product", product, "title", "blue lamp", "brand", "b1", "stars", 3, "code", "c")
		w.fake.put(t, "shop", row.With(attrs...))
	}
	change("p1", value.Attr{Name: "brand", Value: value.OfString("b0")})
	change("p2", value.Attr{Name: "code"})
	change("p3", value.Attr{Name: "title", Value: value.OfString("red lamp")})
	change("p4", value.Attr{Name: "ttl", Value: value.OfInt(1)})
	change("p5", value.Attr{Name: "kind", Value: value.OfString("Thing")})
	w.want("search-products", "q=lamp", "p1 blue lamp,p3 red lamp", "product", "title")
	w.want("search-products", "q=lamp maker=b1", "p3", "product")
	r, err := w.engine.Run(context.Background(), "search-products", params("q=lamp"), Page{Limit: 2})
	if err != nil || len(r.Items) != 2 || r.Cursor != "" {
		t.Errorf("a page is filled up from further hits: %d, %q, %v", len(r.Items), r.Cursor, err)
	}
}

func TestSearchPassesOverManyStaleHits(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	for i := range 500 {
		w.put("Product", "product", fmt.Sprintf("p%03d", i), "title", "lamp", "code", "c")
	}
	for i := range 499 {
		w.fake.remove("shop", w.key("Product", "product", fmt.Sprintf("p%03d", i)))
	}
	w.want("search-products", "q=lamp", "p499", "product")
	r, err := w.engine.Run(context.Background(), "search-products", params("q=lamp"), Page{Limit: 1})
	if err != nil || len(r.Items) != 1 {
		t.Errorf("%d, %q, %v", len(r.Items), r.Cursor, err)
	}
}

// TestSearchUnfinished: a search asks whether its index is finished, and not only what is derived on the rows.
func TestSearchUnfinished(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	off := map[string]bool{"search/products": true}
	w.engine.Unfinished = func(_ context.Context, of []string) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(of), func(name string) bool { return !off[name] }), nil
	}
	r, err := w.engine.Run(t.Context(), "search-products", params("q=x"), Page{})
	if err != nil || !slices.Equal(r.Unfinished, []string{"search/products"}) {
		t.Error(r.Unfinished, err)
	}
}

func TestSearchWithoutAnIndex(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	w.engine = mustEngine(t, Config{Model: w.model, Store: w.fake})
	w.refused("search-products", params("q=x"), Page{}, ErrUnavailable, "search")
	w.engine = mustEngine(t, Config{Model: w.model, Store: w.fake, Search: brokenIndex{}, Now: time.Now})
	if _, err := w.engine.Run(context.Background(), "search-products", params("q=x"), Page{}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

var errBroken = errors.New("the index is broken")

type brokenIndex struct{ search.Index }

func (brokenIndex) Search(context.Context, search.Query) ([]search.Hit, error) { return nil, errBroken }

// everyIndex finds documents that no row can have made.
type everyIndex struct{ search.Index }

func (everyIndex) Search(context.Context, search.Query) ([]search.Hit, error) {
	return []search.Hit{
		{ID: "nonsense", After: "a"}, {ID: "S1:x", After: "b"}, {ID: "N1:7S1:x", After: "c"},
		{ID: search.ID(store.Key{Partition: value.OfString("no"), Sort: value.OfString("row")}), After: "d"},
	}, nil
}
