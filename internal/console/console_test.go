package console

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/soaktest"
	"weir/internal/status"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

const shop = `model: shop
tables: {shop-rows: {key: [PK, SK], indexes: {GSI1: [GSI1PK, GSI1SK]}}}
entities:
  Product:
    where: {kind: product}
    key: {PK: "PRODUCT#{id}", SK: ABOUT, GSI1PK: PRODUCT, GSI1SK: "{id}"}
    attributes: {name: string!, maker: string, blob: binary, tags: list, cost: {type: string, hidden: true}}
  Review:
    where: {kind: review}
    key: {PK: "PRODUCT#{product}", SK: "REVIEW#{user}"}
    attributes: {stars: number!, words: string}
derive:
  Product.reviews: {count: Review, to: {id: product}}
  Product.users: {distinct: Review.user, to: {id: product}, max: 100}
  Product.stars: {mean: Review.stars, to: {id: product}, round: 1}
search:
  products: {of: Product, text: [name, maker]}
queries:
  product: {get: Product, with: [id]}
  products: {list: Product, by: GSI1}
  find: {search: products}
`

// world is a console on an embedded store.
type world struct {
	t    testing.TB
	part *system.Part
	s    *system.System
	c    *Console
	seen *Activity
}

func open(t *testing.T) *world { return opened(t, Options{}) }

// opened opens a console with some options.
func opened(t *testing.T, o Options) *world { return openFor(t, o) }

func openFor(t testing.TB, o Options) *world { return openModel(t, o, shop) }

// openModel opens a console on the rows of a model, whose name is shop.
func openModel(t testing.TB, o Options, text string) *world {
	t.Helper()
	m, err := model.Parse("shop.yaml", []byte(text))
	failtest.On(t, err)
	s, err := system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{Writes: true})
	failtest.On(t, err)
	t.Cleanup(func() { s.Close() })
	failtest.On(t, s.Start(t.Context()))
	failtest.On(t, s.Reach(t.Context(), func(system.Filling) {}))
	of := status.NewRecent(s, s.Models[0], time.Now)
	seen := NewActivity(s.Models)
	o.Activity, o.Log = seen, slog.New(slog.DiscardHandler)
	o.Status = func(ctx context.Context, _ string) (status.Status, error) { return of.Status(ctx) }
	c, err := New(s, o)
	failtest.On(t, err)
	t.Cleanup(c.Close)
	return &world{t, s.Models[0], s, c, seen}
}

// put writes a row and has everything derived.
func (w *world) put(entity string, item value.Item) {
	w.t.Helper()
	to := &ingest.Writer{Model: w.part.Model, Store: w.s.Store}
	for _, res := range to.Do(w.t.Context(), []ingest.Command{{Op: ingest.Put, Entity: entity, Item: item}}) {
		if res.Err != nil {
			w.t.Fatal(res.Err)
		}
	}
}

// named writes a row of no entity with an attribute of a name, as another program may.
func (w *world) named(name string) {
	w.t.Helper()
	key := store.Key{Partition: value.OfString("OTHER#" + name), Sort: value.OfString(name)}
	row := value.Item{}.With(value.Attr{Name: "PK", Value: key.Partition}, value.Attr{Name: "SK", Value: key.Sort}, value.Attr{Name: name, Value: value.OfString(name)})
	if err := w.s.Store.Transact(w.t.Context(), []store.Write{{Ref: store.Ref{Table: "shop-rows", Key: key}, Put: row}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) derive() {
	w.t.Helper()
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: w.part.Runner, Applied: w.seen.Records("shop")}
	if err := f.CatchUp(w.t.Context(), done); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ask(method, path string) *httptest.ResponseRecorder {
	w.t.Helper()
	a := httptest.NewRecorder()
	w.c.ServeHTTP(a, httptest.NewRequest(method, path, nil))
	return a
}

var styleIn = regexp.MustCompile(`(?s)<style>(.*?)</style>`)

// page is a page that must be there, with the policy that forbids every inline script, and every style but
// the one that it has.
func (w *world) page(path string) string {
	w.t.Helper()
	a := w.ask("GET", path)
	if a.Code != http.StatusOK && a.Code != http.StatusSeeOther {
		w.t.Fatalf("%s: %d %s", path, a.Code, a.Body)
	}
	if is := a.Header().Get("Content-Type"); a.Code == 200 && strings.Contains(path, ".json") == strings.HasPrefix(is, "text/html") || a.Code == 200 && a.Header().Get("X-Content-Type-Options") != "nosniff" {
		w.t.Errorf("%s: %v", path, a.Header())
	}
	if got := a.Header().Get("Content-Security-Policy"); a.Code == 200 && got != policy {
		w.t.Errorf("%s: the policy is %q", path, got)
	}
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"} {
		if got := a.Header().Get("Content-Security-Policy"); a.Code == 200 && (!strings.Contains(got+";", want) || strings.Contains(got, "unsafe")) {
			w.t.Errorf("%s: the policy is %q", path, got)
		}
	}
	if at := styleIn.FindStringSubmatch(a.Body.String()); a.Code == 200 && !strings.Contains(path, ".json") {
		if sum := sha256.Sum256([]byte(at[1])); !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';") {
			w.t.Errorf("%s: the policy does not allow its style", path)
		}
	}
	return a.Body.String()
}

var href = regexp.MustCompile(`(?:href|action)="(/[^"]*)"`)

// walk asks for every page that can be reached from one, and returns them by path.
func (w *world) walk(from string) map[string]string {
	pages, todo := map[string]string{}, []string{from}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		if _, seen := pages[path]; seen {
			continue
		}
		pages[path] = w.page(path)
		if strings.Contains(path, ".json") {
			continue // what is in a row leads nowhere
		}
		for _, found := range href.FindAllStringSubmatch(pages[path], -1) {
			todo = append(todo, html.UnescapeString(found[1]))
		}
	}
	return pages
}

func texts(id, name string) value.Item {
	return value.Item{}.With(value.Attr{Name: "id", Value: value.OfString(id)}, value.Attr{Name: "name", Value: value.OfString(name)})
}

func review(product, user string) value.Item {
	return value.Item{}.With(value.Attr{Name: "product", Value: value.OfString(product)}, value.Attr{Name: "user", Value: value.OfString(user)},
		value.Attr{Name: "stars", Value: value.OfInt(4)})
}

// TestPages: every page is there, and says what was derived, from what, and by whom.
func TestPages(t *testing.T) {
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.put("Review", review("pot", "bo"))
	w.derive()
	row := "/console/shop/row?pk=PRODUCT%23pot&sk=ABOUT&table=shop-rows"
	for path, want := range map[string]string{
		"/console/shop":                                     `(?s)<svg.*Product\.reviews.*class="state good">live`,
		"/console/shop/rows?entity=Product":                 `(?s)title="weir derives it">reviews<.*Tea pot`,
		"/console/shop/rows?index=GSI1&pk=PRODUCT&prefix=p": `Tea pot`,
		"/console/shop/rows?pk=PRODUCT%23pot&prefix=REVIEW": `(?s)REVIEW#bo.*REVIEW#ida`,
		row: `(?s)Derived by weir.*reviews.*>2<.*Written by the application.*Tea pot.*Ledger`,
		"/console/shop/why?attr=reviews&pk=PRODUCT%23pot&sk=ABOUT&table=shop-rows": `(?s)REVIEW#bo.*REVIEW#ida.*projector why`,
		"/console/shop/queries":              `(?s)find.*<code>q</code>.*search`,
		"/console/shop/query/product?id=pot": `(?s)Tea pot.*curl -s &#39;http://example.com/v1/shop/product\?id=pot`,
		"/console/shop/query/find?q=tea":     `<th scope="col">name</th><th scope="col">reviews</th>.*<th scope="col">kind</th>.*<th scope="col">PK</th>(?s).*Tea pot`, // what is searched, what is derived, the rest, keys
		"/console/shop/query/product?ask=1":  `class="bad">is missing`,
		"/console/shop/tail":                 `(?s)<th scope="row"><a href="[^"]*"><bdi>PRODUCT#pot · REVIEW#bo</bdi>.*<bdi>stars</bdi> <ins><bdi>4</bdi></ins>.*Product\.reviews <strong><bdi>&#43;1</bdi></strong> <a href="[^"]*"><bdi>PRODUCT#pot · ABOUT`,
		"/console/shop/tail?entity=Product":  `(?s)<bdi>name</bdi> <ins><bdi>Tea pot</bdi></ins>.*search/products search index`,
		"/console/shop/tail?key=nothing":     `No record yet of these`,
		"/console/shop/dead":                 `everything that came was applied`,
		"/console/shop/health":               `(?s)Lag by shard.*class="state good">none.*shop-rows`,
	} {
		if got := w.page(path); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: not %s in\n%s", path, want, got)
		}
	}
	if got := w.page("/console/shop/row?pk=PRODUCT%23pot&sk=REVIEW%23bo&table=shop-rows"); !strings.Contains(got, html.EscapeString(row)) {
		t.Errorf("no link to the product that the review counts on:\n%s", got)
	}
	for path, code := range map[string]int{"/console/none": 404, "/console/shop/none": 404, "/console/shop/rows?entity=None": 404, "/console/shop/row?table=shop-rows": 400, "/console/shop/rows?after=x": 400} {
		if a := w.ask("GET", path); a.Code != code {
			t.Errorf("%s: %d, want %d", path, a.Code, code)
		}
	}
	for path, types := range map[string]bool{"/console/shop/query/find": true, "/console/shop/query/product": false} {
		got := w.page(path)
		if strings.Contains(got, "data-search") != types || !strings.Contains(got, "data-answer") || !strings.Contains(got, `<button name="ask"`) {
			t.Errorf("%s: as one types: %v", path, !types)
		}
	}
	if a := w.ask("GET", "/console/console.js"); a.Code != 200 || a.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("the script: %d %v", a.Code, a.Header())
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		if a := w.ask(method, row); a.Code/100 != 4 {
			t.Errorf("%s is answered with %d by a console that only reads", method, a.Code)
		}
	}
}

// hostile are texts that are markup, commands or disorder if a page takes them for more than text.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `javascript:alert(1)`, `{{.}}</template><svg onload=alert(1)>`,
	"a\u202eb\u2066c\u200f", "line\r\n\u2028other\x00\x1b[31m", strings.Repeat("ü", 65000),
}

// TestHostileRows: whatever rows have in them is text on every page that can be reached, and a
// long value makes no page long.
func TestHostileRows(t *testing.T) {
	soaktest.Calm(t)
	w := open(t)
	for i, s := range hostile {
		key := s[:min(len(s), 300)]
		it := texts(key, s).With(value.Attr{Name: "maker", Value: value.OfString(s)}, value.Attr{Name: "cost", Value: value.OfString("geheim" + s)})
		w.put("Product", it)
		if i < len(hostile)-1 { // a name has at most 64 KB
			w.named(s)
		}
		w.put("Review", review(key, key).With(value.Attr{Name: "words", Value: value.OfString(s)}))
	}
	w.derive()
	w.put("Product", texts("small", "a").With(value.Attr{Name: "cost", Value: value.OfString("geheim")})) // long ones leave the tail sooner
	w.derive()
	pages := w.walk("/console/shop")
	for path, body := range w.walk("/console/shop/rows?table=shop-rows") {
		pages[path] = body
	}
	if !strings.Contains(pages["/console/shop/tail"], "<bdi>cost</bdi> <ins><bdi>"+model.HiddenText) {
		t.Errorf("the tail does not say that a hidden value changed:\n%.3000s", pages["/console/shop/tail"])
	}
	pages["search"] = w.page("/console/shop/query/find?q=%3Cscript%3Ealert(1)%3C/script%3E")
	pages["list"] = w.page("/console/shop/query/products")
	bad := regexp.MustCompile("(?i)<script|<img|<svg onload|<[^>]* on[a-z]+=|href=\"javascript|\\sstyle=|[\u202a-\u202e\u2066-\u2069\u200f\u2028\x00\x1b]")
	rows := 0
	typed := regexp.MustCompile(`value="[^"]*"`) // what a form sends again, as it is
	for path, body := range pages {
		if strings.Contains(body, "geheim") {
			t.Errorf("%s shows a hidden attribute", path)
		}
		if strings.Contains(path, "/row.json?") {
			continue
		}
		body = strings.Replace(typed.ReplaceAllString(body, ""), `<script src="/console/console.js" defer></script>`, "", 1)
		if at := bad.FindStringIndex(body); at != nil {
			t.Errorf("%s: %q", path, body[max(0, at[0]-80):min(len(body), at[1]+40)])
		}
		if len(body) > 100_000 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
		if strings.Contains(path, "/row?") {
			rows++
		}
	}
	if rows < 2*len(hostile) {
		t.Errorf("%d rows were reached", rows)
	}
}
