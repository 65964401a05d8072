package web

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/memory"
)

const keyA, keyB, keyC = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"

var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if Spend(w, r, 1) {
		w.WriteHeader(http.StatusOK)
	}
})

func ask(h http.Handler, path, host, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.Host = host
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func password(key string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("any:"+key))
}

func TestWhoMayAsk(t *testing.T) {
	keys, err := OpenKeys("", keyA+", "+keyB, nil)
	failtest.On(t, err)
	for _, c := range []struct {
		name                      string
		access                    Access
		path, host, authorization string
		status                    int
	}{
		{"the first key", Access{Keys: keys}, "/x", "h", "Bearer " + keyA, 200},
		{"the second key", Access{Keys: keys}, "/x", "h", "bearer " + keyB, 200},
		{"another key", Access{Keys: keys}, "/x", "h", "Bearer " + keyC, 401},
		{"the beginning of a key", Access{Keys: keys}, "/x", "h", "Bearer " + keyA[:15], 401},
		{"both keys", Access{Keys: keys}, "/x", "h", "Bearer " + keyA + "," + keyB, 401},
		{"no key", Access{Keys: keys}, "/x", "h", "", 401},
		{"an empty key", Access{Keys: keys}, "/x", "h", "Bearer ", 401},
		{"a password", Access{Keys: keys}, "/x", "h", "Basic " + keyA, 401},
		{"a key as a password of the API", Access{Keys: keys}, "/v1/gallery/albums", "h", password(keyA), 401},
		{"a key as a password of the first page", Access{Keys: keys}, "/", "h", password(keyA), 200},
		{"a key as a password of the console", Access{Keys: keys}, "/console/gallery/rows", "h", password(keyB), 200},
		{"a key of the console as a header", Access{Keys: keys}, "/console/gallery", "h", "Bearer " + keyA, 200},
		{"another password of the console", Access{Keys: keys}, "/console/gallery", "h", password(keyC), 401},
		{"no password of the console", Access{Keys: keys}, "/", "h", "", 401},
		{"no key, on this machine", Access{Keys: keys, Local: true}, "/x", "127.0.0.1", "", 401},
		{"no key, though open", Access{Keys: keys, Open: true}, "/x", "h", "", 401},
		{"health without a key", Access{Keys: keys}, "/healthz", "h", "", 200},
		{"open", Access{Open: true}, "/x", "anything.example", "", 200},
		{"neither keys nor open", Access{}, "/x", "localhost", "Bearer " + keyA, 401},
		{"this machine by number", Access{Local: true}, "/x", "127.0.0.1:8480", "", 200},
		{"this machine by name", Access{Local: true}, "/x", "LocalHost:8480", "", 200},
		{"this machine by its other number", Access{Local: true}, "/x", "[::1]:8480", "", 200},
		{"this machine by a name of a stranger", Access{Local: true}, "/x", "evil.example:8480", "", 421},
		{"this machine by a name that begins well", Access{Local: true}, "/x", "127.0.0.1.evil.example", "", 421},
	} {
		w := ask(c.access.Wrap(ok), c.path, c.host, c.authorization)
		if w.Code != c.status {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		want := "Bearer "
		if IsConsole(c.path) {
			want = "Basic "
		}
		if w.Code == 401 && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), want) {
			t.Errorf("%s: %v", c.name, w.Header())
		}
	}
}

// TestRoles: a key with roles is good for what they say alone, and one without for everything.
func TestRoles(t *testing.T) {
	keys, err := OpenKeys("", keyA+" read metrics, "+keyB+" write,"+keyC, nil)
	failtest.On(t, err)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, c := range []struct {
		method, path string
		may          [3]bool
	}{
		{"GET", "/v1/gallery/albums", [3]bool{true, false, true}}, {"HEAD", "/openapi.json", [3]bool{true, false, true}},
		{"POST", "/v1/gallery/Album", [3]bool{false, true, true}}, {"DELETE", "/v1/gallery/Album", [3]bool{false, true, true}},
		{"GET", "/metrics", [3]bool{true, false, true}}, {"GET", "/", [3]bool{false, false, true}}, {"POST", "/console/gallery/dead", [3]bool{false, false, true}},
	} {
		for i, key := range []string{keyA, keyB, keyC} {
			r, w := httptest.NewRequest(c.method, c.path, nil), httptest.NewRecorder()
			r.Header.Set("Authorization", "Bearer "+key)
			Access{Keys: keys, Burst: 1}.Wrap(ok).ServeHTTP(w, r)
			if want := map[bool]int{true: 200, false: 403}[c.may[i]]; w.Code != want {
				t.Errorf("%s %s with key %d: %d %s", c.method, c.path, i+1, w.Code, w.Body)
			}
		}
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	for environ, say := range map[string]string{
		"tooshort":                       "fewest",
		keyA + "," + keyB + "," + keyC:   "3 keys",
		",":                              "0 keys",
		"with-roles-of-its-own read all": "not all roles",
		"one-key-0123456789 read,one-key-0123456789": "key 2 is key 1 with other roles",
		"with\x01a-control-character":                "visible ASCII",
		"ümlaut-aaaaaaaaaaaaaaaaaaaaaaa":             "visible ASCII",
	} {
		if _, err := OpenKeys("", environ, nil); err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), environ) {
			t.Errorf("%s: %v", environ, err)
		}
		failtest.On(t, os.WriteFile(file, []byte(strings.ReplaceAll(environ, ",", "\n")), 0o600))
		if _, err := OpenKeys(file, "", nil); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s in a file: %v", environ, err)
		}
	}
	if _, err := OpenKeys(file, keyA, nil); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
	if _, err := OpenKeys(file+"-not", "", nil); err == nil {
		t.Error("there is no such file")
	}
	if k, err := OpenKeys("", "", nil); k != nil || err != nil {
		t.Error(k, err)
	}
}

// TestRotation: a new key is written beside the old one, then the old one goes; a
// file that is broken for a moment locks nobody out and lets nobody in.
func TestRotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	var log bytes.Buffer
	k := &Keys{}
	write := func(text string) {
		t.Helper()
		failtest.On(t, os.WriteFile(file, []byte(text), 0o600))
		k.looked = time.Time{} // a second later
	}
	write(keyA + "\n")
	k, err := OpenKeys(file, "", slog.New(slog.NewTextHandler(&log, nil)))
	failtest.On(t, err)
	good := func(want ...string) {
		t.Helper()
		for _, key := range []string{keyA, keyB, keyC} {
			which, _ := k.find(key)
			got := which > 0
			if expected := strings.Contains(strings.Join(want, " "), key); got != expected {
				t.Errorf("%s: %v, want %v", key, got, expected)
			}
		}
	}
	good(keyA)
	write(keyA + "\n" + keyB + "\n")
	good(keyA, keyB)
	write(keyB)
	good(keyB)
	write("short")
	good(keyB)
	if !strings.Contains(log.String(), "stay good") {
		t.Error(log.String())
	}
	write(keyC + "\r\n\r\n")
	good(keyC)
	failtest.On(t, os.Remove(file))
	k.looked = time.Time{}
	good(keyC)

	// A file that could not be read at first is read when it can be, though its date
	// and length stay as they were.
	date := time.Now()
	at := func(text string, mode os.FileMode) {
		t.Helper()
		os.Remove(file)
		failtest.On(t, errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, date, date), os.Chmod(file, mode)))
		k.looked = time.Time{}
	}
	at(keyA[1:], 0o600)
	good(keyC)
	at(keyA, 0o600)
	good(keyA)
	at(keyB, 0o600)
	good(keyB)

	// Keys whose file cannot be used are good for a minute.
	at("short", 0o600)
	good(keyB)
	k.looked, k.good = time.Time{}, time.Now().Add(-staleAfter)
	good()
	if !strings.Contains(log.String(), "all requests are refused") {
		t.Error(log.String())
	}
	at(keyA, 0o600)
	good(keyA)
}

func TestRate(t *testing.T) {
	keys, err := OpenKeys("", keyA+","+keyB, nil)
	failtest.On(t, err)
	h := Access{Keys: keys, Rate: 0.5, Burst: 2}.Wrap(ok)
	for _, key := range []string{keyA, keyB} { // one spends nothing of the other's
		for i, want := range []int{200, 200, 429} {
			w := ask(h, "/x", "h", "Bearer "+key)
			if w.Code != want || (want == 429) != (w.Header().Get("Retry-After") == "2") {
				t.Errorf("%d: %d %v", i, w.Code, w.Header())
			}
		}
	}
	many := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Spend(w, r, 3) })
	if w := ask(Access{Open: true, Rate: 1, Burst: 2}.Wrap(many), "/x", "h", ""); w.Code != 429 || !strings.Contains(w.Body.String(), "at once") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	h = Access{Open: true}.Wrap(many)
	for range 100 {
		if w := ask(h, "/x", "h", ""); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// TestAddresses: what others reach needs keys or a word.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		addr  string
		flags Flags
		rate  float64
		keys  string
		say   string
	}{
		{"127.0.0.1:0", Flags{}, 0, "", ""},
		{"localhost:0", Flags{}, 0, "", ""},
		{":0", Flags{}, 0, "", "--open"},
		{"0.0.0.0:0", Flags{}, 0, "", "others reach"},
		{":0", Flags{Open: true}, 0, "", ""},
		{":0", Flags{}, 0, keyA, ""},
		{":0", Flags{}, 0, "short", "WEIR_KEYS"},
		{"127.0.0.1:0", Flags{KeysFile: "/nowhere/at/all"}, 0, "", "/nowhere"},
		{"127.0.0.1:0", Flags{}, -1, "", "--rate"},
		{"nowhere", Flags{}, 0, "", "--addr"},
	} {
		t.Setenv(EnvKeys, c.keys)
		s, err := c.flags.Serve(c.addr, Limits{c.rate}, memory.Need{}, 0, ok, slog.New(slog.DiscardHandler))
		if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v", c, err)
		}
		if s != nil {
			s.listener.Close()
		}
	}
}

// TestAskers: requests are counted for their key, wherever they come from, and without
// keys for their address.
func TestAskers(t *testing.T) {
	keys, err := OpenKeys("", keyA+","+keyB, nil)
	failtest.On(t, err)
	asker := func(a Access, key, from string) (who Asker) {
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.RemoteAddr = from
		r.Header.Set("Authorization", "Bearer "+key)
		a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who = AskerOf(r) })).ServeHTTP(httptest.NewRecorder(), r)
		return who
	}
	with, open := Access{Keys: keys}, Access{Open: true}
	if a := asker(with, keyA, "10.0.0.1:1"); a != asker(with, keyA, "10.0.0.2:1") || a == asker(with, keyB, "10.0.0.1:1") {
		t.Error("a key is not an asker")
	}
	if a := asker(open, keyA, "10.0.0.1:1"); a != asker(open, keyB, "10.0.0.1:2") || a == asker(open, keyA, "10.0.0.2:1") {
		t.Error("an address is not an asker")
	}
}
