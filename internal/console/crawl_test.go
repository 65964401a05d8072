package console

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// secrets has hidden attributes of each type, and hidden ones that are derived in each way.
const secrets = `model: shop
tables: {shop-rows: {key: [PK, SK], indexes: {GSI1: [GSI1PK, GSI1SK]}}}
entities:
  Product:
    where: {kind: product}
    key: {PK: "PRODUCT#{id}", SK: ABOUT, GSI1PK: PRODUCT, GSI1SK: "{id}"}
    attributes:
      name: string!
      text: {type: string, hidden: true}
      number: {type: number, hidden: true}
      list: {type: list, hidden: true}
      map: {type: map, hidden: true}
      commas: {type: commas, hidden: true}
      strings: {type: strings, hidden: true}
      binary: {type: binary, hidden: true}
      any: {type: any, hidden: true}
      state: {type: string, enum: [new, rated]}
      said: {type: string, hidden: true}
  Review:
    where: {kind: review}
    key: {PK: "PRODUCT#{product}", SK: "REVIEW#{user}"}
    attributes: {stars: number!, words: {type: string, hidden: true}, cost: {type: number, hidden: true}}
  Follower:
    where: {kind: follower}
    key: {PK: "PRODUCT#{id}", SK: "FOLLOWER#{who}"}
    attributes: {nick: {type: string, hidden: true}}
  Copy:
    where: {kind: copy}
    key: {PK: "COPY#{id}", SK: ABOUT}
    attributes: {name: string, kept: {type: string, hidden: true}, deep: {type: map, hidden: true}, told: {type: string, hidden: true}}
  Log:
    where: {kind: log}
    key: {PK: "LOG#{id}", SK: "{at}"}
    attributes: {change: map}
  Sum:
    where: {kind: sum}
    key: {PK: "SUM#{id}", SK: ALL}
    attributes: {n: number, total: {type: number, hidden: true}}
  Notice:
    where: {kind: notice}
    key: {PK: "INBOX#{who}", SK: "{id}#{user}"}
    attributes: {words: {type: string, hidden: true}, nick: {type: string, hidden: true}}
derive:
  Product.reviews: {count: Review, to: {id: product}}
  Product.costs: {distinct: Review.cost, to: {id: product}, max: 3, hidden: true}
  Product.state: {steps: {rated: {when: Review, to: {id: product}, set: {said: words}}}}
  Copy: {row: Product, set: {id: id, name: name, kept: text, deep: {text: text, map: map}, told: {follow: Product.said, by: {id: id}}}}
  Log: {row: Product, keep: [insert, modify, remove], set: {id: id, at: $position, change: {old: $old, new: $new}}}
  Sum: {group: Review, by: {id: product}, set: {n: count, total: {sum: cost}}}
  Notice: {row: Review, keep: insert, each: {of: Follower, by: {id: product}}, set: {who: Follower.who, id: product, user: user, words: words, nick: Follower.nick}}
search:
  products: {of: Product, text: [name]}
queries:
  product: {get: Product, with: [id]}
  products: {list: Product, by: GSI1}
  logs: {list: Log, with: [id]}
  copy: {get: Copy, with: [id]}
  find: {search: products}
`

// linked finds the pages that a page leads to, and those that it sends the browser to.
var hrefs = regexp.MustCompile(` (?:href|action|src|data-[a-z]+)="(/[^"#]*)`)

// TestNothingHiddenOnAnyPage: no page that can be reached shows a hidden value, whatever its type, wherever it goes, and whether
// the row has it now, had it, or is gone; nor do dead letters about it.
func TestNothingHiddenOnAnyPage(t *testing.T) {
	w := openModel(t, Options{Write: true}, secrets)
	mark := func(s string) value.Value { return value.OfString("geheim" + s) }
	hidden := func(id string) value.Item {
		strs, _ := value.OfElements(value.StringSet, []value.Attr{{Value: mark("1")}, {Value: mark("2")}})
		return texts(id, "Tea pot").With(
			value.Attr{Name: "text", Value: mark(id)}, value.Attr{Name: "number", Value: number(t, "4711")}, value.Attr{Name: "commas", Value: mark(",geheim")},
			value.Attr{Name: "list", Value: value.OfList(mark(""), value.OfList(mark("")))}, value.Attr{Name: "binary", Value: value.OfString("Z2VoZWlt")},
			value.Attr{Name: "map", Value: value.OfMap(value.NewItem(value.Attr{Name: "geheim", Value: value.OfMap(value.NewItem(value.Attr{Name: "geheim", Value: mark("")}))}))},
			value.Attr{Name: "strings", Value: value.OfList(strs.Elements()[0].Value, strs.Elements()[1].Value)}, value.Attr{Name: "any", Value: value.OfList(number(t, "4711"))})
	}
	update := func(op ingest.Op, it value.Item) {
		t.Helper()
		to := &ingest.Writer{Model: w.part.Model, Store: w.s.Store}
		if res := to.Do(t.Context(), []ingest.Command{{Op: op, Entity: "Product", Item: it}})[0]; res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	w.put("Follower", value.NewItem(value.Attr{Name: "id", Value: value.OfString("pot")}, value.Attr{Name: "who", Value: value.OfString("bo")}, value.Attr{Name: "nick", Value: mark("")}))
	for _, id := range []string{"pot", "gone", "less"} {
		w.put("Product", hidden(id))
	}
	w.derive()
	for i := range 5 {
		w.put("Review", review("pot", string(rune('a'+i))).With(value.Attr{Name: "words", Value: mark("")}, value.Attr{Name: "cost", Value: value.OfInt(int64(4711 + i))}))
	}
	w.derive()
	update(ingest.Update, texts("less", "Less").With(value.Attr{Name: "text", Value: value.OfNull()}, value.Attr{Name: "map", Value: value.OfNull()}))
	update(ingest.Delete, value.NewItem(value.Attr{Name: "id", Value: value.OfString("gone")}))
	w.derive()
	for i, row := range []value.Item{ // as other programs write them
		review("pot", "x").With(value.Attr{Name: "kind", Value: value.OfString("review")}, value.Attr{Name: "cost", Value: mark("")}),
		review("pot", "y").With(value.Attr{Name: "kind", Value: value.OfString("review")}, value.Attr{Name: "cost", Value: number(t, "4711e20")}, value.Attr{Name: "words", Value: number(t, "4711")}),
		value.NewItem(value.Attr{Name: "text", Value: mark("")}, value.Attr{Name: "deep", Value: value.OfList(value.OfMap(value.NewItem(value.Attr{Name: "map", Value: mark("")})))}),
	} {
		key := store.Key{Partition: value.OfString("PRODUCT#pot"), Sort: value.OfString("REVIEW#" + string(rune('x'+i)))}
		row = row.With(value.Attr{Name: "PK", Value: key.Partition}, value.Attr{Name: "SK", Value: key.Sort})
		failtest.On(t, w.s.Store.Transact(t.Context(), []store.Write{{Ref: store.Ref{Table: "shop-rows", Key: key}, Put: row}}))
	}
	w.derive()
	for _, d := range []deadletter.Letter{
		{Kind: deadletter.Record, Target: "a record of one.jsonl", Reason: `NewImage.map.geheim[4711]."geheim": N: expected a string, found a number`, Raw: "geheim"},
		{Kind: deadletter.Image, Target: "Copy", Reason: `text is the string "geheim", not a number`, Row: pot, Record: owntable.RecordItem(&events.Record{Table: "shop-rows", Old: hidden("pot"), New: hidden("pot")})},
	} {
		if _, err := w.part.Runner.Letters().Keep(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	paths, seen := []string{"/", "/console/shop", "/console/shop/letters.json", "/console/shop/why?attr=kept&pk=COPY%23less&sk=ABOUT&table=shop-rows"}, map[string]bool{}
	kinds := map[string]bool{}
	secret := regexp.MustCompile(`geheim|Z2VoZWlt|4[,. ]?711`)
	for len(paths) > 0 {
		path := paths[0]
		if paths = paths[1:]; seen[path] || strings.HasSuffix(path, "/tail/events") || strings.Contains(path, "/tail/events?") {
			continue
		}
		seen[path] = true
		body := w.ask("GET", path).Body.String()
		if at := secret.FindStringIndex(body); at != nil {
			t.Errorf("%s has a hidden value: …%s…", path, body[max(0, at[0]-200):min(len(body), at[1]+20)])
		}
		kind, _, _ := strings.Cut(strings.TrimPrefix(path, "/console/shop/"), "?")
		kinds[kind] = true
		for _, m := range hrefs.FindAllStringSubmatch(body, -1) {
			paths = append(paths, html.UnescapeString(m[1]))
		}
		if strings.HasPrefix(path, "/console/shop/row?") {
			paths = append(paths, strings.Replace(path, "/row?", "/row.json?", 1))
		}
		if len(seen) > 3000 {
			t.Fatalf("there are pages without an end: %s", path)
		}
	}
	for _, kind := range []string{"rows", "row", "row.json", "why", "dead", "health", "tail", "letters.json"} {
		if !kinds[kind] {
			t.Errorf("no page %s was reached", kind)
		}
	}
	t.Logf("%d pages", len(seen))
}
