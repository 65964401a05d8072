package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
	"weir/internal/web"
)

var noon = time.Date(2025, 11, 13, 12, 0, 0, 0, time.UTC)

// rig is an API over the built-in gallery and wardrobe on one embedded store.
type rig struct {
	testing.TB
	api   *API
	store store.Store
	log   *bytes.Buffer
}

func newRig(t testing.TB, albums int) *rig {
	t.Helper()
	r := &rig{TB: t, log: &bytes.Buffer{}}
	tables := []store.Table{owntable.Table()}
	var models []*model.Model
	for _, name := range []string{"gallery", "wardrobe"} {
		m, err := model.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
		for _, tab := range m.Tables {
			tables = append(tables, tab.Table)
		}
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	r.store = s
	for i := range albums {
		r.put(fmt.Sprintf("ALBUM#a%d", i), "METADATA", "EntityType", "Album", "id", fmt.Sprintf("a%d", i), "title", "Sommer & <Meer>", "isPublic", "true",
			"GSI1PK", "ALBUM", "GSI1SK", fmt.Sprintf("2025-01-01T00:00:00Z#a%03d", i), "createdAt", "2025-01-01T00:00:00Z", "weir", "x")
	}
	r.serve(s, models...)
	return r
}

func (r *rig) put(pairs ...string) {
	r.Helper()
	attrs := []value.Attr{{Name: "PK", Value: value.OfString(pairs[0])}, {Name: "SK", Value: value.OfString(pairs[1])}}
	for i := 2; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
	}
	row := value.NewItem(attrs...)
	ref := store.Ref{Table: "gallery", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}
	if out, err := r.store.Write(context.Background(), []store.Write{{Ref: ref, Put: row}}); err != nil || out[0].Err != nil {
		r.Fatal(err, out)
	}
}

func (r *rig) serve(s store.Store, models ...*model.Model) {
	r.Helper()
	var engines []*query.Engine
	for _, m := range models {
		e, err := query.New(query.Config{Model: m, Store: s, Secret: []byte("a secret of enough bytes"), Now: func() time.Time { return noon }})
		if err != nil {
			r.Fatal(err)
		}
		engines = append(engines, e)
	}
	a, err := New(engines, Options{Log: slog.New(slog.NewTextHandler(r.log, nil))})
	if err != nil {
		r.Fatal(err)
	}
	r.api = a
}

func (r *rig) do(method, target string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/", nil)
	path, raw, _ := strings.Cut(target, "?")
	req.URL = &url.URL{Path: path, RawQuery: raw}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	return w
}

// page is an answer with rows.
type page struct {
	Items  []map[string]any `json:"items"`
	Cursor *string          `json:"cursor"`
}

func (r *rig) page(target string) page {
	r.Helper()
	w := r.do("GET", target)
	var p page
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 200 || p.Items == nil {
		r.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		r.Errorf("%s: content type %s", target, ct)
	}
	return p
}

func TestRows(t *testing.T) {
	r := newRig(t, 3)
	w := r.do("GET", "/v1/gallery/album?albumId=a1")
	want := `{"items":[{"EntityType":"Album","GSI1PK":"ALBUM","GSI1SK":"2025-01-01T00:00:00Z#a001","PK":"ALBUM#a1","SK":"METADATA",` +
		`"createdAt":"2025-01-01T00:00:00Z","id":"a1","isPublic":true,"mediaCount":0,"title":"Sommer & <Meer>"}]}` + "\n"
	if got := w.Body.String(); w.Code != 200 || got != want {
		t.Errorf("%d\n got %s\nwant %s", w.Code, got, want)
	}
	if got := r.do("GET", "/v1/gallery/album?albumId=none").Body.String(); got != `{"items":[]}`+"\n" {
		t.Errorf("no row: %s", got)
	}
	if p := r.page("/v1/gallery/public-albums?isPublic=true&limit=&cursor="); len(p.Items) != 3 || p.Cursor != nil {
		t.Errorf("%+v", p)
	}
}

func TestPages(t *testing.T) {
	r := newRig(t, 7)
	var ids []string
	target := "/v1/gallery/albums?limit=3"
	for n := 0; ; n++ {
		p := r.page(target)
		for _, it := range p.Items {
			ids = append(ids, it["id"].(string))
		}
		if p.Cursor == nil {
			if n != 2 {
				t.Errorf("%d pages", n+1)
			}
			break
		}
		target = "/v1/gallery/albums?limit=3&cursor=" + url.QueryEscape(*p.Cursor)
	}
	if got := strings.Join(ids, " "); got != "a6 a5 a4 a3 a2 a1 a0" {
		t.Error(got)
	}
}

func TestGzip(t *testing.T) {
	r := newRig(t, 400)
	plain := r.do("GET", "/v1/gallery/albums")
	if plain.Header().Get("Content-Encoding") != "" || plain.Body.Len() < 2*chunk {
		t.Errorf("not asked for: %v, %d bytes", plain.Header(), plain.Body.Len())
	}
	zipped := r.do("GET", "/v1/gallery/albums", "Accept-Encoding", "br, gzip;q=0.9")
	if zipped.Header().Get("Content-Encoding") != "gzip" || zipped.Body.Len() > plain.Body.Len()/4 {
		t.Fatalf("asked for: %v, %d bytes", zipped.Header(), zipped.Body.Len())
	}
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
		t.Error("another answer", err)
	}
	for _, target := range []string{"/v1/gallery/album?albumId=a1", "/v1/gallery/albums"} {
		if got := r.do("GET", target, "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding"); got != "" {
			t.Errorf("%s refused: %s", target, got)
		}
	}
}

func TestLists(t *testing.T) {
	r := newRig(t, 0)
	for _, target := range []string{"/v1", "/v1/"} {
		want := `{"models":[{"name":"gallery","href":"/v1/gallery"},{"name":"wardrobe","href":"/v1/wardrobe"}]}` + "\n"
		if got := r.do("GET", target).Body.String(); got != want {
			t.Errorf("%s: %s", target, got)
		}
	}
	got := r.do("GET", "/v1/gallery").Body.String()
	for _, want := range []string{
		`{"model":"gallery","queries":[{"name":"album","href":"/v1/gallery/album","parameters":[{"name":"albumId","type":"string"}]}`,
		`{"name":"albums","href":"/v1/gallery/albums","parameters":[]}`,
		`{"name":"type","type":"string","optional":true}`,
		`"parameters":[{"name":"q","type":"string"},{"name":"createdBy","type":"string","optional":true},{"name":"sort","type":"string","optional":true,"oneOf":["createdAt","-createdAt"]}]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if w := r.do("GET", "/healthz"); w.Code != 200 || w.Body.String() != `{"status":"ok"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestProblems(t *testing.T) {
	r := newRig(t, 3)
	stolen := *r.page("/v1/gallery/albums?limit=1").Cursor
	forged := "B" + stolen[1:]
	if forged == stolen {
		forged = "C" + stolen[1:]
	}
	for _, c := range []struct {
		method, target string
		status         int
		kind           string
		say            []string
	}{
		{"GET", "/", 404, "not-found", []string{"/v1"}},
		{"GET", "/v1/gallery/albums/x", 404, "not-found", nil},
		{"GET", "/v1/galery", 404, "not-found", []string{`"galery"; did you mean "gallery"?`, `"models":["gallery","wardrobe"]`}},
		{"GET", "/v1/nothing/albums", 404, "not-found", []string{`"models":["gallery","wardrobe"]`}},
		{"GET", "/v1/gallery/albms", 404, "not-found", []string{`did you mean "albums"?`, `"queries":["album","albums",`}},
		{"GET", "/v1/gallery/<script>", 404, "not-found", []string{`\u003cscript\u003e`}},
		{"GET", "/v1/gallery/album", 400, "parameter", []string{`"errors":[{"parameter":"albumId","message":"is missing"}]`}},
		{"GET", "/v1/gallery/album?albumId=", 400, "parameter", []string{`{"parameter":"albumId","message":"is empty"}`}},
		{"GET", "/v1/gallery/album?albumId=a1&albumId=a2", 400, "parameter", []string{`{"parameter":"albumId","message":"is given more than once"}`}},
		{"GET", "/v1/gallery/album?albumID=a1", 400, "parameter", []string{`did you mean \"albumId\"?`, `"albumId","message":"is missing"`}},
		{"GET", "/v1/gallery/album?albumId=%ff", 400, "parameter", []string{"is not UTF-8"}},
		{"GET", "/v1/gallery/album?albumId=%zz", 400, "malformed", nil},
		{"GET", "/v1/gallery/album?albumId=a;b=c", 400, "malformed", nil},
		{"GET", "/v1/gallery/albums?limit=0", 400, "parameter", []string{`"limit"`, "from 1 to 1000"}},
		{"GET", "/v1/gallery/albums?limit=1e3", 400, "parameter", []string{`"limit"`}},
		{"GET", "/v1/gallery/albums?limit=1001", 400, "parameter", []string{`"limit"`}},
		{"GET", "/v1/gallery/albums?limit=1&limit=2", 400, "parameter", []string{"more than once"}},
		{"GET", "/v1/gallery/public-albums?isPublic=yes", 400, "parameter", []string{"must be true or false"}},
		{"GET", "/v1/gallery/albums?cursor=nonsense", 400, "cursor", []string{`"parameter":"cursor"`}},
		{"GET", "/v1/gallery/public-albums?isPublic=true&cursor=" + stolen, 400, "cursor", nil},
		{"GET", "/v1/wardrobe/user-items?userId=u1&cursor=" + stolen, 400, "cursor", nil},
		{"GET", "/v1/gallery/albums?cursor=" + forged, 400, "cursor", nil},
		{"GET", "/v1/gallery/search-albums?q=x", 503, "unavailable", []string{"search is not available"}},
		{"POST", "/v1/gallery/albums", 405, "method", []string{"GET, HEAD, OPTIONS"}},
		{"DELETE", "/healthz", 405, "method", nil},
		{"GET", "/v1/gallery/album?albumId=" + strings.Repeat("x", web.MaxQuery), 414, "too-long", nil},
	} {
		w := r.do(c.method, c.target)
		var p web.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Status != c.status || p.Type != "urn:weir:problem:"+c.kind || p.Title != http.StatusText(c.status) || p.Detail == "" {
			t.Errorf("%s %.80s: %d %s", c.method, c.target, w.Code, w.Body)
		}
		if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
			t.Errorf("%s %.80s: content type %s", c.method, c.target, ct)
		}
		for _, say := range c.say {
			if !strings.Contains(w.Body.String(), say) && !strings.Contains(p.Detail, say) {
				t.Errorf("%s %.80s: no %s in %s", c.method, c.target, say, w.Body)
			}
		}
		if w.Code == 405 && w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s %s: %v", c.method, c.target, w.Header())
		}
	}
	if w := r.do("OPTIONS", "/v1/gallery/albums"); w.Code != 204 || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" || w.Body.Len() > 0 {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestAClosedStoreIsUnavailable(t *testing.T) {
	r := newRig(t, 1)
	r.store.Close()
	for _, target := range []string{"/v1/gallery/albums", "/healthz"} {
		if w := r.do("GET", target); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", target, w.Code, w.Header(), w.Body)
		}
	}
}

// faulty is a store that fails as told.
type faulty struct {
	store.Store
	get func(context.Context) ([]value.Item, error)
}

func (f faulty) Get(ctx context.Context, _ []store.Ref) ([]value.Item, error) { return f.get(ctx) }

func TestFaultsAreLoggedAndNotTold(t *testing.T) {
	for name, get := range map[string]func(context.Context) ([]value.Item, error){
		"error": func(context.Context) ([]value.Item, error) { return nil, errors.New("disk /secret/path is gone") },
		"panic": func(context.Context) ([]value.Item, error) { panic("disk /secret/path is gone") },
	} {
		r := newRig(t, 0)
		r.serve(faulty{get: get}, r.api.engines[0].Model)
		w := r.do("GET", "/v1/gallery/album?albumId=x", "Accept-Encoding", "gzip")
		var p web.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 500 || len(p.ID) < 12 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "secret") || !strings.Contains(r.log.String(), "secret") || !strings.Contains(r.log.String(), p.ID) {
			t.Errorf("%s: told %s, logged %s", name, w.Body, r.log)
		}
	}
}

// TestBuilding: while an index is built, its searches are refused, with when to ask again, and
// other queries are answered.
func TestBuilding(t *testing.T) {
	r := newRig(t, 1)
	var built error = fmt.Errorf("model gallery: %w", query.ErrBuilding)
	e, err := query.New(query.Config{
		Model: r.api.engines[0].Model, Store: r.store, Search: struct{ search.Index }{}, Secret: []byte("a secret of enough bytes"),
		Built: func() error { return built },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.api, err = New([]*query.Engine{e}, Options{}); err != nil {
		t.Fatal(err)
	}
	w := r.do("GET", "/v1/gallery/search-albums?q=x")
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "urn:weir:problem:building") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if n := len(r.page("/v1/gallery/albums").Items); n != 1 {
		t.Errorf("%d albums", n)
	}
}

// TestUnfinished: an answer says what is not derived yet on its rows, and the status of the
// model is one request away.
func TestUnfinished(t *testing.T) {
	r := newRig(t, 1)
	var asked []string
	building := []string{"Album.mediaCount", "Album.coverCount"}
	e, err := query.New(query.Config{
		Model: r.api.engines[0].Model, Store: r.store, Secret: []byte("a secret of enough bytes"),
		Unfinished: func(_ context.Context, entities []string) ([]string, error) {
			asked = append(asked, strings.Join(entities, " "))
			return building, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.api, err = New([]*query.Engine{e}, Options{Status: func(_ context.Context, model string) (any, error) {
		return map[string]string{"model": model}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if is := r.do("GET", "/v1/gallery/albums").Header().Get("Weir-Unfinished"); is != "Album.mediaCount, Album.coverCount" {
		t.Errorf("the header is %q", is)
	}
	building = nil
	if is, there := r.do("GET", "/v1/gallery/album-media?albumId=a").Header()["Weir-Unfinished"]; there {
		t.Errorf("the header is %q", is)
	}
	if is := strings.Join(asked, ", "); is != "Album, AlbumMedia" {
		t.Errorf("asked for %s", is)
	}
	if w := r.do("GET", "/v1/gallery/status"); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"model":"gallery"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := r.do("GET", "/v1/nothing/status"); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAnAnswerThatTakesTooLong(t *testing.T) {
	r := newRig(t, 0)
	r.serve(faulty{get: func(context.Context) ([]value.Item, error) { return nil, context.DeadlineExceeded }}, r.api.engines[0].Model)
	if w := r.do("GET", "/v1/gallery/album?albumId=x"); w.Code != 503 || !strings.Contains(w.Body.String(), "seconds") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestTwoModelsOfOneName(t *testing.T) {
	r := newRig(t, 0)
	if _, err := New([]*query.Engine{r.api.engines[0], r.api.engines[0]}, Options{}); err != nil {
		t.Error("one engine twice is no conflict", err)
	}
	other, err := query.New(query.Config{Model: r.api.engines[0].Model, Store: r.store, Secret: []byte("a secret of enough bytes")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New([]*query.Engine{r.api.engines[0], other}, Options{}); err == nil {
		t.Error("two models of one name are taken")
	}
}

// FuzzRequest: whatever is asked, the answer is JSON of its kind, says what to do
// next by its status, and is the same when it is asked again. What is the asker's
// mistake names its parameter, and is never a fault of ours.
func FuzzRequest(f *testing.F) {
	r := newRig(f, 3)
	for _, s := range []string{"", "albumId=a1", "albumId=%zz", "limit=1&cursor=AAAA", "albumId=a&albumId=b", "q=%00&sort=x", "a;b", "&&==&", "limit=-0&limit", "isPublic=true&limit=2", "albumId=" + strings.Repeat("%61", 3000)} {
		f.Add("GET", "/v1/gallery/album", s)
		f.Add("GET", "/v1/gallery/public-albums", s)
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v1//", "/v1/gallery", "/v1/galery/x", "/v1/gallery/../wardrobe", "/healthz", "/v1/gallery/\xff", "/v1/gallery/album/"} {
		f.Add("GET", path, "")
		f.Add("DELETE", path, "x=y")
	}
	f.Fuzz(func(t *testing.T, method, path, raw string) {
		ask := func() *httptest.ResponseRecorder {
			req := httptest.NewRequest("GET", "/", nil)
			req.Method, req.URL = method, &url.URL{Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: raw}
			w := httptest.NewRecorder()
			r.api.ServeHTTP(w, req)
			return w
		}
		w := ask()
		checkAnswer(t, method, path, raw, w)
		if again := ask(); again.Code != w.Code || again.Body.String() != w.Body.String() {
			t.Fatalf("%s %q ?%q: %d %s, then %d %s", method, path, raw, w.Code, w.Body, again.Code, again.Body)
		}
	})
}

func checkAnswer(t *testing.T, method, path, raw string, w *httptest.ResponseRecorder) {
	t.Helper()
	at := fmt.Sprintf("%s %q ?%.200q: %d %s", method, path, raw, w.Code, w.Body)
	switch w.Code {
	case 204, 301, 307, 308: // OPTIONS; a path that is cleaned
		return
	case 200:
		if !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json" {
			t.Fatal(at)
		}
		return
	case 400, 404, 405, 414, 422, 503:
	default:
		t.Fatal(at)
	}
	var p struct {
		web.Problem
		Errors []query.Problem `json:"errors"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%s: %v", at, err)
	}
	if w.Code == 400 && p.Type != "urn:weir:problem:malformed" && len(p.Errors) == 0 || w.Code == 503 && p.Detail != "search is not available" {
		t.Fatal(at)
	}
	for _, e := range p.Errors {
		if e.Message == "" || len(e.Message) > 500 {
			t.Fatal(at)
		}
	}
}

// TestBusy: a query that gets no turn is refused, and says when to ask again; so is one
// of somebody who asks too often.
func TestBusy(t *testing.T) {
	r := newRig(t, 2)
	r.api.turns.wait = time.Millisecond
	other := [2]web.Asker{askerOf("10.0.0.1:1"), askerOf("10.0.0.2:1")}
	for i := range maxQueries {
		if !r.api.turns.take(t.Context(), other[i%2], 1) {
			t.Fatal(i)
		}
	}
	w := r.do("GET", "/v1/gallery/albums")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := r.do("GET", "/v1/gallery"); w.Code != http.StatusOK {
		t.Errorf("what costs nothing: %d", w.Code)
	}
	r.api.turns.give(other[0], 1)
	for range 3 { // each gives its turn back
		r.page("/v1/gallery/albums")
	}
	limited := web.Access{Open: true, Rate: 0.001, Burst: 2}.Wrap(r.api)
	codes := []int{}
	for range 3 {
		w = httptest.NewRecorder()
		limited.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/gallery/albums", nil))
		codes = append(codes, w.Code)
	}
	if !slices.Equal(codes, []int{200, 200, 429}) || w.Header().Get("Retry-After") == "" {
		t.Errorf("%v, %v", codes, w.Header())
	}
}
