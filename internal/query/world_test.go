package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/projections/copies"
	"weir/internal/projections/document"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// shopModel has one of everything that a query can meet.
const shopModel = `
model: shop
tables:
  shop:
    key: [PK, SK]
    ttl: ttl
    indexes:
      GSI1: [GSI1PK, GSI1SK]
      by-kind: {key: [kind, at], projection: keys}
      shown-at: [shown, at]
      by-code: [code]
      lean: {key: [LPK, LSK], projection: keys}
  Prices: {key: [sku, {from: number}]}
entities:
  Shelf:
    table: shop
    where: {kind: Shelf}
    key: {PK: "SHELF#{shelf}", SK: META, GSI1PK: SHELVES, GSI1SK: "{at}#{shelf}", kind: Shelf, at: "{at}"}
    attributes: {shelf: string!, at: time!, shown: flag, note: string, pin: {type: string, hidden: true}}
  Place:
    table: shop
    where: {kind: Place}
    key: {PK: "SHELF#{shelf}", SK: "PRODUCT#{product}", GSI1PK: "PRODUCT#{product}", GSI1SK: "SHELF#{shelf}"}
    attributes: {at: time, product: string}
  Product:
    table: shop
    where: {kind: Product}
    key: {PK: "PRODUCT#{product}", SK: META}
    attributes: {product: string!, title: string, brand: string, shop: string, tag: strings, stars: number, hot: flag, code: string, at: time}
  Mark:
    table: shop
    where: {kind: Mark}
    key: {PK: "USER#{user}", SK: "MARK#{type}#{product}", GSI1PK: "MARKED#{product}", GSI1SK: "{type}#{user}", LPK: "LEAN#{color}", LSK: "{at}#{weight}"}
    attributes: {at: time, color: string, weight: number}
  Visit:
    table: shop
    where: {kind: Visit}
    key: {PK: "USER#{user}", SK: "VISIT#{until}#{visit}"}
    expires: until
    attributes: {visit: string, until: time}
  Copy:
    table: shop
    where: {kind: Copy}
    key: {PK: "USER#{user}", SK: "COPY#{product}", GSI1PK: "USER#{user}#BRAND#{brand}", GSI1SK: "{at}"}
    attributes: {title: string}
  Price:
    table: Prices
    key: {sku: "{sku}", from: "{from}"}
    attributes: {sku: string!, from: number!, amount: number, path: string}
derive:
  Shelf.places: {count: Place}
  Product.mean: {mean: Mark.weight, round: 2}
  Product.marks: {count: Mark}
  Product.secretly: {distinct: Mark.user, hidden: true, max: 100}
  Product.colors: {distinct: Mark.color, max: 100}
  Copy:
    row: Product
    set: {user: shop, product: product, brand: brand, at: at, title: title}
search:
  products: {of: Product, where: {code: present}, text: [title], filters: [brand, shop, tag, stars, hot], sorts: [at, stars]}
queries:
  shelf: {get: Shelf, with: [shelf]}
  shelves: {list: Shelf, by: GSI1, order: newest}
  shelves-before: {list: Shelf, by: GSI1, below: {at: before}}
  shown: {list: Shelf, by: shown-at, with: [shown]}
  kinds: {list: Shelf, by: by-kind, with: {kind: =Shelf}, order: newest}
  places: {list: Place, with: [shelf]}
  product: {get: Product, with: [product]}
  products-by-code: {list: Product, by: by-code, with: {code: code, stars: "stars?"}}
  marks: {list: Mark, with: {user: user, type: "type?", color: "color?"}}
  marked: {list: Mark, by: GSI1, with: {product: product, type: "type?"}, order: newest}
  lean-marks: {list: Mark, by: lean, with: {color: color, type: "type?"}, order: newest}
  lean-products: {list: Mark, by: lean, with: [color], then: [{list: Mark, by: lean, with: {color: color, at: at}}], unique: true}
  visits: {list: Visit, with: [user]}
  visits-newest: {list: Visit, with: [user], order: newest}
  visits-before: {list: Visit, with: [user], below: {until: before}, expired: true}
  places-by-time: {list: Place, with: [shelf], sort: at}
  picked-marks: {list: Mark, with: {user: user, type: =like}, any: {product: products}, order: newest}
  latest-visits: {list: Visit, with: [user], order: newest, expired: true}
  copies: {list: Copy, with: {user: user, brand: "brand?"}}
  copies-by-brand: {list: Copy, by: GSI1, with: [user, brand]}
  price: {get: Price, with: [sku, from]}
  prices: {list: Price, with: [sku], order: newest}
  prices-before: {list: Price, with: {sku: sku}, below: {from: before}}
  shelf-products: {list: Place, with: [shelf], then: [{get: Product, with: {product: product}}], unique: false}
  all-places: {list: Shelf, by: GSI1, then: [{list: Place, with: {shelf: shelf}}]}
  all-marks:
    list: Shelf
    by: GSI1
    then: [{list: Place, with: {shelf: shelf}}, {get: Product, with: {product: product}}, {list: Mark, by: GSI1, with: {product: product}}]
    unique: false
  all-products:
    list: Shelf
    by: GSI1
    then: [{list: Place, with: {shelf: shelf}}, {get: Product, with: {product: product}}]
    unique: true
  marked-products:
    list: Mark
    with: [user]
    then: [{get: Product, with: {product: product, brand: color}}]
    unique: true
  all-marks-once:
    list: Shelf
    by: GSI1
    then: [{list: Place, with: {shelf: shelf}}, {list: Mark, by: GSI1, with: {product: product}}]
    unique: true
  shelf-shelf: {get: Shelf, with: [shelf], then: [{list: Place, with: {shelf: shelf}}]}
  search-products: {search: products, with: {brand: "maker?"}}
`

// world is a model with an engine over rows that a test puts there.
type world struct {
	*testing.T
	model  *model.Model
	store  store.Store
	fake   *fake
	engine *Engine
	ids    *shelf
	done   map[string]bool // queries that were asked
}

func parseModel(t testing.TB, text string) *model.Model {
	t.Helper()
	m, err := model.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func loadModel(t testing.TB, name string) *model.Model {
	t.Helper()
	m, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newWorld(t *testing.T, m *model.Model, seed uint64) *world {
	t.Helper()
	f := newFake(m, seed)
	ids := &shelf{}
	w := &world{T: t, model: m, store: f, fake: f, ids: ids, done: map[string]bool{}}
	w.engine = mustEngine(t, Config{Model: m, Store: f, Search: ids})
	return w
}

func mustEngine(t testing.TB, c Config) *Engine {
	t.Helper()
	c.Secret = testSecret
	if c.Now == nil {
		c.Now = func() time.Time { return noon }
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// row makes a row of an entity from name=value pairs as an application would:
// keys raw, attributes as declared.
func makeRow(t testing.TB, m *model.Model, entity string, pairs ...any) value.Item {
	t.Helper()
	e := m.Entity(entity)
	if e == nil {
		t.Fatalf("no entity %s", entity)
	}
	given := map[string]value.Value{}
	for i := 0; i < len(pairs); i += 2 {
		given[pairs[i].(string)] = toValue(t, pairs[i+1])
	}
	var attrs []value.Attr
	for _, test := range e.Where {
		if v, ok := test.Only(); ok {
			attrs = append(attrs, value.Attr{Name: test.Field.Attr, Value: v})
		}
	}
	for name, v := range given {
		if e.Field(name).Key == nil || e.Attribute(name) != nil {
			attrs = append(attrs, value.Attr{Name: name, Value: v})
		}
	}
	for _, k := range e.Keys {
		if v, ok := k.Build(func(name string) value.Value { return given[name] }); ok {
			attrs = append(attrs, value.Attr{Name: k.Attr.Name, Value: v})
		}
	}
	return value.NewItem(attrs...)
}

func toValue(t testing.TB, v any) value.Value {
	switch v := v.(type) {
	case string:
		return value.OfString(v)
	case int:
		return value.OfInt(int64(v))
	case bool:
		return value.OfBool(v)
	case []string:
		return value.OfStrings(v)
	case value.Value:
		return v
	}
	t.Fatalf("no value: %v", v)
	return value.Value{}
}

// put puts a row of an entity, the rows that weir makes of it, and its documents.
func (w *world) put(entity string, pairs ...any) value.Item {
	w.Helper()
	row := makeRow(w, w.model, entity, pairs...)
	w.add(w.model.Entity(entity), row)
	return row
}

func (w *world) add(e *model.Entity, row value.Item) {
	w.Helper()
	w.fake.put(w.T, e.Table.Name, row)
	for _, rule := range e.Rules {
		if p, ok := copies.MakeCopy(rule, row); ok {
			w.fake.put(w.T, p.Row.Table, p.Image)
		}
	}
	for _, d := range documents(w.model, e, row) {
		w.ids.docs = slices.DeleteFunc(w.ids.docs, func(have search.Document) bool { return have.Index == d.Index && have.ID == d.ID })
		w.ids.docs = append(w.ids.docs, d)
	}
}

func documents(m *model.Model, e *model.Entity, row value.Item) (docs []search.Document) {
	k, _ := e.Table.KeyOf(row)
	for _, s := range e.Search {
		if d, ok := document.DocumentOf(m, s, e, k, row); ok {
			d.Position = position
			docs = append(docs, d)
		}
	}
	return docs
}

// pairs reads "a=1 b=2"; a value may be quoted with nothing but a leading and
// trailing space lost.
func params(text string) map[string]string {
	out := map[string]string{}
	for _, f := range strings.Fields(text) {
		name, v, _ := strings.Cut(f, "=")
		out[name] = v
	}
	return out
}

// ask runs a query to its end, page by page, and returns the rows.
func ask(t testing.TB, e *Engine, name string, given map[string]string, limit int) []value.Item {
	t.Helper()
	var all []value.Item
	page := Page{Limit: limit}
	for pages := 0; ; pages++ {
		r, err := e.Run(context.Background(), name, given, page)
		if err != nil {
			t.Fatalf("%s %v: %v", name, given, err)
		}
		if limit > 0 && len(r.Items) > limit {
			t.Fatalf("%s %v: %d rows on a page of %d", name, given, len(r.Items), limit)
		}
		all = append(all, r.Items...)
		if r.Cursor == "" {
			return all
		}
		if pages > 10000 {
			t.Fatalf("%s %v: it does not end", name, given)
		}
		page.Cursor = r.Cursor
	}
}

// get is ask, with the rows as text, one a line, of the attributes named.
func (w *world) get(name, given string, attrs ...string) string {
	w.Helper()
	w.done[name] = true
	return brief(ask(w, w.engine, name, params(given), 0), attrs...)
}

func brief(rows []value.Item, attrs ...string) string {
	var out []string
	for _, row := range rows {
		var parts []string
		for _, a := range attrs {
			parts = append(parts, string(value.AppendPlain(nil, row.Get(a))))
		}
		out = append(out, strings.Join(parts, " "))
	}
	return strings.ReplaceAll(strings.Join(out, ","), `"`, "")
}

func (w *world) want(name, given, want string, attrs ...string) {
	w.Helper()
	if got := w.get(name, given, attrs...); got != want {
		w.Errorf("%s %s:\n got %s\nwant %s", name, given, got, want)
	}
}

func (w *world) refused(name string, given map[string]string, page Page, kind error, say string) {
	w.Helper()
	_, err := w.engine.Run(context.Background(), name, given, page)
	if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), say) {
		w.Errorf("%s %v: the error is %v; want %v with %q", name, given, err, kind, say)
	}
}
