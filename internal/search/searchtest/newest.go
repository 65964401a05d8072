package searchtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/value"
)

// testLate: a late or repeated older document does not replace a newer one, and a
// deleted document stays deleted.
func testLate(t *testing.T, b *bench) {
	first, second := b.doc("a", "first"), b.doc("a", "second")
	b.apply(second)
	b.apply(first)
	b.settle()
	b.found(search.Query{Text: "first"})
	b.found(search.Query{Text: "second"}, "a")

	born, died := b.doc("b", "born"), b.gone("b")
	b.apply(died)
	b.apply(born)
	b.settle()
	b.found(search.Query{}, "a")
	b.apply(born, died)
	b.apply(born)
	b.settle()
	b.found(search.Query{}, "a")

	b.put("b", "again")
	b.apply(died, born, first, second)
	b.settle()
	b.found(search.Query{Text: "again"}, "b")
	b.found(search.Query{}, "a", "b")

	b.apply(b.doc("c", "one"), b.doc("c", "two"), b.gone("c"), b.doc("c", "four"))
	b.apply(b.doc("d", "one"), b.gone("d"))
	older, newer := b.doc("f", "older"), b.doc("f", "newer")
	b.apply(newer, older)
	end, again := b.gone("g"), b.doc("g", "again")
	b.apply(again, end)
	b.settle()
	b.found(search.Query{Text: "newer"}, "f")
	b.found(search.Query{Text: "again"}, "b", "g")
	b.apply(b.gone("f"), b.gone("g"))
	b.settle()
	b.found(search.Query{Text: "four"}, "c")
	b.found(search.Query{}, "a", "b", "c")

	// Positions are integers of up to 40 digits, neither text nor 64-bit numbers.
	long, err := events.ParsePosition("1" + strings.Repeat("0", 39))
	failtest.On(t, err)
	short, err := events.ParsePosition(strings.Repeat("9", 21))
	failtest.On(t, err)
	b.apply(search.Document{Index: items, ID: "e", Position: long, Text: []string{"long"}})
	b.apply(search.Document{Index: items, ID: "e", Position: short, Text: []string{"short"}})
	b.settle()
	b.found(search.Query{Text: "long"}, "e")
	b.found(search.Query{Text: "short"})
}

// testAnyDelivery draws histories of a few documents, and ways to deliver them: in any
// order, cut anywhere, repeated in whole or in part. After every part, exactly the
// newest changes delivered so far must be found.
func testAnyDelivery(t *testing.T, b *bench) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		b.t = rt
		history := drawHistory(rt, b, run)
		model := newest{}
		for range rapid.IntRange(1, 3).Draw(rt, "parts") {
			part := drawDelivery(rt, history)
			for len(part) > 0 {
				n := rapid.IntRange(1, len(part)).Draw(rt, "batch")
				b.apply(part[:n]...)
				model.take(part[:n])
				part = part[n:]
			}
			b.settle()
			model.check(b, run)
		}
	})
}

// vocabulary has the words of drawn documents.
var vocabulary = []string{"amber", "birch", "cedar"}

func drawHistory(rt *rapid.T, b *bench, run int) []search.Document {
	var history []search.Document
	for range rapid.IntRange(1, 24).Draw(rt, "changes") {
		id := fmt.Sprintf("run %d document %d", run, rapid.IntRange(0, 5).Draw(rt, "document"))
		if rapid.IntRange(0, 3).Draw(rt, "delete") == 0 {
			history = append(history, b.gone(id))
			continue
		}
		values := map[string]value.Value{"run": value.OfInt(int64(run))}
		if n := rapid.IntRange(-2, 2).Draw(rt, "n"); n != 0 {
			values["n"] = value.OfInt(int64(n))
		}
		history = append(history, with(b.doc(id, rapid.SampledFrom(vocabulary).Draw(rt, "text")), values))
	}
	return history
}

func drawDelivery(rt *rapid.T, history []search.Document) []search.Document {
	var out []search.Document
	for range rapid.IntRange(1, 3).Draw(rt, "times") {
		from := rapid.IntRange(0, len(history)-1).Draw(rt, "from")
		to := rapid.IntRange(from+1, len(history)).Draw(rt, "to")
		out = append(out, history[from:to]...)
	}
	if rapid.Bool().Draw(rt, "in order") {
		return out
	}
	return rapid.Permutation(out).Draw(rt, "order")
}

// newest is the model: the newest change of each document.
type newest map[string]search.Document

func (m newest) take(docs []search.Document) {
	for _, d := range docs {
		if old, ok := m[d.ID]; !ok || d.Position.Compare(old.Position) > 0 {
			m[d.ID] = d
		}
	}
}

// check searches for the documents of a run by word, by value and in order.
func (m newest) check(b *bench, run int) {
	b.t.Helper()
	var live []search.Document
	for _, id := range slices.Sorted(maps.Keys(m)) {
		if !m[id].Deleted {
			live = append(live, m[id])
		}
	}
	of := func(keep func(search.Document) bool) (out []string) {
		for _, d := range live {
			if keep(d) {
				out = append(out, d.ID)
			}
		}
		return out
	}
	here := map[string]value.Value{"run": value.OfInt(int64(run))}
	for _, w := range vocabulary {
		b.found(search.Query{Text: w, Filters: here}, of(func(d search.Document) bool { return d.Text[0] == w })...)
	}
	slices.SortStableFunc(live, func(x, y search.Document) int { return compareN(x.Values["n"], y.Values["n"]) })
	b.ordered(search.Query{Sort: "n", Filters: here}, of(func(search.Document) bool { return true })...)
}

// compareN orders integers; a missing value comes last.
func compareN(x, y value.Value) int {
	if x.IsMissing() || y.IsMissing() {
		return -(int(x.Kind()) - int(y.Kind()))
	}
	return value.Compare(x, y)
}

// testConcurrent applies the same documents from many goroutines in different orders,
// while other goroutines search.
func testConcurrent(t *testing.T, b *bench) {
	var history []search.Document
	model := newest{}
	for n := range 300 {
		id := fmt.Sprintf("document %d", n%40)
		if d := b.doc(id, vocabulary[n%3]); n%7 == 0 {
			history = append(history, b.gone(id))
		} else {
			history = append(history, with(d, map[string]value.Value{"run": value.OfInt(0), "n": value.OfInt(int64(n % 5))}))
		}
	}
	model.take(history)
	errs := make(chan error, 12)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			mine := slices.Clone(history)
			rand.New(rand.NewPCG(7, uint64(g))).Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			for part := range slices.Chunk(mine, 17+g) {
				errs <- apply(t.Context(), b.ix, part)
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			for range 50 {
				_, err := b.ix.Search(t.Context(), search.Query{Index: items, Text: "amber", Limit: 5})
				errs <- err
			}
		})
	}
	go func() { wg.Wait(); close(errs) }()
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	b.settle()
	model.check(b, 0)
}
