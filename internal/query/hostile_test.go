package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// hostile are values that a person may send to reach what is not theirs, or to
// break something.
var hostile = []string{
	"", " ", "#", "|", "/", "%", "%23", "%2", "a#b", "like#p1", "like#", "u1#BRAND#x", "u#v", "\x00", "\x7f", "\n", "\u2028", "\uFFFD",
	"\xff\xfe", "a\xc3", "META", "SHELF#s", "{shelf}", "[x]", "../..", "true", "0", "-1", "1e400", "NaN", "p1\x00", "é", "e\u0301",
	strings.Repeat("k", 1025), strings.Repeat("#", 2049), strings.Repeat("é", 1500), strings.Repeat("x", 3<<10),
}

// Whatever the parameters are, the rows that come belong to them, and those that
// belong come.
func TestHostileParametersReachNothing(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 7)
	type mark struct{ user, typ, product string }
	var marks []mark
	for _, v := range hostile {
		if v == "" || !valid8(v) || len(v) > 200 {
			continue
		}
		for _, m := range []mark{{v, "like", "p1"}, {"u1", v, "p1"}, {"u1", "like", v}} {
			marks = append(marks, m)
			w.put("Mark", "user", m.user, "type", m.typ, "product", m.product)
		}
		w.put("Product", "product", v, "shop", v, "brand", v, "at", "2025-01-01T00:00:00Z", "code", "c", "title", v)
	}
	mine := w.model.Entity("Mark")
	for _, user := range hostile {
		for _, typ := range append(hostile, "like") {
			rows, err := w.engine.Run(context.Background(), "marks", map[string]string{"user": user, "type": typ}, Page{})
			if err != nil && !errors.Is(err, ErrParameter) {
				t.Fatalf("%q %q: %v", user, typ, err)
			}
			for _, row := range rows.Items {
				if !asGiven(mine, "user", row, user) || !asGiven(mine, "type", row, typ) {
					t.Errorf("user %q, type %q reach %v", user, typ, row)
				}
			}
		}
	}
	for _, m := range marks {
		if strings.Contains(m.typ, "#") {
			continue // another row by its key: its type ends at the separator
		}
		rows := ask(t, w.engine, "marks", map[string]string{"user": m.user, "type": m.typ}, 0)
		if !hasRow(rows, "SK", "MARK#"+m.typ+"#"+m.product) {
			t.Errorf("%+v is not found", m)
		}
	}
}

// asGiven reports whether a row's key holds a value, as it is or escaped.
func asGiven(e *model.Entity, name string, row value.Item, given string) bool {
	f := e.Field(name)
	have := f.Get(row).Text()
	return have == given || have == f.Key.Escape(given)
}

// Rows that were written through weir have what a person typed escaped in their
// keys and say what that is, others have it as it is: both are found by what was typed,
// page by page, each once, and neither by the text that only its key has.
func TestRowsAreFoundByWhatWasTyped(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	mine := w.model.Entity("Mark")
	key := mine.Field("user").Key
	for _, user := range []string{"a#b", "a%23b", "plain", "like|x"} {
		for _, product := range []string{"p1", "p2", "p3"} {
			w.put("Mark", "user", user, "type", "like", "product", product)
			row := makeRow(t, w.model, "Mark", "user", key.Escape(user), "type", "like", "product", "typed-"+product)
			if key.Escape(user) != user {
				row = row.With(value.Attr{Name: "user", Value: value.OfString(user)})
			}
			w.add(mine, row)
		}
	}
	for user, n := range map[string]int{"a#b": 6, "plain": 6, "like|x": 6, "a%23b": 6, "a%2523b": 0, "a": 0} {
		for _, limit := range []int{0, 1, 2, 3, 4} {
			rows := ask(t, w.engine, "marks", map[string]string{"user": user}, limit)
			seen := map[string]bool{}
			for _, row := range rows {
				seen[row.Get("PK").Text()+row.Get("SK").Text()] = true
			}
			if len(rows) != n || len(seen) != n {
				t.Errorf("%q in pages of %d: %v", user, limit, rows)
			}
		}
	}
	shelf := makeRow(t, w.model, "Shelf", "shelf", "s%231", "at", "2025-01-01T00:00:00Z")
	w.add(w.model.Entity("Shelf"), shelf.With(value.Attr{Name: "shelf", Value: value.OfString("s#1")}))
	for shelf, n := range map[string]int{"s#1": 1, "s%231": 0} {
		if rows := ask(t, w.engine, "shelf", map[string]string{"shelf": shelf}, 0); len(rows) != n {
			t.Errorf("a single row, %q: %v", shelf, rows)
		}
	}
}

// Where the keys of one spelling begin with those of the other, pages go on to the end.
func TestSpellingsThatBeginAlikeEnd(t *testing.T) {
	m, err := model.Load("viewing")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, m, 0)
	for i, sport := range []string{"%", "%", "%25", "%25", "%2525"} {
		w.put("History", "profileId", "p", "a.assetId", fmt.Sprint("raw", i), "a.state", "COMPLETED", "a.updateTime", "2025-01-01T00:00:00Z", "e.sport", sport)
		row := w.put("History", "profileId", "p", "a.assetId", fmt.Sprint("typed", i), "a.state", "COMPLETED", "a.updateTime", "2025-01-01T00:00:00Z", "e.sport", sport)
		w.add(m.Entity("History"), row.With(value.Attr{Name: "path.sport", Value: value.OfString("/" + strings.ReplaceAll(sport, "%", "%25"))}))
	}
	for sport, n := range map[string]int{"%": 4, "%25": 4, "%2525": 2} {
		rows, cursor := 0, ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			res, err := w.engine.Run(t.Context(), "by-sport", map[string]string{"profileId": "p", "sport": sport}, Page{Limit: 1, Cursor: cursor})
			if err != nil || pages > 30 {
				t.Fatal(pages, err)
			}
			rows, cursor = rows+len(res.Items), res.Cursor
		}
		if rows != n {
			t.Errorf("%q: %d rows, not %d", sport, rows, n)
		}
	}
}

func hasRow(rows []value.Item, attr, text string) bool {
	return slices.ContainsFunc(rows, func(row value.Item) bool { return row.Get(attr).Text() == text })
}

func valid8(s string) bool { return strings.ToValidUTF8(s, "") == s }

// Rows that weir makes have what a person typed escaped in their keys, and are
// found by what was typed.
func TestDerivedRowsAreFoundByWhatWasTyped(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	var typed []string
	for _, v := range hostile {
		if v != "" && valid8(v) && len(v) < 300 {
			typed = append(typed, v)
		}
	}
	for i, v := range typed {
		w.put("Product", "product", fmt.Sprint("p", i), "shop", v, "brand", v, "at", "2025-01-01T00:00:00Z", "title", v)
	}
	for i, v := range typed {
		for name, q := range map[string]map[string]string{
			"copies":          {"user": v},
			"copies by brand": {"user": v, "brand": v},
			"copies-by-brand": {"user": v, "brand": v},
		} {
			name, _, _ := strings.Cut(name, " ")
			rows := ask(t, w.engine, name, q, 0)
			if len(rows) != 1 || rows[0].Get("SK").Text() != fmt.Sprint("COPY#p", i) {
				t.Errorf("%s %q: %v", name, v, rows)
			}
		}
	}
	for _, v := range []string{"a%23b", "u1%23BRAND%23x", "%25"} {
		if rows := ask(t, w.engine, "copies", map[string]string{"user": v}, 0); len(rows) > 0 {
			t.Errorf("the escaped text %q finds %v", v, rows)
		}
	}
}

// Every query of every model answers any parameters with rows, or with one of the
// kinds of error; never with a fault of the store.
func TestAnyParametersAreAnswered(t *testing.T) {
	for _, name := range []string{"gallery", "wardrobe", "movienight", ""} {
		m := parseModel(t, shopModel)
		if name != "" {
			m = loadModel(t, name)
		}
		w := newWorld(t, m, 8)
		w.engine = mustEngine(t, Config{Model: m, Store: strict{w.fake}, Search: everyIndex{}})
		rapid.Check(t, func(t *rapid.T) {
			q := m.Queries[rapid.IntRange(0, len(m.Queries)-1).Draw(t, "query")]
			given := map[string]string{}
			for _, p := range w.engine.Parameters(q.Name) {
				v := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String(), rapid.SampledFrom([]string{"true", "2025-01-01T00:00:00Z", "7"})).Draw(t, p.Name)
				if !p.Optional || rapid.Bool().Draw(t, "given") {
					given[p.Name] = v
				}
			}
			_, err := w.engine.Run(context.Background(), q.Name, given, Page{})
			if err != nil && !errors.Is(err, ErrParameter) {
				t.Fatalf("%s %q: %v", q.Name, given, err)
			}
		})
	}
}

// strict refuses reads that DynamoDB refuses.
type strict struct{ *fake }

func (s strict) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	seen := map[string]bool{}
	for _, r := range refs {
		if err := checkKey(r.Key.Partition, r.Key.Sort); err != nil {
			return nil, err
		}
		if id := keyText(r.Key); seen[id] {
			return nil, fmt.Errorf("%q twice in a batch", id)
		} else {
			seen[id] = true
		}
	}
	if len(refs) == 0 || len(refs) > 100 {
		return nil, fmt.Errorf("a batch of %d", len(refs))
	}
	return s.fake.Get(ctx, refs)
}

func (s strict) Query(ctx context.Context, q store.Query) (store.Page, error) {
	ranges := 0
	for _, v := range []value.Value{q.Sort.Equal, q.Sort.Prefix} {
		if !v.IsMissing() {
			ranges++
		}
	}
	if !q.Sort.From.IsMissing() || !q.Sort.Below.IsMissing() {
		ranges++
	}
	if ranges > 1 {
		return store.Page{}, fmt.Errorf("two ranges: %+v", q.Sort)
	}
	if q.Partition.IsMissing() || q.Limit < 1 {
		return store.Page{}, fmt.Errorf("a scan, or a page of any size: %+v", q)
	}
	for _, v := range []value.Value{q.Sort.Equal, q.Sort.Prefix, q.Sort.From, q.Sort.Below} {
		if err := checkKey(q.Partition, v); err != nil {
			return store.Page{}, err
		}
	}
	return s.fake.Query(ctx, q)
}

func checkKey(partition, sort value.Value) error {
	switch {
	case partition.Kind() == value.String && partition.Text() == "", sort.Kind() == value.String && sort.Text() == "":
		return errors.New("an empty key")
	case len(partition.Text()) > store.MaxPartitionBytes, len(sort.Text()) > store.MaxSortBytes:
		return errors.New("a key that is too long")
	case !valid8(partition.Text()), !valid8(sort.Text()):
		return errors.New("a key that is not UTF-8")
	}
	return nil
}

func TestEmptyAndUnknownParametersAreRefused(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 0)
	for _, c := range []struct {
		query string
		given map[string]string
		limit int
		say   string
	}{
		{"marks", nil, 0, "user is missing"},
		{"marks", map[string]string{"user": ""}, 0, "user is empty"},
		{"marks", map[string]string{"user": "u", "type": ""}, 0, "type is empty"},
		{"marks", map[string]string{"user": "u\xff"}, 0, "user is not UTF-8"},
		{"marks", map[string]string{"user": "u", "tpye": "x"}, 0, `tpye is no parameter of this query; did you mean "type"?`},
		{"marks", map[string]string{"user": "u", "zzzzzz": "x"}, 0, "it has user, type, color"},
		{"marks", map[string]string{"tpye": "x"}, -1, `user is missing; tpye is no parameter of this query; did you mean "type"?; limit must be from 1 to 1000, not -1`},
		{"shelves", map[string]string{"a": "b"}, 0, "it has none"},
		{"shelves", nil, 1001, "limit must be from 1 to 1000, not 1001"},
		{"shown", params("shown=yes"), 0, `shown must be true or false, not "yes"`},
		{"price", params("sku=a from=ten"), 0, `from must be a number, not "ten"`},
		{"price", params("sku=a from=1e999"), 0, "from must be a number"},
		{"shelves-before", params("before=yesterday"), 0, "before must be a time such as 2025-11-13T10:30:00Z"},
		{"search-products", nil, 0, "q is missing"},
		{"search-products", params("q=x sort=title"), 0, "sort must be one of at, -at, stars, -stars"},
		{"search-products", params("q=x stars=many"), 0, "stars must be a number"},
		{"search-products", map[string]string{"q": manyWords()}, 0, "at most 256"},
	} {
		w.refused(c.query, c.given, Page{Limit: c.limit}, ErrParameter, c.say)
	}
	w.refused("shelfs", nil, Page{}, ErrNotFound, `shop has no query "shelfs"; did you mean "shelf"?`)
	w.refused("x", nil, Page{}, ErrNotFound, `shop has no query "x"`)
	if p := w.engine.Parameters("nothing"); p != nil {
		t.Error(p)
	}
}

func manyWords() string {
	var words []string
	for i := range 300 {
		words = append(words, fmt.Sprint("w", i))
	}
	return strings.Join(words, " ")
}
