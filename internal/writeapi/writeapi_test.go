package writeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
	"weir/internal/web"
)

var noon = time.Date(2025, 11, 13, 12, 0, 0, 0, time.UTC)

// rig is the API of some models on an embedded store in memory.
type rig struct {
	testing.TB
	api   *API
	store store.Store
	log   bytes.Buffer
}

func newRig(t testing.TB, names ...string) *rig {
	t.Helper()
	r := &rig{TB: t}
	tables := []store.Table{owntable.Table()}
	var targets []Target
	for _, name := range names {
		m, err := model.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, tab := range m.Tables {
			tab.Stream = true
			tables = append(tables, tab.Table)
		}
		targets = append(targets, Target{Model: m})
	}
	quiet := slog.New(slog.DiscardHandler)
	s, err := embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	r.store = s
	for i := range targets {
		targets[i].Writer = &ingest.Writer{Model: targets[i].Model, Store: s, Now: func() time.Time { return noon }}
	}
	r.serve(targets...)
	return r
}

func (r *rig) serve(targets ...Target) {
	r.Helper()
	a, err := New(targets, Options{Log: slog.New(slog.NewTextHandler(&r.log, nil))})
	if err != nil {
		r.Fatal(err)
	}
	r.api = a
}

// do asks; a body is JSON unless a header says something else.
func (r *rig) do(method, target, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/", strings.NewReader(body))
	path, raw, _ := strings.Cut(target, "?")
	req.URL = &url.URL{Path: path, RawQuery: raw}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	if _, said := req.Header["Content-Type"]; body != "" && !said {
		req.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	return w
}

const (
	albums = "/v1/gallery/Album"
	sea    = `{"id":"sea","title":"The sea","createdAt":"2026-01-31T12:00:00Z"}`
)

// Every entity's rows can be written and are found at their Location, whatever
// stands in their keys.
func TestLocation(t *testing.T) {
	r := newRig(t, "gallery", "movienight")
	for _, id := range []string{"sea", "a#b", "a|b/c", "x y&z=%", "ümlaut", "\x01", "~0"} {
		b, _ := json.Marshal(map[string]string{"id": id, "title": "x", "createdAt": "2026-01-31T12:00:00Z"})
		w := r.do("POST", albums, string(b))
		if w.Code != 201 || w.Header().Get("ETag") == "" {
			t.Errorf("%q: %d %s", id, w.Code, w.Body)
			continue
		}
		got := r.do("GET", w.Header().Get("Location"), "")
		if got.Code != 200 || got.Body.String() != w.Body.String() || got.Header().Get("ETag") != w.Header().Get("ETag") {
			t.Errorf("%q: at %s is %d %s, and %s was created", id, w.Header().Get("Location"), got.Code, got.Body, w.Body)
		}
	}
	// A number in the key.
	w := r.do("POST", "/v1/movienight/Suggestion", `{"round_id":"r","tmdb_movie_id":603,"position":1,"title":"x"}`)
	if at := w.Header().Get("Location"); at != "/v1/movienight/Suggestion?round_id=r&tmdb_movie_id=603" || r.do("GET", at, "").Code != 200 {
		t.Errorf("%d %s at %s", w.Code, w.Body, at)
	}
	if w := r.do("PATCH", "/v1/movienight/Suggestion?round_id=r&tmdb_movie_id=six", `{"position":2}`); w.Code != 422 || !strings.Contains(w.Body.String(), "must be a number") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What a script cannot ask.
func TestRequests(t *testing.T) {
	r := newRig(t, "gallery")
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for _, c := range []struct {
		method, target, body string
		header               []string
		status               int
		say                  string
	}{
		{"POST", albums, sea, []string{"Content-Type", ""}, 415, "Content-Type"},
		{"POST", albums, sea, []string{"Content-Type", "application/json; charset=utf-8"}, 201, ""},
		{"POST", albums, sea, []string{"Content-Type", "application/merge-patch+json"}, 415, ""},
		{"PATCH", albums, sea, []string{"Content-Type", "text/json"}, 415, "application/merge-patch+json"},
		{"POST", albums, "\"\xff\"", nil, 400, "UTF-8"},
		{"POST", albums, `{"id":"\ud800"}`, nil, 400, "byte"},
		{"POST", albums, `{"id":1e999}`, nil, 422, "/id"},
		{"PUT", albums, `{"id":"x","title":"x","createdAt":"2026-01-31T12:00:00Z","thumbnailUrls":` + deep + `}`, nil, 422, "levels deep"},
		{"POST", albums, sea, []string{"If-None-Match", "*"}, 400, "If-None-Match"},
		{"POST", albums, sea, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "255"},
		{"PUT", albums, sea, []string{"If-Match", `W/"x"`}, 400, "If-Match"},
		{"PUT", albums, sea, []string{"If-Match", `"a", "b"`}, 400, "If-Match"},
		{"PUT", albums, sea, []string{"If-Match", `""`}, 400, "If-Match"},
		{"PUT", albums, sea, []string{"If-Match", ""}, 400, "If-Match"},
		{"PUT", albums, sea, []string{"If-Match", `"*"`}, 412, ""},
		{"PUT", albums, sea, []string{"If-Match", `*`}, 200, ""},
		{"PUT", albums, sea, []string{"If-Match", `"a"`, "If-Match", `"b"`}, 400, "If-Match"},
		{"PUT", albums, sea, []string{"If-None-Match", ""}, 400, "If-None-Match"},
		{"PUT", albums, sea, []string{"Idempotency-Key", " "}, 400, "Idempotency-Key"},
		{"POST", "/v1/gallery/batch", "[]", []string{"If-Match", ""}, 400, "a batch has no"},
		{"POST", "/v1/gallery/batch", `[{"op":"put","entity":"Album","item":{},"ifMatch":"","idempotencyKey":""}]`, nil, 200, "ifMatch is empty"},
		{"DELETE", albums + "?id=%zz", "", nil, 400, "%-escapes"},
		{"DELETE", albums + "?id=%ff", "", nil, 422, "UTF-8"},
		{"DELETE", albums + "?ids=a", "", nil, 422, `did you mean \"id\"?`},
		{"DELETE", albums + "?id=" + strings.Repeat("x", web.MaxQuery), "", nil, 414, ""},
		{"GET", albums, "", nil, 422, "/id"},
		{"GET", "/openapi.json", "", nil, 200, `"3.1.0"`},
		{"POST", "/openapi.json", "{}", nil, 405, ""},
		{"POST", "/healthz", "{}", nil, 405, ""},
		{"POST", "/v1/gallery/batch", "null", nil, 422, "array"},
		{"POST", "/v1/gallery/batch", `[{}, 7, "x"]`, nil, 422, `{"pointer":"/1","message":"must be a command: an object"}`},
		{"POST", "/v1/gallery/batch", `{}` + "\n7\n", []string{"Content-Type", "application/x-ndjson"}, 200, `must be a JSON object, not 7`},
		{"POST", "/v1/gallery/batch", `[` + strings.Repeat(`{},`, maxCommands) + `{}]`, nil, 422, "1001 commands"},
	} {
		w := r.do(c.method, c.target, c.body, c.header...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.say) {
			t.Errorf("%s %.60s %.60s %v: %d %s", c.method, c.target, c.body, c.header, w.Code, w.Body)
		}
	}
}

// fake is a writer that answers as told.
type fake struct {
	result ingest.Result
	sync   error
}

func (f fake) Do(_ context.Context, cs []ingest.Command) []ingest.Result {
	out := make([]ingest.Result, len(cs))
	for i := range out {
		out[i] = f.result
	}
	return out
}
func (f fake) Read(context.Context, string, value.Item) ingest.Result { return f.result }
func (f fake) Sync(context.Context) error                             { return f.sync }

// TestAnswers: each thing that may become of a command has its status, alone and in a
// batch.
func TestAnswers(t *testing.T) {
	row := value.NewItem(value.Attr{Name: "PK", Value: value.OfString("ALBUM#sea")})
	refused := func(k ingest.Kind) ingest.Result {
		return ingest.Result{Err: &ingest.Refusal{Kind: k, Problems: []ingest.Problem{{Pointer: "/title", Reason: "is so"}}}}
	}
	disk := errors.New("disk /secret/path is gone")
	for _, c := range []struct {
		name   string
		fake   fake
		status int
		kind   string
	}{
		{"created", fake{result: ingest.Result{Row: row, Done: ingest.Created}}, 201, ""},
		{"created before", fake{result: ingest.Result{Row: row, Done: ingest.Created, Repeated: true}}, 200, ""},
		{"replaced", fake{result: ingest.Result{Row: row, Done: ingest.Replaced}}, 200, ""},
		{"unchanged", fake{result: ingest.Result{Row: row, Done: ingest.Unchanged}}, 200, ""},
		{"invalid", fake{result: refused(ingest.Invalid)}, 422, "invalid"},
		{"exists", fake{result: refused(ingest.Exists)}, 409, "exists"},
		{"missing", fake{result: refused(ingest.Missing)}, 404, "missing"},
		{"taken", fake{result: refused(ingest.Taken)}, 409, "taken"},
		{"backward", fake{result: refused(ingest.Backward)}, 409, "backward"},
		{"stale", fake{result: refused(ingest.Stale)}, 412, "stale"},
		{"reused", fake{result: refused(ingest.Reused)}, 422, "idempotency-key"},
		{"too large", fake{result: refused(ingest.TooLarge)}, 413, "too-large"},
		{"unknown outcome", fake{result: ingest.Result{Err: disk}}, 503, "unavailable"},
		{"out of time", fake{result: ingest.Result{Err: context.DeadlineExceeded}}, 503, "unavailable"},
		{"not durable", fake{result: ingest.Result{Row: row, Done: ingest.Created}, sync: disk}, 503, "unavailable"},
	} {
		r := newRig(t, "gallery")
		r.serve(Target{Model: r.api.targets[0].Model, Writer: c.fake})
		w := r.do("PUT", albums, sea)
		if w.Code != c.status || w.Code == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		if replayed := w.Header().Get("Idempotent-Replayed") != ""; replayed != c.fake.result.Repeated {
			t.Errorf("%s: %v", c.name, w.Header())
		}
		var one web.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &one); err != nil || c.kind != "" && one.Type != "urn:weir:problem:"+c.kind {
			t.Errorf("%s: %v %s", c.name, err, w.Body)
		}
		if c.status < 500 && c.kind != "" && !strings.Contains(w.Body.String(), `"errors":[{"pointer":"/title","message":"is so"}]`) {
			t.Errorf("%s: %s", c.name, w.Body)
		}
		batch := r.do("POST", "/v1/gallery/batch", `[{"op":"put","entity":"Album","item":`+sea+`}]`)
		var many struct{ Results []outcome }
		if err := json.Unmarshal(batch.Body.Bytes(), &many); err != nil || batch.Code != 200 || len(many.Results) != 1 || many.Results[0].Status != c.status {
			t.Errorf("%s in a batch: %d %s", c.name, batch.Code, batch.Body)
		}
		if strings.Contains(w.Body.String()+batch.Body.String(), "secret") {
			t.Errorf("%s tells too much: %s %s", c.name, w.Body, batch.Body)
		}
		if c.status == 503 && !strings.Contains(r.log.String(), "level=WARN") {
			t.Errorf("%s is not logged: %s", c.name, r.log.String())
		}
	}
}

func TestHealth(t *testing.T) {
	r := newRig(t, "gallery")
	if w := r.do("GET", "/healthz", ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestTwoModelsOfOneName(t *testing.T) {
	r := newRig(t, "gallery")
	one := r.api.targets[0].Target
	if _, err := New([]Target{one, one}, Options{}); err == nil {
		t.Error("two models of one name are taken")
	}
}

// A spent rate refuses a batch as a whole, by how many commands it has.
func TestRate(t *testing.T) {
	r := newRig(t, "gallery")
	h := web.Access{Open: true, Rate: 1, Burst: 3}.Wrap(r.api)
	ask := func(body string) int {
		req := httptest.NewRequest("POST", "/v1/gallery/batch", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		io.Copy(io.Discard, w.Result().Body)
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Error(w.Header())
		}
		return w.Code
	}
	got := fmt.Sprint(ask(`[{},{}]`), ask(`[{},{}]`), ask(`[{}]`))
	if got != "200 429 429" {
		t.Error(got)
	}
}

// Whatever is sent, nothing breaks, and an answer is what it says it is.
func FuzzRequest(f *testing.F) {
	r := newRig(f, "gallery", "viewing")
	for _, s := range []string{"", "{}", sea, "null", `{"id":"a","id":"b"}`, `[{"op":"create","entity":"Album","item":` + sea + `}]`, "\xff", `{"id":1e400}`, `{"id":"\ud800"}`} {
		for i := range uint8(5) {
			f.Add(i, "id=a", s)
		}
	}
	paths := []string{"/v1/gallery/Album", "/v1/gallery/User", "/v1/viewing/History", "/v1/gallery/batch", "/v1/gallery/UserInteraction"}
	methods := []string{"POST", "PUT", "PATCH", "DELETE", "GET"}
	f.Fuzz(func(t *testing.T, pick uint8, raw, body string) {
		w := r.do(methods[int(pick)%5], paths[int(pick/5)%5]+"?"+raw, body, "Content-Type", "application/json")
		if w.Code >= 500 || w.Code != 204 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d %q %q: %d %s", pick, raw, body, w.Code, w.Body)
		}
	})
}
