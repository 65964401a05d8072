// Package searchtest is the contract of package search as a test suite: every driver
// that passes it is a search.Index. It compares sets and explicit orders, never scores,
// and gives an index time to show acknowledged changes.
package searchtest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/events"
	"weir/internal/search"
	"weir/internal/value"
)

// Run tests the index that open makes against the contract. Each call of open must
// return empty indexes of these schemas; open closes them when the test ends.
func Run(t *testing.T, open func(t *testing.T, schemas []search.Schema) search.Index) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b *bench)
	}{
		{"late and repeated changes", testLate},
		{"any delivery", testAnyDelivery},
		{"concurrent applies", testConcurrent},
		{"replaced documents", testReplaced},
		{"what is held", testHolds},
		{"refused documents", testRefused},
		{"several indexes", testSeveralIndexes},
		{"words", testWords},
		{"typos", testTypos},
		{"typos in long words", testLongTypos},
		{"all typos", testAllTypos},
		{"typos page by page", testTypoPages},
		{"hostile text", testHostileText},
		{"filters", testFilters},
		{"hostile fields", testHostileFields},
		{"sorts", testSorts},
		{"pages", testPages},
		{"pages while writing", testPagesWhileWriting},
		{"best first while others are written", testBestWhileWriting},
		{"a whole word is better than a beginning", testWholeFirst},
		{"hostile ids", testHostileIDs},
		{"wrong queries", testWrongQueries},
		{"made-up cursors", testMadeUpCursors},
		{"many documents", testMany},
		{"filled indexes", testFilled},
		{"refreshed", testRefreshed},
		{"after close", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, &bench{t: t, ix: open(t, schemas())})
		})
	}
}

// The indexes of the suite.
const (
	items  = "suite-items"
	others = "suite-others"
)

func schemas() []search.Schema {
	return []search.Schema{
		{
			Name:    items,
			Filters: []string{"group", "tags", "n", "run", "a.assetId", "#", "with space", `"quoted"`, "ünï"},
			Sorts:   []string{"n", "at", "a.assetId", "#"},
		},
		{Name: others},
	}
}

// bench is an index under test.
type bench struct {
	t  tester
	ix search.Index
	at uint64 // the last position given out
}

// tester is a test, or one attempt of a property test.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Context() context.Context
}

// next is a position above all earlier ones.
func (b *bench) next() events.Position {
	b.at++
	return events.PositionOf(b.at)
}

// patience is how long an index may take to show acknowledged changes.
const patience = 15 * time.Second

// apply applies changes; none may fail.
func (b *bench) apply(docs ...search.Document) {
	b.t.Helper()
	if err := apply(b.t.Context(), b.ix, docs); err != nil {
		b.t.Fatal(err)
	}
}

func apply(ctx context.Context, ix search.Index, docs []search.Document) error {
	errs, err := ix.Apply(ctx, docs)
	if err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// put applies a document with this text at the next position.
func (b *bench) put(id, text string) {
	b.t.Helper()
	b.apply(b.doc(id, text))
}

func (b *bench) doc(id, text string) search.Document {
	return search.Document{Index: items, ID: id, Position: b.next(), Text: []string{text}}
}

func (b *bench) gone(id string) search.Document {
	return search.Document{Index: items, ID: id, Position: b.next(), Deleted: true}
}

func with(d search.Document, values map[string]value.Value) search.Document {
	d.Values = values
	return d
}

// settle returns when every change applied before can be found, so that a document that
// is missing then stays missing.
func (b *bench) settle() {
	b.t.Helper()
	b.put("settled", "zzsettled")
	b.found(search.Query{Text: "zzsettled"}, "settled")
	b.apply(b.gone("settled"))
	b.found(search.Query{Text: "zzsettled"})
}

// found waits until the answer to a query is these ids, in any order.
func (b *bench) found(q search.Query, want ...string) {
	b.t.Helper()
	b.wait(q, want, true, search.Index.Search)
}

// ordered waits until the answer to a query is these ids in this order.
func (b *bench) ordered(q search.Query, want ...string) {
	b.t.Helper()
	b.wait(q, want, false, search.Index.Search)
}

type asking func(search.Index, context.Context, search.Query) ([]search.Hit, error)

func (b *bench) wait(q search.Query, want []string, anyOrder bool, ask asking) {
	b.t.Helper()
	if q.Index == "" {
		q.Index = items
	}
	if q.Limit == 0 {
		q.Limit = 10000
	}
	want = slices.Clone(want)
	if anyOrder {
		slices.Sort(want)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		hits, err := ask(b.ix, b.t.Context(), q)
		if err != nil {
			b.t.Fatalf("%s: %v", describe(q), err)
		}
		got := ids(hits)
		if anyOrder {
			slices.Sort(got)
		}
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s (-want +got):\n%s", describe(q), cmp.Diff(want, got))
		}
	}
}

func describe(q search.Query) string {
	s := "text " + strconv.Quote(q.Text)
	if q.Sort != "" {
		s += " by " + q.Sort
	}
	if q.Reverse {
		s += " backwards"
	}
	for f, v := range q.Filters {
		s += " where " + f + " is the " + v.Kind().String() + " " + strconv.Quote(v.Text())
	}
	return s
}

func ids(hits []search.Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

// pages asks for page after page of n hits.
func (b *bench) pages(q search.Query, n int, ask asking) []string {
	b.t.Helper()
	q.Index, q.Limit = items, n
	all := []string{}
	for {
		hits, err := ask(b.ix, b.t.Context(), q)
		if err != nil {
			b.t.Fatalf("%s: %v", describe(q), err)
		}
		if len(hits) > n {
			b.t.Fatalf("%s: %d hits on a page of %d", describe(q), len(hits), n)
		}
		if all = append(all, ids(hits)...); len(hits) == 0 {
			return all
		}
		q.After = hits[len(hits)-1].After
	}
}

// find is search.Find without its second result.
func find(ix search.Index, ctx context.Context, q search.Query) ([]search.Hit, error) {
	hits, _, err := search.Find(ctx, ix, q)
	return hits, err
}
