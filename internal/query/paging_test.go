package query

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/value"
)

// crowd draws rows whose keys crowd together.
var crowd = rapid.Custom(func(t *rapid.T) [][]any {
	few := func(name string, n int) string { return fmt.Sprint(name[:1], rapid.IntRange(0, n).Draw(t, name)) }
	at := func() string { return fmt.Sprintf("2025-01-%02dT00:00:00Z", rapid.IntRange(1, 9).Draw(t, "at")) }
	gone := func() any { return rapid.SampledFrom([]any{1, 1 << 40, 1 << 40}).Draw(t, "ttl") }
	var rows [][]any
	for range rapid.IntRange(0, 60).Draw(t, "rows") {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			rows = append(rows, []any{"Shelf", "shelf", few("shelf", 5), "at", at(), "shown", "true", "ttl", gone()})
		case 1:
			rows = append(rows, []any{"Place", "shelf", few("shelf", 5), "product", few("product", 6)})
		case 2:
			rows = append(rows, []any{"Mark", "user", few("user", 2), "type", few("like", 2), "product", few("product", 6), "color", few("color", 1), "ttl", gone(), "at", at()})
		default:
			rows = append(rows, []any{"Product", "product", few("product", 6), "title", "common " + few("word", 3), "brand", few("brand", 1), "shop", few("shop", 1),
				"code", "c", "stars", rapid.IntRange(0, 3).Draw(t, "stars"), "at", at(), "ttl", gone()})
		}
	}
	return rows
})

func (w *world) fill(rows [][]any) {
	for _, r := range rows {
		w.put(r[0].(string), r[1:]...)
	}
}

var paged = []struct{ query, given string }{
	{"shelves", ""}, {"shelves-before", "before=2025-01-05T00:00:00Z"}, {"kinds", ""}, {"lean-marks", "color=c0"},
	{"marks", "user=u1"}, {"marks", "user=u1 type=l1"}, {"marks", "user=u1 color=c0"}, {"marked", "product=p1"},
	{"places", "shelf=s1"}, {"shelf-products", "shelf=s1"}, {"all-places", ""}, {"all-marks", ""}, {"all-products", ""}, {"all-marks-once", ""},
	{"marked-products", "user=u1"}, {"copies", "user=s1"}, {"copies-by-brand", "user=s1 brand=b1"}, {"products-by-code", "code=c stars=1"},
	{"search-products", "q=common"}, {"search-products", "q=common sort=-stars"}, {"search-products", "q=com maker=b1 stars=2 sort=at"},
}

// However small the pages and however unkind the store, paging gives the rows of
// one big page on a kind store, in the same order.
func TestPagingGivesTheSameRows(t *testing.T) {
	m := parseModel(t, shopModel)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, m, 0)
		w.fill(crowd.Draw(rt, "rows"))
		unkind := newWorld(t, m, rapid.Uint64Range(1, 1<<40).Draw(rt, "seed"))
		unkind.fake.rows, unkind.ids.docs = w.fake.rows, w.ids.docs
		for _, p := range paged {
			given := params(p.given)
			want := ask(t, w.engine, p.query, given, 0)
			for _, limit := range []int{1, 2, rapid.IntRange(1, 20).Draw(rt, "limit")} {
				got := ask(t, unkind.engine, p.query, given, limit)
				if a, b := rowTexts(got), rowTexts(want); a != b {
					rt.Fatalf("%s %s by %d:\n got %s\nwant %s", p.query, p.given, limit, a, b)
				}
			}
		}
	})
}

func rowTexts(rows []value.Item) string {
	out := ""
	for _, r := range rows {
		out += string(value.AppendPlainItem(nil, r)) + "\n"
	}
	return out
}

// The queries that walk give what nested loops over all rows give.
func TestWalksGiveWhatLoopsGive(t *testing.T) {
	m := parseModel(t, shopModel)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, m, 1)
		w.fill(crowd.Draw(rt, "rows"))
		live := func(query string, given map[string]string) []value.Item { return ask(t, w.engine, query, given, 0) }
		var want []value.Item
		for _, shelf := range live("shelves-before", params("before=2026-01-01T00:00:00Z")) {
			for _, place := range live("places", map[string]string{"shelf": shelf.Get("shelf").Text()}) {
				product := map[string]string{"product": place.Get("product").Text()}
				for range live("product", product) {
					marks := live("marked", product)
					for i := range marks {
						want = append(want, marks[len(marks)-1-i])
					}
				}
			}
		}
		if got := live("all-marks", nil); rowTexts(got) != rowTexts(want) {
			rt.Fatalf("got\n%swant\n%s", rowTexts(got), rowTexts(want))
		}
	})
}

// Rows that come and go between pages do not disturb the others.
func TestPagingWhileRowsComeAndGo(t *testing.T) {
	for _, query := range []string{"all-places", "all-products", "shelf-products"} {
		w := newWorld(t, parseModel(t, shopModel), 9)
		putShelves(w, 4, 3)
		given := map[string]string{}
		if query == "shelf-products" {
			given["shelf"] = "s1"
		}
		before := ask(t, w.engine, query, given, 0)
		seen := map[string]int{}
		page := Page{Limit: 1}
		for i := 0; ; i++ {
			r, err := w.engine.Run(context.Background(), query, given, page)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range r.Items {
				seen[row.Get("PK").Text()+row.Get("SK").Text()]++
				if row.Get("kind").Text() == "Place" && i == 4 {
					w.fake.remove("shop", w.key("Place", "shelf", "s1", "product", "p2")) // where the walk stands
					w.fake.remove("shop", w.key("Shelf", "shelf", "s2"))
				}
			}
			w.put("Place", "shelf", "s0", "product", fmt.Sprint("o", i))
			if page.Cursor = r.Cursor; page.Cursor == "" {
				break
			}
		}
		for _, row := range before {
			id := row.Get("PK").Text() + row.Get("SK").Text()
			gone := query == "all-places" && (row.Get("PK").Text() == "SHELF#s2" || id == "SHELF#s1PRODUCT#p2")
			if n := seen[id]; n != 1 && !(gone && n == 0) && !(gone && n == 1) {
				t.Errorf("%s: %s came %d times", query, id, n)
			}
		}
	}
}

// A page costs a bounded amount of reading, whatever there is to pass over.
func TestAPageIsBounded(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	long := value.OfString(string(make([]byte, 100<<10)))
	for i := range 400 {
		w.put("Mark", "user", "u", "type", "like", "product", fmt.Sprintf("p%03d", i), "color", map[bool]string{true: "red", false: "blue"}[i == 399], "note", long)
	}
	r, err := w.engine.Run(context.Background(), "marks", params("user=u color=red"), Page{Limit: 10})
	if err != nil || len(r.Items) != 0 || r.Cursor == "" {
		t.Fatalf("an empty page with a cursor: %d rows, cursor %q, %v", len(r.Items), r.Cursor, err)
	}
	if read := w.fake.scanned; read > 3*(4<<20)/(100<<10) { // 16 of 4 MB are made at once
		t.Errorf("%d rows were read", read)
	}
	if rows := ask(t, w.engine, "marks", params("user=u color=red"), 10); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
	if rows := ask(t, w.engine, "marks", params("user=u"), 7); len(rows) != 400 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestTheLastPageHasNoCursor(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	putShelves(w, 3, 2)
	for _, p := range []struct{ query, given string }{{"shelves", ""}, {"shelf-products", "shelf=s1"}, {"all-products", ""}, {"places", "shelf=s1"}} {
		n := len(ask(t, w.engine, p.query, params(p.given), 0))
		r, err := w.engine.Run(context.Background(), p.query, params(p.given), Page{Limit: n})
		if err != nil || len(r.Items) != n || r.Cursor != "" {
			t.Errorf("%s: %d of %d rows, cursor %q, %v", p.query, len(r.Items), n, r.Cursor, err)
		}
	}
}

func TestErrorsOfTheStoreComeThrough(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	putShelves(w, 2, 2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, p := range []struct{ query, given string }{{"shelf", "shelf=s1"}, {"shelves", ""}, {"all-products", ""}} {
		if _, err := w.engine.Run(ctx, p.query, params(p.given), Page{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", p.query, err)
		}
	}
}
