package searchtest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/value"
)

// testPages: for every size of a page, all pages together are the answer, with each hit
// once. Many hits here differ only in their ids.
func testPages(t *testing.T, b *bench) {
	var docs []search.Document
	for n := range 25 {
		text := "same text"
		if n%5 == 0 {
			text = "same text and more of it"
		}
		d := b.doc(fmt.Sprintf("%02d", (n*7)%25), text)
		if n%4 != 0 {
			d = with(d, fields("n", value.OfInt(int64(n%3))))
		}
		docs = append(docs, d)
	}
	b.apply(docs...)
	b.settle()
	for _, q := range []search.Query{
		{}, {Text: "same"}, {Text: "sa"}, {Text: "saem", Fuzzy: true}, {Text: "more"}, {Sort: "n"}, {Sort: "n", Reverse: true},
		{Text: "same", Sort: "n"}, {Filters: fields("n", value.OfInt(1))}, {Text: "same", Filters: fields("n", value.OfInt(1))}, {Text: "absent"},
	} {
		q.Index, q.Limit = items, 100
		whole, err := b.ix.Search(t.Context(), q)
		failtest.On(t, err)
		want := ids(whole)
		for n := 1; n <= 26; n++ {
			if got := b.pages(q, n, search.Index.Search); !slices.Equal(got, want) {
				t.Errorf("%s, %d a page:\n%v\n%v", describe(q), n, got, want)
			}
			if got := b.pages(q, n, find); len(want) > 0 && !slices.Equal(got, want) {
				t.Errorf("Find %s, %d a page:\n%v\n%v", describe(q), n, got, want)
			}
		}
	}
	everything := slices.Sorted(slices.Values(b.pages(search.Query{Sort: "n"}, 4, search.Index.Search)))
	b.ordered(search.Query{}, everything...) // none better than another: by id
}

// testPagesWhileWriting: a document that exists all the time appears exactly once.
func testPagesWhileWriting(t *testing.T, b *bench) {
	var docs []search.Document
	want := []string{}
	for n := range 40 {
		id := fmt.Sprintf("%03d", n*10)
		docs = append(docs, with(b.doc(id, "steady"), fields("n", value.OfInt(int64(n/4)))))
		want = append(want, id)
	}
	b.apply(docs...)
	b.settle()
	for _, q := range []search.Query{{Sort: "n"}, {Text: ""}, {Text: "steady", Sort: "n", Reverse: true}} {
		q.Index, q.Limit = items, 3
		seen := map[string]int{}
		for round := 0; ; round++ {
			hits, err := b.ix.Search(t.Context(), q)
			failtest.On(t, err)
			if len(hits) == 0 {
				break
			}
			for _, id := range ids(hits) {
				seen[id]++
			}
			q.After = hits[len(hits)-1].After
			id := fmt.Sprintf("%03d+", (round*130)%400)
			b.apply(with(b.doc(id, "steady"), fields("n", value.OfInt(int64(round%10)))))
		}
		for _, id := range want {
			if seen[id] != 1 {
				t.Errorf("%s: %s came %d times", describe(q), id, seen[id])
			}
		}
	}
}

// testBestWhileWriting: in an answer in the order of scores, a document that matches
// throughout appears exactly once, whatever else is written, deleted or changed between
// the pages.
func testBestWhileWriting(t *testing.T, b *bench) {
	const n = 300
	var docs []search.Document
	for i := range n {
		text := "harbor"
		switch i % 4 {
		case 1:
			text = "harbor lights" + strings.Repeat(" and more", i%7)
		case 2:
			text = "harbormaster"
		case 3:
			text = "the harbor and the harbor"
		}
		docs = append(docs, b.doc(fmt.Sprintf("album %03d", i), text))
	}
	b.apply(docs...)
	b.settle()
	for _, q := range []search.Query{{Text: "harbor"}, {Text: "harb"}, {Text: "harbro", Fuzzy: true}} {
		q.Index, q.Limit = items, 7
		seen := map[string]int{}
		for page := 0; ; page++ {
			hits, _, err := search.Find(t.Context(), b.ix, q)
			failtest.On(t, err)
			for _, id := range ids(hits) {
				seen[id]++
			}
			if len(hits) == 0 {
				break
			}
			q.After = hits[len(hits)-1].After
			other := fmt.Sprintf("other %d", page)
			b.apply(b.doc(other, []string{"unrelated", "harbor", "harbors lights", "harboring"}[page%4]), b.gone(fmt.Sprintf("other %d", page-1)))
			if page%5 == 0 {
				b.settle()
			}
		}
		missed := 0
		for i, d := range docs {
			want := 1
			if q.Fuzzy && i%4 == 2 { // harbormaster differs by more than one typo
				want = 0
			}
			if seen[d.ID] != want {
				missed++
			}
		}
		if missed != 0 {
			t.Errorf("%s: %d of %d documents did not come exactly once", describe(q), missed, n)
		}
	}
}

// testWholeFirst: a document with the word itself comes before one that has only a word
// with this beginning, however short, and that comes before a document with a typo.
func testWholeFirst(t *testing.T, b *bench) {
	b.apply(
		b.doc("1 harbormaster", "harbormaster"), b.doc("2 long", "a story about the harbor, and many other things"+strings.Repeat(" of the town", 30)),
		b.doc("3 harbor", "Harbor"), b.doc("4 harbors", "harbors"), b.doc("5 twice", "harbor harbormaster"), b.doc("6 typo", "harbro"))
	for n := range 20 { // whether words are common or rare makes no difference
		b.apply(b.doc(fmt.Sprint("other ", n), "harbormaster of the town"))
	}
	b.settle()
	got := b.pages(search.Query{Text: "harbor"}, 3, search.Index.Search)
	if want := []string{"3 harbor", "5 twice", "2 long"}; len(got) != 25 || !slices.Equal(got[:3], want) {
		t.Errorf("harbor: %q", got)
	}
	got = b.pages(search.Query{Text: "harbor", Fuzzy: true}, 4, search.Index.Search)
	if len(got) != 26 || got[0] != "3 harbor" || got[25] != "6 typo" {
		t.Errorf("harbor, with typos: %q", got)
	}
	got = b.pages(search.Query{Text: "town harbor"}, 4, search.Index.Search)
	if len(got) != 21 || got[0] != "2 long" {
		t.Errorf("town harbor: %q", got)
	}
}

func testHostileIDs(t *testing.T, b *bench) {
	hostile := []string{
		strings.Repeat("x", search.MaxID), strings.Repeat("x", search.MaxID-1), strings.Repeat("ü", search.MaxID/2), strings.Repeat("😀", search.MaxID/4),
		"#", "ALBUM#1", "a/b", "a b", " ", "  ", `"`, `'`, `\`, `\\`, "a\nb", "a\tb", "\x00", "a\x00b", "\u007f", ".", "..", "%2F", "?q=1", "&", "+", "*", "_all", "_id", "_doc", "null", "true", "0", "{}", "[]",
		"é", "e\u0301", "İ", "中文", "\u202eabc", "\ufeff", "\U0010FFFF", "S7:ALBUM#1S8:METADATA", "A", "a", "<script>", "${x}", "{{x}}",
	}
	var docs []search.Document
	for _, id := range hostile {
		docs = append(docs, b.doc(id, "hostile"))
	}
	b.apply(docs...)
	b.settle()
	slices.Sort(hostile)
	b.ordered(search.Query{}, hostile...)
	b.found(search.Query{Text: "hostile"}, hostile...)
	for _, ask := range []asking{search.Index.Search, find} {
		if got := b.pages(search.Query{}, 5, ask); !slices.Equal(got, hostile) {
			t.Errorf("%q", got)
		}
	}
	var gone []search.Document
	for i, id := range hostile {
		if i%2 == 0 {
			gone = append(gone, b.gone(id))
		}
	}
	b.apply(gone...)
	b.apply(docs...) // late
	b.settle()
	left := []string{}
	for i, id := range hostile {
		if i%2 == 1 {
			left = append(left, id)
		}
	}
	b.ordered(search.Query{}, left...)
}

func testWrongQueries(t *testing.T, b *bench) {
	b.put("a", "text")
	for name, q := range map[string]search.Query{
		"no limit":          {Index: items},
		"a negative limit":  {Index: items, Limit: -1},
		"an unknown sort":   {Index: items, Limit: 1, Sort: "group"},
		"an unknown filter": {Index: items, Limit: 1, Filters: fields("at", value.OfInt(1))},
		"a filter by list":  {Index: items, Limit: 1, Filters: fields("n", value.OfList(value.OfInt(1)))},
		"a filter by null":  {Index: items, Limit: 1, Filters: fields("n", value.OfNull())},
		"a filter by none":  {Index: items, Limit: 1, Filters: fields("n", value.Value{})},
		"another's filter":  {Index: others, Limit: 1, Filters: fields("n", value.OfInt(1))},
	} {
		if _, err := b.ix.Search(t.Context(), q); !errors.Is(err, search.ErrQuery) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := search.Find(t.Context(), b.ix, q); !errors.Is(err, search.ErrQuery) {
			t.Errorf("Find, %s: %v", name, err)
		}
	}
	if _, err := b.ix.Search(t.Context(), search.Query{Index: "no-such-index", Limit: 1}); err == nil {
		t.Error("an unknown index: no error")
	}
}

// testMadeUpCursors: whatever text is given as a cursor, the answer is hits or
// ErrCursor.
func testMadeUpCursors(t *testing.T, b *bench) {
	b.apply(with(b.doc("a", "text one"), fields("n", value.OfInt(1))), with(b.doc("b", "text two"), fields("n", value.OfInt(2))), b.doc("c", "text three"))
	b.settle()
	queries := []search.Query{{}, {Text: "text"}, {Sort: "n"}, {Sort: "n", Reverse: true}, {Text: "txet", Fuzzy: true}}
	var cursors []string
	for i := range queries {
		queries[i].Index, queries[i].Limit = items, 5
		for _, ask := range []asking{search.Index.Search, find} {
			hits, err := ask(b.ix, t.Context(), queries[i])
			failtest.On(t, err)
			for _, h := range hits {
				cursors = append(cursors, h.After)
			}
		}
	}
	for _, s := range []string{"x", "s", "!", "null", "[]", "{}", "AAAA", "t", "tt", "f" + strings.Repeat("A", 30), strings.Repeat("A", 100000), "\xff", "a b", "\"", "\x00"} {
		cursors = append(cursors, s, base64.RawURLEncoding.EncodeToString([]byte(s)))
	}
	try := func(q search.Query, cursor string) error {
		q.After = cursor
		for _, ask := range []asking{search.Index.Search, find} {
			if _, err := ask(b.ix, t.Context(), q); err != nil && !errors.Is(err, search.ErrCursor) {
				return fmt.Errorf("%s after %.60q: %w", describe(q), cursor, err)
			}
		}
		return nil
	}
	for _, q := range queries {
		for _, c := range cursors {
			if err := try(q, c); err != nil {
				t.Error(err)
			}
			for range 5 { // cut, or with a letter changed
				bad := []byte(c)
				bad[rand.N(len(bad))] = byte(rand.N(256))
				if err := errors.Join(try(q, string(bad)), try(q, c[:rand.N(len(c))])); err != nil {
					t.Error(err)
				}
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		if err := try(rapid.SampledFrom(queries).Draw(rt, "query"), rapid.String().Draw(rt, "cursor")); err != nil {
			rt.Fatal(err)
		}
	})
	// A cursor of another query, or a text that is no cursor, is refused and not
	// misread.
	hits, _, err := search.Find(t.Context(), b.ix, queries[1])
	failtest.On(t, err)
	for _, q := range []search.Query{{Text: "texts"}, {}, {Text: "text", Sort: "n"}, {Text: "text", Filters: fields("n", value.OfInt(1))}, {Text: "text", Index: others}} {
		if q.Limit = 1; q.Index == "" {
			q.Index = items
		}
		q.After = hits[0].After
		if _, _, err := search.Find(t.Context(), b.ix, q); !errors.Is(err, search.ErrCursor) {
			t.Errorf("%s with a cursor of another query: %v", describe(q), err)
		}
	}
	q := queries[1]
	q.After = "no cursor at all"
	if _, err := b.ix.Search(t.Context(), q); !errors.Is(err, search.ErrCursor) {
		t.Errorf("no cursor at all: %v", err)
	}
}

// testMany: many documents, many words with the same beginning, many hits.
func testMany(t *testing.T, b *bench) {
	n := 5000
	if testing.Short() {
		n = 1500
	}
	var docs []search.Document
	want := make([]string, n)
	for i := range n {
		want[i] = fmt.Sprintf("id-%05d", i)
		docs = append(docs, with(b.doc(want[i], fmt.Sprintf("common title%05d word%d", i, i%10)), fields("group", value.OfInt(int64(i%100)), "n", value.OfInt(int64(n-i)))))
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	for part := range slices.Chunk(docs, 700) {
		b.apply(part...)
	}
	b.apply(docs[:n/2]...)
	b.settle()
	b.ordered(search.Query{}, want...)
	for _, q := range []search.Query{{Text: "common"}, {Text: "title"}, {Text: "common tit"}, {Text: "comon", Fuzzy: true}, {Sort: "n"}} {
		got := b.pages(q, 333, search.Index.Search)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %d of %d documents, or others", describe(q), len(got), n)
		}
	}
	b.found(search.Query{Text: "title01234"}, "id-01234")
	b.found(search.Query{Text: "common title0123 "}, "id-01230", "id-01231", "id-01232", "id-01233", "id-01234", "id-01235", "id-01236", "id-01237", "id-01238", "id-01239")
	if got := b.pages(search.Query{Text: "word3", Filters: fields("group", value.OfInt(53))}, 7, search.Index.Search); len(got) != n/100 {
		t.Errorf("%d documents of a group", len(got))
	}
	b.ordered(search.Query{Sort: "n", Limit: 3}, want[n-1], want[n-2], want[n-3])
	b.ordered(search.Query{Sort: "n", Reverse: true, Limit: 3}, "id-00000", "id-00001", "id-00002")
	var gone []search.Document
	for _, id := range want[10:] {
		gone = append(gone, b.gone(id))
	}
	b.apply(gone...)
	b.settle()
	b.ordered(search.Query{}, want[:10]...)
	b.found(search.Query{Text: "common"}, want[:10]...)
}
