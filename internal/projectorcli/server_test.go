package projectorcli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weir/internal/failtest"
)

// answers is a server that gives one answer after the other, and keeps what it was asked.
type answers struct {
	give  []http.HandlerFunc
	asked []string
	keys  []string
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := len(a.asked)
	a.asked, a.keys = append(a.asked, r.URL.String()), append(a.keys, r.Header.Get("Authorization"))
	if n >= len(a.give) {
		http.Error(w, "asked too often", http.StatusTeapot)
		return
	}
	a.give[n](w, r)
}

func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

// asks runs a query against the answers.
func (a *answers) asks(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	s := httptest.NewServer(a)
	defer s.Close()
	var out, said bytes.Buffer
	code = run(context.Background(), append([]string{"query", "gallery", "albums", "--server", s.URL}, args...), strings.NewReader(""), &out, &said)
	return code, out.String(), strings.ReplaceAll(said.String(), s.URL, "URL")
}

// TestServerPages: all pages are asked for, with the key, rows stay as the server wrote them, and
// what is unfinished is said once.
func TestServerPages(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	failtest.On(t, os.WriteFile(keys, []byte("first-key-0123456789 read metrics\nsecond-key-0123456789\n"), 0o600))
	a := &answers{give: []http.HandlerFunc{
		answer(200, `{"items":[{"n":1.10,"z":"<"},{"n":2}],"cursor":"c1"}`, "Weir-Unfinished", "Album.mediaCount"),
		answer(200, `{"items":[],"cursor":"c2"}`, "Weir-Unfinished", "Album.mediaCount"),
		answer(200, `{"items":[{"n":3}]}`),
	}}
	code, out, said := a.asks(t, "limit=3", "--only", "n,z", "--keys-file", keys, "-o", "json")
	if code != exitGood || out != "[\n{\"n\":1.10,\"z\":\"<\"},\n{\"n\":2},\n{\"n\":3}\n]\n" || strings.Count(said, "Album.mediaCount") != 1 {
		t.Errorf("%d %s %s", code, out, said)
	}
	want := "/v1/gallery/albums?limit=3&select=n%2Cz /v1/gallery/albums?cursor=c1&limit=1&select=n%2Cz /v1/gallery/albums?cursor=c2&limit=1&select=n%2Cz"
	if have := strings.Join(a.asked, " "); have != want {
		t.Errorf("asked %s", have)
	}
	for _, key := range a.keys {
		if key != "Bearer first-key-0123456789" {
			t.Errorf("key %q", key)
		}
	}
}

// TestServerWithoutEnd: pages that go round end with an error, and so does an answer larger than a page can be.
func TestServerWithoutEnd(t *testing.T) {
	var a answers
	for i := range 100 {
		a.give = append(a.give, answer(200, `{"items":[{"n":1}],"cursor":"c`+strconv.Itoa(i%5)+`"}`))
	}
	if code, _, said := a.asks(t); code == exitGood || !strings.Contains(said, "gave before") || len(a.asked) > 30 {
		t.Errorf("%d after %d pages: %s", code, len(a.asked), said)
	}
	endless := answers{give: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat(" ", 1<<20))); err != nil {
				return
			}
		}
	}}}
	if code, _, said := endless.asks(t); code == exitGood || !strings.Contains(said, "more than 20 MB") {
		t.Errorf("%d: %s", code, said)
	}
}

// TestServerOfRows: an answer whose rows are no objects, or more than were asked for, is not printed as one, whatever it would
// take to read, and each row is a line.
func TestServerOfRows(t *testing.T) {
	for name, items := range map[string]string{
		"numbers": `[1]`, "null": `[{"n":1},null]`, "texts": `["a"]`, "lists": `[[]]`, "no array": `{"n":1}`, "a text": `"[]"`, "nothing": `null`,
		"many": `[{}` + strings.Repeat(`,{}`, 1000) + `]`, "very many": `[0` + strings.Repeat(`,0`, 9<<20) + `]`,
	} {
		a := &answers{give: []http.HandlerFunc{answer(200, `{"items":`+items+`}`)}}
		if code, out, said := a.asks(t); code != exitUsage || out != "" || !strings.Contains(said, "does not answer as a server of weir does") {
			t.Errorf("%s: %d %s %s", name, code, out, said)
		}
	}
	a := &answers{give: []http.HandlerFunc{answer(200, "{\"items\":[{\n\"n\": \"a b\"\r\n},{\"n\":2},{\"n\":3}],\"cursor\":\"c\"}")}}
	if code, out, said := a.asks(t, "limit=2"); code != exitGood || out != "{\"n\":\"a b\"}\n{\"n\":2}\n" || len(a.asked) != 1 {
		t.Errorf("%d %s %s", code, out, said)
	}
}

// TestServerOfEmptyPages: pages without rows, each of which names another, end with an error.
func TestServerOfEmptyPages(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		answer(200, `{"items":[],"cursor":"`+strconv.Itoa(asked)+`"}`)(w, nil)
	}))
	defer s.Close()
	if code, said := runs(t, "query", "gallery", "albums", "--server", s.URL); code != 3 || asked != mostEmpty || !strings.Contains(said, "10000 pages without a row") {
		t.Errorf("%d after %d pages: %s", code, asked, said)
	}
}

// TestServerRefuses: each answer that is none is an error that says what to do, with the exit code for
// it; rows before it are printed; the key is not printed, and is sent to no other server.
func TestServerRefuses(t *testing.T) {
	const key = "secret-key-0123456789"
	problem := func(status int, detail string) http.HandlerFunc {
		return answer(status, `{"type":"urn:weir:problem:x","detail":"`+detail+`"}`)
	}
	other := &answers{}
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	for _, c := range []struct {
		name string
		key  string
		give []http.HandlerFunc
		args []string
		code int
		said string
	}{
		{"no key", "", []http.HandlerFunc{problem(401, "a key")}, nil, exitUsage, "needs a key: give it in WEIR_KEYS or with --keys-file"},
		{"another key", key, []http.HandlerFunc{problem(401, "a key")}, nil, exitUsage, "does not know the key"},
		{"a mistake", key, []http.HandlerFunc{problem(404, "no query albums")}, nil, exitUsage, "no query albums (404)"},
		{"too often", key, []http.HandlerFunc{problem(429, "too much in a short time")}, nil, 3, "too much in a short time (429)"},
		{"busy", key, []http.HandlerFunc{answer(200, `{"items":[{"n":1}],"cursor":"c"}`), problem(503, "busy")}, nil, 3, "busy (503)"},
		{"moved", key, []http.HandlerFunc{answer(302, "", "Location", elsewhere.URL)}, nil, exitUsage, "Found (302)"},
		{"not weir", key, []http.HandlerFunc{answer(200, `<html>`)}, nil, exitUsage, "does not answer as a server of weir does"},
		{"not weir either", key, []http.HandlerFunc{answer(200, `{}`)}, nil, exitUsage, "does not answer as a server of weir does"},
		{"breaks off", key, []http.HandlerFunc{answer(200, `{"items":`, "Content-Length", "100")}, nil, 3, "breaks off"},
		{"a parameter of HTTP", key, nil, []string{"cursor=x"}, exitUsage, "query albums has no parameter cursor"},
		{"a comma", key, nil, []string{"--only", "a\\,b"}, exitUsage, "none may be empty or have a comma"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("WEIR_KEYS", strings.Trim(c.key+","+c.key+"-2", ","))
			if c.key == "" {
				t.Setenv("WEIR_KEYS", "")
			}
			a := &answers{give: c.give}
			code, out, said := a.asks(t, c.args...)
			if code != c.code || !strings.Contains(said, c.said) || strings.Contains(said, key) {
				t.Errorf("%d %s", code, said)
			}
			if c.name == "busy" && out != "{\"n\":1}\n" {
				t.Errorf("%q", out)
			}
			if len(a.asked) != len(c.give) {
				t.Errorf("asked %q", a.asked)
			}
		})
	}
	if len(other.asked) > 0 {
		t.Errorf("the other server was asked, with %q", other.keys)
	}
	for _, url := range []string{"localhost:8480", "ftp://x", "http://u:" + key + "@x", "http://x/?a=b", "::"} {
		code, said := runs(t, "query", "gallery", "albums", "--server", url)
		if code != exitUsage || !strings.Contains(said, "--server takes a URL such as http://127.0.0.1:8480") || strings.Contains(said, key) {
			t.Errorf("%s: %d %s", url, code, said)
		}
	}
	if code, said := runs(t, "query", "gallery", "albums", "--server", "http://127.0.0.1:1"); code != 3 || !strings.Contains(said, "http://127.0.0.1:1 does not answer") {
		t.Errorf("%d %s", code, said)
	}
}
