package search

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"weir/internal/value"
)

// asked is an Index that notes its queries and answers from a list.
type asked struct {
	Index   // what no search needs
	queries []Query
	answers [][]Hit
	err     error
}

func (a *asked) Search(_ context.Context, q Query) ([]Hit, error) {
	a.queries = append(a.queries, q)
	if a.err != nil || len(a.answers) == 0 {
		return nil, a.err
	}
	hits := a.answers[0]
	a.answers = a.answers[1:]
	return hits, nil
}

func TestFind(t *testing.T) {
	hit := []Hit{{ID: "a", After: "driver's"}}
	for _, c := range []struct {
		name     string
		q        Query
		answers  [][]Hit
		asks     []bool // Fuzzy of each question
		forgiven bool
	}{
		{"a hit as typed", Query{Text: "panther"}, [][]Hit{hit}, []bool{false}, false},
		{"a hit with a typo", Query{Text: "panther"}, [][]Hit{nil, hit}, []bool{false, true}, true},
		{"no hit at all", Query{Text: "panther"}, nil, []bool{false, true}, true},
		{"nothing to forgive", Query{Text: "the fox 2049"}, nil, []bool{false}, false},
		{"one word to forgive", Query{Text: "the foxes 2049"}, nil, []bool{false, true}, true},
		{"no text", Query{}, nil, []bool{false}, false},
		{"forgiving wanted", Query{Text: "panther", Fuzzy: true}, nil, []bool{true}, true},
	} {
		ix := &asked{answers: c.answers}
		_, forgiven, err := Find(t.Context(), ix, c.q)
		var asks []bool
		for _, q := range ix.queries {
			asks = append(asks, q.Fuzzy)
		}
		if err != nil || forgiven != c.forgiven || !slices.Equal(asks, c.asks) {
			t.Errorf("%s: forgiven %v, asked %v, %v", c.name, forgiven, asks, err)
		}
	}
	broken := errors.New("broken")
	if _, _, err := Find(t.Context(), &asked{err: broken}, Query{Text: "panther"}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestFindAfter: the driver gets its cursor back unchanged, in the mode of the page
// that it came from, and an empty last page does not change the mode.
func TestFindAfter(t *testing.T) {
	hit := []Hit{{ID: "a", After: "driver's"}}
	for _, forgiven := range []bool{false, true} {
		q := Query{Index: "i", Text: "Panther", Limit: 3, Filters: map[string]value.Value{"a": value.OfInt(1), "b": value.OfString("1")}}
		ix := &asked{answers: [][]Hit{hit}}
		if forgiven {
			ix.answers = [][]Hit{nil, hit}
		}
		hits, _, err := Find(t.Context(), ix, q)
		if err != nil {
			t.Fatal(err)
		}
		q.After, q.Limit, q.Text = hits[0].After, 9, "panther " // the same words
		ix = &asked{}
		if _, got, err := Find(t.Context(), ix, q); err != nil || got != forgiven {
			t.Errorf("forgiven %v: %v, %v", forgiven, got, err)
		}
		if len(ix.queries) != 1 || ix.queries[0].After != "driver's" || ix.queries[0].Fuzzy != forgiven {
			t.Errorf("forgiven %v: asked %+v", forgiven, ix.queries)
		}
		for name, other := range map[string]Query{
			"index":  {Index: "j", Text: q.Text, Filters: q.Filters},
			"text":   {Index: "i", Text: "pan ther", Filters: q.Filters},
			"filter": {Index: "i", Text: q.Text, Filters: map[string]value.Value{"a": value.OfString("1"), "b": value.OfString("1")}},
			"sort":   {Index: "i", Text: q.Text, Filters: q.Filters, Sort: "x"},
			"order":  {Index: "i", Text: q.Text, Filters: q.Filters, Reverse: true},
		} {
			other.After = q.After
			if _, _, err := Find(t.Context(), &asked{}, other); !errors.Is(err, ErrCursor) || !errors.Is(err, ErrQuery) {
				t.Errorf("another %s: %v", name, err)
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, p := range []Place{
		PlaceByScore(0, "a"), PlaceByScore(1.5, "a"), PlaceByScore(-math.MaxFloat64, "id with \x00 and ü"), PlaceByKey("", "a"),
		PlaceByKey("sword", "k"), PlaceByKey(strings.Repeat("k", 1000), strings.Repeat("i", MaxID)), PlaceLast("a"),
	} {
		if back, err := parsePlace(p.String()); err != nil || back != p {
			t.Errorf("%+v is read as %+v, %v", p, back, err)
		}
		for n := range len(p.String()) {
			if _, err := parsePlace(p.String()[:n]); err != nil && !errors.Is(err, ErrCursor) {
				t.Errorf("the first %d of %s: %v", n, p, err)
			}
		}
	}
	for _, p := range []Place{PlaceByScore(math.NaN(), "a"), PlaceByScore(math.Inf(1), "a"), PlaceByScore(1, ""), PlaceLast(strings.Repeat("i", MaxID+1))} {
		if _, err := parsePlace(p.String()); !errors.Is(err, ErrCursor) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add(PlaceByScore(1, "a").String())
	f.Add(PlaceByKey("k", "a").String())
	f.Add(PlaceLast("a").String())
	f.Add("a_______________")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePlace(s)
		if err != nil && !errors.Is(err, ErrCursor) {
			t.Error(err)
		}
		if again, err2 := parsePlace(p.String()); err == nil && (err2 != nil || again != p) {
			t.Errorf("%+v is read as %+v, %v", p, again, err2)
		}
	})
}

func TestSortKeys(t *testing.T) {
	var last string
	for _, v := range []value.Value{
		value.OfBool(false), value.OfBool(true),
		value.MustNumber("-9.9999999999999999999999999999999999999E+125"), value.MustNumber("-1E+125"), value.MustNumber("-12"), value.MustNumber("-11.5"), value.MustNumber("-11"),
		value.MustNumber("-1.1"), value.MustNumber("-1"), value.MustNumber("-1E-130"), value.MustNumber("0"), value.MustNumber("1E-130"), value.MustNumber("1"),
		value.MustNumber("1.1"), value.MustNumber("11"), value.MustNumber("11.5"), value.MustNumber("12"), value.MustNumber("1E+125"), value.MustNumber("9.9999999999999999999999999999999999999E+125"),
		value.OfString(""), value.OfString("a"), value.OfString("a\x00"), value.OfString("ab"), value.OfString("é"), value.OfString("😀"),
	} {
		key, ok := SortKey(v)
		if !ok || key <= last {
			t.Errorf("%s %q has the key %q, behind %q", v.Kind(), v.Text(), key, last)
		}
		last = key
	}
	for _, v := range []value.Value{{}, value.OfNull(), value.OfList(value.OfInt(1)), value.OfMap(nil), value.OfBinary("x"), value.OfStrings([]string{"a"})} {
		if key, ok := SortKey(v); ok {
			t.Errorf("%s has the key %q", v.Kind(), key)
		}
	}
	if a, _ := SortKey(value.OfString(strings.Repeat("ü", 1000))); len(a) > 1+maxTerm || strings.ToValidUTF8(a, "?") != a {
		t.Errorf("a key of %d bytes: %q", len(a), a)
	}
}
