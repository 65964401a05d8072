package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// rangeModel has a range on each form of a sort key: a text between others and at the end, a time with a fraction, a number, a
// time that is stored as a number, keys in lower case, keys that weir makes, and an optional tail.
const rangeModel = `
model: ranges
tables:
  tab: {key: [PK, SK], indexes: {by-at: [APK, at], by-place: {key: [LPK, LSK], projection: keys}}}
  num: {key: [owner, {no: number}]}
  sec: {key: [owner, {at: number}]}
entities:
  Order:
    table: tab
    where: {kind: order}
    key: {PK: "C#{customer}", SK: "O#{at}#{no}", APK: "ALL", at: "{at}", LPK: "AT#{customer}", LSK: "{place}[#{shelf}]"}
    attributes: {at: time!, no: string!, place: string, shelf: string}
  Name:
    table: tab
    where: {kind: name}
    key: {PK: {template: "N#{owner}", case: lower}, SK: {template: "NAME#{name}|{id}", case: lower}}
    attributes: {name: string!, id: string!, title: string}
  Copy:
    table: tab
    where: {kind: copy}
    key: {PK: "L#{owner}", SK: "{title}#{name}#{id}"}
    attributes: {}
  Item: {table: num, attributes: {owner: string!, no: number!}}
  Event: {table: sec, attributes: {owner: string!, at: {type: time, as: seconds, required: true}}}
derive:
  Copy: {row: Name, set: {owner: owner, title: title, name: name, id: id}}
queries:
  all-orders: {list: Order, with: [customer]}
  orders: {list: Order, with: [customer], range: {at: {atLeast: {param: "atLeast?"}, above: {param: "above?"}, atMost: {param: "atMost?"}, below: {param: "below?"}}}}
  orders-newest: {list: Order, with: [customer], order: newest, range: {at: {between: [{param: from}, {param: to}]}}}
  at: {list: Order, by: by-at, range: {at: {atLeast: {param: from}, below: {param: to}}}}
  numbered: {list: Order, with: [customer, at], range: {no: {begins: {param: start}}}, order: newest}
  places: {list: Order, by: by-place, with: [customer], range: {place: {atLeast: {param: "atLeast?"}, above: {param: "above?"}, atMost: {param: "atMost?"}, below: {param: "below?"}, begins: {param: "begins?"}}}}
  names: {list: Name, with: [owner], range: {name: {atLeast: {param: "atLeast?"}, above: {param: "above?"}, atMost: {param: "atMost?"}, below: {param: "below?"}, begins: {param: "begins?"}}}}
  copies: {list: Copy, with: [owner], range: {title: {begins: {param: start}}}}
  items: {list: Item, with: [owner], range: {no: {atLeast: {param: "atLeast?"}, above: {param: "above?"}, atMost: {param: "atMost?"}, below: {param: "below?"}}}}
  events: {list: Event, with: [owner], range: {at: {atLeast: {param: "atLeast?"}, above: {param: "above?"}, atMost: {param: "atMost?"}, below: {param: "below?"}}}}
  best: {list: Order, with: [customer], range: {at: {atLeast: {param: from}}}, sort: no}
`

// counted is a store that counts the rows that queries read.
type counted struct {
	store.Store
	rows int
}

func (c *counted) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := c.Store.Query(ctx, q)
	c.rows += len(page.Rows)
	return page, err
}

// putRanges puts 100 rows of each entity that a range reads.
func putRanges(w *world) {
	for i := range 100 {
		at := fmt.Sprintf("2026-%02d-%02dT%02d:00:00Z", 1+i/28, 1+i%28, i%24)
		w.put("Order", "customer", "c", "at", at, "no", fmt.Sprintf("n%02d", i), "place", fmt.Sprintf("p%02d", i))
		w.put("Order", "customer", "other", "at", at, "no", "x", "place", "p")
		w.put("Name", "owner", "o", "name", fmt.Sprintf("Ann%02d", i), "id", "i", "title", fmt.Sprintf("Ann%02d", i))
		w.put("Item", "owner", "o", "no", i-50)
		w.put("Event", "owner", "o", "at", 1767225600+60*i)
	}
}

// readsWhatItAnswers holds a store to it that the rows which ranges read are the rows that they answer.
func readsWhatItAnswers(t *testing.T, w *world) {
	t.Helper()
	c := &counted{Store: w.engine.Store}
	config := w.engine.Config
	config.Store = c
	engine := mustEngine(t, config)
	for _, q := range []struct {
		query, given string
		rows         int
	}{
		{"orders", "customer=c atLeast=2026-02-01T00:00:00Z below=2026-03-01T00:00:00Z", 28},
		{"orders", "customer=c atLeast=2026-02-01 below=2026-03-01", 28},
		{"orders", "customer=c below=2026-01-02", 1},
		{"orders", "customer=c atLeast=2026-04-01", 16},
		{"orders", "customer=c", 100},
		{"orders", "customer=c atLeast=2026-03-01 below=2026-02-01", 0},
		{"orders-newest", "customer=c from=2026-02-01 to=2026-02-28T23:59:59Z", 28},
		{"numbered", "customer=c at=2026-01-02T01:00:00Z start=n0", 1},
		{"places", "customer=c begins=p1", 10},
		{"places", "customer=c atLeast=p10 atMost=p19", 10},
		{"places", "customer=c above=p97", 2},
		{"places", "customer=c below=p02", 2},
		{"names", "owner=o begins=ann3", 10},
		{"names", "owner=o above=ANN10 below=Ann12", 1},
		{"copies", "owner=o start=Ann9", 10},
		{"items", "owner=o atLeast=-3 below=4", 7},
		{"items", "owner=o atLeast=-3 atMost=4", 8},
		{"events", "owner=o atLeast=2026-01-01T00:10:00Z atMost=2026-01-01T00:19:00Z", 10},
		{"best", "customer=c from=2026-04-01", 16},
	} {
		for _, limit := range []int{0, 3} {
			c.rows = 0
			got := len(ask(t, engine, q.query, params(q.given), limit))
			if got != q.rows || limit == 0 && c.rows != q.rows {
				t.Errorf("%s %s by %d: %d rows, %d read, want %d", q.query, q.given, limit, got, c.rows, q.rows)
			}
		}
	}
}

// TestRangesReadWhatTheyAnswer: a range reads no row that it does not answer.
func TestRangesReadWhatTheyAnswer(t *testing.T) {
	w := newWorld(t, parseModel(t, rangeModel), 0)
	putRanges(w)
	readsWhatItAnswers(t, w)
}

// TestRangesReadWhatTheyAnswerOnTheEmbeddedStore is the same on the embedded store.
func TestRangesReadWhatTheyAnswerOnTheEmbeddedStore(t *testing.T) {
	w := newRealWorld(t, parseModel(t, rangeModel))
	putRanges(w)
	w.settle()
	readsWhatItAnswers(t, w)
}

// TestRangesArePartsOfTheList: whatever stands in keys, what is below a bound and what is at least the bound are the whole list
// together, in its order, and so are what is at most the bound and above it. Pages of any size, on an unkind store, give the same.
func TestRangesArePartsOfTheList(t *testing.T) {
	m := parseModel(t, rangeModel)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, m, rapid.Uint64Range(0, 1<<40).Draw(rt, "seed"))
		moment := rapid.SampledFrom([]string{
			"2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.50Z", "2026-01-01T00:00:00.51Z", "2026-01-01T00:00:01Z",
			"2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00+01:00", "2026-01-02", "soon", "2026-01-01T10:00Z",
		})
		text := rapid.SampledFrom([]string{"a", "ab", "a!", "a!b", "a%", "b", "A", "Ab", "é", "\U0010ffff", "a\U0010ffff"})
		for i := range rapid.IntRange(0, 30).Draw(rt, "rows") {
			w.put("Order", "customer", "c", "at", moment.Draw(rt, "at"), "no", fmt.Sprint(i), "place", text.Draw(rt, "place"), "shelf", text.Draw(rt, "shelf"))
			w.put("Name", "owner", "o", "name", text.Draw(rt, "name"), "id", fmt.Sprint(i%5))
			w.put("Item", "owner", "o", "no", value.MustNumber(rapid.SampledFrom([]string{"1", "2", "2.5", "-3", "1e30", "0.001"}).Draw(rt, "no")))
			w.put("Event", "owner", "o", "at", rapid.IntRange(1767225598, 1767225602).Draw(rt, "second"))
		}
		for query, c := range map[string]struct{ fixed, limit string }{
			"orders": {"customer", rapid.SampledFrom([]string{"2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00.5Z", "2026-01-01T01:00:01+01:00", "2027-01-01"}).Draw(rt, "limit")},
			"places": {"customer", text.Draw(rt, "limit")},
			"names":  {"owner", text.Draw(rt, "limit")},
			"items":  {"owner", rapid.SampledFrom([]string{"2", "2.4", "-3", "1e30", "9e125"}).Draw(rt, "limit")},
			"events": {"owner", rapid.SampledFrom([]string{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z"}).Draw(rt, "limit")},
		} {
			part := func(op string) string {
				given := map[string]string{c.fixed: c.fixed[:1]}
				if op != "" {
					given[op] = c.limit
				}
				return rowTexts(ask(t, w.engine, query, given, rapid.IntRange(0, 5).Draw(rt, "page")))
			}
			whole := part("")
			if got := part("below") + part("atLeast"); got != whole {
				rt.Fatalf("%s %s: below and at least are\n%snot\n%s", query, c.limit, got, whole)
			}
			if got := part("atMost") + part("above"); got != whole {
				rt.Fatalf("%s %s: at most and above are\n%snot\n%s", query, c.limit, got, whole)
			}
			if query != "places" && query != "names" {
				continue
			}
			want := ""
			for _, row := range ask(t, w.engine, query, map[string]string{c.fixed: c.fixed[:1]}, 0) {
				have, start := row.Get("name").Text(), c.limit
				if query == "places" {
					have, _, _ = strings.Cut(row.Get("LSK").Text(), "#")
				} else {
					have, start = strings.ToLower(have), strings.ToLower(start)
				}
				if strings.HasPrefix(have, start) {
					want += rowTexts([]value.Item{row})
				}
			}
			if got := part("begins"); got != want {
				rt.Fatalf("%s begins %s:\n%snot\n%s", query, c.limit, got, want)
			}
		}
	})
}

// TestRangesOfPlainValues: of texts, times and numbers as applications write them, a range has those that a naive comparison of
// the values finds, oldest and newest first.
func TestRangesOfPlainValues(t *testing.T) {
	w := newWorld(t, parseModel(t, rangeModel), 3)
	putRanges(w)
	var ats []string
	for _, row := range ask(t, w.engine, "all-orders", params("customer=c"), 0) {
		ats = append(ats, row.Get("at").Text())
	}
	for i := 0; i < len(ats); i += 7 {
		for j := i; j < len(ats); j += 11 {
			want := slices.DeleteFunc(slices.Clone(ats), func(at string) bool { return cmp.Less(at, ats[i]) || at > ats[j] })
			given := map[string]string{"customer": "c", "from": ats[i], "to": ats[j]}
			slices.Reverse(want)
			for _, limit := range []int{0, 1, 4} {
				if got := brief(ask(t, w.engine, "orders-newest", given, limit), "at"); got != strings.Join(want, ",") {
					t.Errorf("%v by %d: %s, want %s", given, limit, got, want)
				}
			}
		}
	}
	w.want("at", "from=2026-01-01 to=2026-01-02", "2026-01-01T00:00:00Z,2026-01-01T00:00:00Z", "at")
	w.put("Name", "owner", "p", "name", "n", "id", "1", "title", "x#y") // weir escapes it in the key of the copy
	w.want("copies", "owner=p start=x#", "x%23y#n#1", "SK")
}

// TestRangesRefuseBounds: a bound that is no part of a key is refused with its parameter.
func TestRangesRefuseBounds(t *testing.T) {
	w := newWorld(t, parseModel(t, rangeModel), 0)
	w.refused("places", params("customer=c begins="), Page{}, ErrParameter, "begins is empty")
	w.refused("places", params("customer=c begins=p1#1"), Page{}, ErrParameter, `begins must not have "#", which ends it in the key {place}[#{shelf}]: "p1#1"`)
	w.refused("names", params("owner=o atLeast=a|b"), Page{}, ErrParameter, `atLeast must not have "|"`)
	w.refused("orders", params("customer=c below=yesterday"), Page{}, ErrParameter, "below must be a time")
	w.refused("items", params("owner=o above=x"), Page{}, ErrParameter, "above must be a number")
	w.refused("orders-newest", params("customer=c from=2026-01-01"), Page{}, ErrParameter, "to is missing")
	w.want("places", "customer=c atLeast="+strings.Repeat("z", 2000), "")
	w.want("places", "customer=c below="+strings.Repeat("z", 2000), "")
}

// TestRangesReadWhatTheyAnswerOnDynamoDB is the same on DynamoDB Local.
func TestRangesReadWhatTheyAnswerOnDynamoDB(t *testing.T) {
	cfg := dynamodbtest.Config(t)
	m := parseModel(t, rangeModel)
	w := newWorldOn(t, m, dynamodbtest.Open(t, cfg, tablesOf(m), dynamodb.Options{}))
	putRanges(w)
	w.settle()
	readsWhatItAnswers(t, w)
}
