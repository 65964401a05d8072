package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/soaktest"
	"weir/internal/value"
)

// momentsOf draws times of few seconds, with fractions of any length or none.
func momentsOf(t *rapid.T) string {
	sec := rapid.SampledFrom([]string{"2025-01-01T00:00:00", "2025-01-01T00:00:01", "2025-01-01T00:00:59"}).Draw(t, "second")
	fraction := rapid.SampledFrom([]string{"", "", ".0", ".5", ".50", ".500", ".51", ".499", ".000000001", ".999999999", ".25", ".256", ".2561"}).Draw(t, "fraction")
	return sec + fraction + "Z"
}

// Whatever the times look like, and however many rows one second has, rows come in the
// order of time, oldest or newest first, page by page, each once.
func TestRowsComeInTheOrderOfTime(t *testing.T) {
	m := parseModel(t, shopModel)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, m, rapid.Uint64Range(0, 1<<40).Draw(rt, "seed"))
		for i := range rapid.IntRange(1, 40).Draw(rt, "rows") {
			at := momentsOf(rt)
			w.put("Shelf", "shelf", fmt.Sprint("s", i), "at", at, "shown", "true")
			w.put("Product", "product", fmt.Sprint("p", i), "title", "t", "shop", rapid.SampledFrom([]string{"u#1", "u%231"}).Draw(rt, "shop"), "brand", "b", "at", at)
		}
		limit := rapid.IntRange(1, 50).Draw(rt, "limit")
		for _, q := range []string{"shelves", "kinds", "shown", "shelves-before", "copies-by-brand"} {
			inOrderOfTime(rt, w, q, limit)
		}
	})
}

var orderly = map[string]string{"shelves-before": "before=2026-01-01T00:00:00Z", "shown": "shown=true", "copies-by-brand": "user=u#1 brand=b"}

func inOrderOfTime(t rapid.TB, w *world, query string, limit int) {
	t.Helper()
	given := params(orderly[query])
	key := func(row value.Item) string { return row.Get("PK").Text() + " " + row.Get("SK").Text() }
	var got []value.Item
	for page, pages := (Page{Limit: limit}), 0; ; pages++ {
		if pages > 5000 {
			t.Fatalf("%s by %d does not end", query, limit)
		}
		r, err := w.engine.Run(context.Background(), query, given, page)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Items...)
		if page.Cursor = r.Cursor; page.Cursor == "" {
			break
		}
	}
	var times []time.Time
	seen := map[string]bool{}
	for _, row := range got {
		at := row.Get("at").Text()
		if query == "copies-by-brand" {
			at = row.Get("GSI1SK").Text()
		}
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		times, seen[key(row)] = append(times, when), true
	}
	if slices.Contains([]string{"shelves", "kinds"}, query) {
		slices.Reverse(times)
	}
	if !slices.IsSortedFunc(times, time.Time.Compare) {
		t.Fatalf("%s by %d is not in the order of time: %v", query, limit, times)
	}
	n := 0
	for _, row := range w.fake.rows["shop"] {
		kind := row.Get("kind").Text()
		if kind == "Shelf" && query != "copies-by-brand" || kind == "Copy" && query == "copies-by-brand" && copyOf(row, "u#1") {
			n++
		}
	}
	if len(got) != n || len(seen) != n {
		t.Fatalf("%s by %d gives %d rows, %d of them once, of %d", query, limit, len(got), len(seen), n)
	}
}

func copyOf(row value.Item, user string) bool {
	own := row.Get("user").Text()
	return own == user || own == "" && strings.HasPrefix(row.Get("PK").Text(), "USER#"+user)
}

// One second may have more rows than a stream holds, and more than one page reads: of
// one moment, or each of another.
func TestASecondOfManyRows(t *testing.T) {
	many := soaktest.Count(4, 14)*maxHeld + 7
	w := newWorld(t, parseModel(t, shopModel), 0)
	for i := range many {
		at := "2025-01-01T00:00:30Z"
		switch i % 4 {
		case 1:
			at = fmt.Sprintf("2025-01-01T00:00:30.%dZ", i)
		case 2:
			at = fmt.Sprintf("2025-01-01T00:00:30.%09dZ", i*199999)
		}
		w.put("Shelf", "shelf", fmt.Sprint("s", i), "at", at, "shown", "true")
		if i < 9 {
			w.put("Shelf", "shelf", fmt.Sprint("a", i), "at", fmt.Sprintf("2025-01-01T00:00:2%dZ", i), "shown", "true")
			w.put("Shelf", "shelf", fmt.Sprint("b", i), "at", fmt.Sprintf("2025-01-01T00:00:3%d.1Z", i), "shown", "true")
		}
	}
	for _, limit := range []int{311, 1000} {
		for _, q := range []string{"shelves", "kinds", "shown", "shelves-before"} {
			inOrderOfTime(t, w, q, limit)
		}
	}
	for page := (Page{Limit: 40}); ; { // a page reads what it may hold, for each digit at the most
		w.fake.scanned = 0
		r, err := w.engine.Run(t.Context(), "shelves", nil, page)
		if err != nil || w.fake.scanned > (nanos+4)*maxHeld {
			t.Fatalf("%d rows read for a page of 40, %v", w.fake.scanned, err)
		}
		if page.Cursor = r.Cursor; strings.HasPrefix(r.Items[0].Get("at").Text(), "2025-01-01T00:00:30Z") {
			break // it is through with the fractions
		}
	}
}

// A second of many rows leads to no read outside of what the step reaches: not of the
// rows of other kinds in the partition.
func TestASecondOfManyRowsReadsNoOthers(t *testing.T) {
	const many, others = 2 * maxHeld, 4 * maxHeld
	w := newWorld(t, parseModel(t, shopModel), 0)
	for i := range others {
		w.put("Mark", "user", "u", "type", "like", "product", fmt.Sprint("p", i)) // below all visits
		w.fake.put(t, "shop", value.NewItem(value.Attr{Name: "PK", Value: value.OfString("USER#u")}, value.Attr{Name: "SK", Value: value.OfString(fmt.Sprint("W#", i))}))
		if i < many {
			w.put("Visit", "user", "u", "until", "2001-01-01T00:00:30Z", "visit", fmt.Sprint("v", i))
		}
	}
	for _, query := range []string{"visits", "visits-newest"} {
		w.fake.scanned = 0
		r, err := w.engine.Run(t.Context(), query, params("user=u"), Page{Limit: 10})
		if err != nil || len(r.Items) > 0 || r.Cursor != "" {
			t.Fatal(query, r, err)
		}
		if w.fake.scanned > 3*many {
			t.Errorf("%s: %d rows read for %d visits", query, w.fake.scanned, many)
		}
	}
}

// Of rows of one id, some with the id as it is in their keys and some escaped, the newest
// come first, whichever they are; a page between them ends where the next begins.
func TestSpellingsAreOneOrder(t *testing.T) {
	m := parseModel(t, shopModel)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, m, rapid.Uint64Range(0, 1<<40).Draw(rt, "seed"))
		var want []string
		for i := range rapid.IntRange(2, 30).Draw(rt, "rows") {
			at, user, id := momentsOf(rt), rapid.SampledFrom([]string{"u#1", "u%231"}).Draw(rt, "user"), fmt.Sprint("v", i/4)
			row := makeRow(t, m, "Visit", "user", user, "until", at, "visit", id)
			w.fake.put(t, "shop", row.With(value.Attr{Name: "user", Value: value.OfString("u#1")}))
			want = append(want, "USER#"+user+id+" "+at)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		when := func(s string) time.Time {
			_, text, _ := strings.Cut(s, " ")
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				rt.Fatal(err)
			}
			return at
		}
		for _, query := range []string{"latest-visits", "visits-before"} {
			given := map[string]string{"user": "u#1"}
			if query == "visits-before" {
				given["before"] = "2026-01-01T00:00:00Z"
			}
			var first []string
			for _, limit := range []int{0, 1, rapid.IntRange(2, 9).Draw(rt, "limit")} {
				var got []string
				for _, row := range ask(t, w.engine, query, given, limit) {
					got = append(got, row.Get("PK").Text()+row.Get("visit").Text()+" "+row.Get("until").Text())
				}
				sorted := slices.IsSortedFunc(got, func(a, b string) int {
					if query == "latest-visits" {
						a, b = b, a
					}
					return when(a).Compare(when(b))
				})
				if !sorted {
					rt.Fatalf("%s by %d: %v", query, limit, got)
				}
				if first == nil {
					first = got
				} else if !slices.Equal(first, got) {
					rt.Fatalf("%s by %d: %v\nnot %v", query, limit, got, first)
				}
				if all := slices.Sorted(slices.Values(got)); !slices.Equal(all, want) {
					rt.Fatalf("%s by %d: %v\nnot %v", query, limit, all, want)
				}
			}
		}
	})
}

// Rows found by keys that a list makes are in one order too, and so are lists that are sorted.
func TestOrderOfPickedAndSorted(t *testing.T) {
	m := parseModel(t, shopModel)
	w := newWorld(t, m, 0)
	for i, at := range []string{"00.5Z", "00Z", "00.51Z", "01.2Z", "01Z"} {
		w.put("Place", "shelf", "s", "product", fmt.Sprint("p", i), "at", "2025-01-01T00:00:"+at)
		row := makeRow(t, m, "Mark", "user", []string{"u#1", "u%231"}[i%2], "type", "like", "product", fmt.Sprint("p", i))
		w.fake.put(t, "shop", row.With(value.Attr{Name: "user", Value: value.OfString("u#1")}))
	}
	for _, limit := range []int{0, 1, 2, 3} {
		if got := brief(ask(t, w.engine, "places-by-time", params("shelf=s"), limit), "product"); got != "p1,p0,p2,p4,p3" {
			t.Errorf("sorted by time, by %d: %s", limit, got)
		}
		want := "MARK#like#p4,MARK#like#p3,MARK#like#p2,MARK#like#p1,MARK#like#p0"
		if got := brief(ask(t, w.engine, "picked-marks", map[string]string{"user": "u#1", "products": "p0,p1,p2,p3,p4"}, limit), "SK"); got != want {
			t.Errorf("picked, by %d: %s", limit, got)
		}
	}
}

func TestCompareTimes(t *testing.T) {
	in := []string{
		"", "2025-01-01", "2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z#b", "2025-01-01T00:00:00", "2025-01-01T00:00:00+02:00",
		"2025-01-01T00:00:00.0Z", "2025-01-01T00:00:00.123456789Z", "2025-01-01T00:00:00.5Z#a", "2025-01-01T00:00:00.5Z#b", "2025-01-01T00:00:00.50Z#a",
		"2025-01-01T00:00:00.51Z#a", "2025-01-01T00:00:01Z", "2025-01-01T00:00:01.1Z", "T00:00:00Z", "aZ", "k#2025-01-01T00:00:00Z", "k#2025-01-01T00:00:00.1Z",
	}
	for i, a := range in {
		for j, b := range in {
			if compareTimes(a, b) != cmp.Compare(i, j) {
				t.Errorf("%q and %q compare as %d", a, b, compareTimes(a, b))
			}
		}
	}
}

func FuzzCompareTimes(f *testing.F) {
	f.Add("2025-01-01T00:00:00Z", "2025-01-01T00:00:00.5Z", "2025-01-01T00:00:00.51Z")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if compareTimes(a, b) != -compareTimes(b, a) || (compareTimes(a, b) == 0) != (a == b) {
			t.Errorf("%q and %q have no order", a, b)
		}
		if compareTimes(a, b) < 0 && compareTimes(b, c) < 0 && compareTimes(a, c) >= 0 {
			t.Errorf("%q, %q and %q go round", a, b, c)
		}
		if e := endOfSecond(a); e >= 0 && strings.HasPrefix(b, a[:e]) && c > b && c < a && !strings.HasPrefix(c, a[:e]) {
			t.Errorf("%q is inside the second of %q", c, a)
		}
	})
}
