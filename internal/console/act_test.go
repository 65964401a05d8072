package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

var tokenOf = regexp.MustCompile(`name="token" value="([^"]*)"`)

// post sends a form as a page of the console does, or changed by edit.
func (w *world) post(path string, form url.Values, edit func(*http.Request)) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+r.Host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if edit != nil {
		edit(r)
	}
	a := httptest.NewRecorder()
	w.c.ServeHTTP(a, r)
	return a
}

var pot = store.Ref{Table: "shop-rows", Key: store.Key{Partition: value.OfString("PRODUCT#pot"), Sort: value.OfString("ABOUT")}}

// refuses gives a product the dead letter of a row that refuses what it should show.
func (w *world) refuses() {
	w.t.Helper()
	ledger, err := w.part.Runner.GetRow(w.t.Context(), owntable.Ledger("shop", pot))
	if err == nil {
		_, err = w.part.Runner.NoteShown(w.t.Context(), pot, ledger, errors.New("it was refused"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// parks gives a product a dead letter that a retry can help, and one that it cannot, and returns their ids.
func (w *world) parks() (helped, image string) {
	w.t.Helper()
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.derive()
	bad := value.Item{}.With(value.Attr{Name: "PK", Value: value.OfString("PRODUCT#pot")}, value.Attr{Name: "SK", Value: value.OfString("REVIEW#bo")},
		value.Attr{Name: "kind", Value: value.OfString("review")}, value.Attr{Name: "stars", Value: value.OfString("many")})
	key := store.Key{Partition: bad.Get("PK"), Sort: bad.Get("SK")}
	if err := w.s.Store.Transact(w.t.Context(), []store.Write{{Ref: store.Ref{Table: "shop-rows", Key: key}, Put: bad}}); err != nil {
		w.t.Fatal(err)
	}
	w.derive()
	w.refuses()
	for _, d := range w.letters() {
		switch d.Kind {
		case deadletter.Publish:
			helped = d.ID
		case deadletter.Image:
			image = d.ID
		}
	}
	if helped == "" || image == "" {
		w.t.Fatalf("no such dead letters: %v", w.letters())
	}
	return helped, image
}

func (w *world) letters() (out []deadletter.Letter) {
	w.t.Helper()
	err := w.part.Runner.EachDeadLetter(w.t.Context(), func(d deadletter.Letter) error { out = append(out, d); return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestForeignActions: what does not come from a page of a console that may act does nothing.
func TestForeignActions(t *testing.T) {
	w := opened(t, Options{Write: true})
	id, _ := w.parks()
	before := len(w.letters())
	good := url.Values{"token": {w.c.token}, "action": {"discard"}, "sure": {"yes"}}
	with := func(k, v string) url.Values {
		f := url.Values{}
		for name, all := range good {
			f[name] = all
		}
		f.Set(k, v)
		return f
	}
	for name, one := range map[string]struct {
		form url.Values
		edit func(*http.Request)
	}{
		"a foreign origin": {good, func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Del("Sec-Fetch-Site")
		}},
		"a foreign site":        {good, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
		"the same site":         {good, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }},
		"an opaque origin":      {good, func(r *http.Request) { r.Header.Set("Origin", "null"); r.Header.Del("Sec-Fetch-Site") }},
		"nothing of the origin": {good, func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") }},
		"no token":              {with("token", ""), nil},
		"another token":         {with("token", strings.Repeat("A", len(w.c.token))), nil},
		"a token in the URL":    {with("token", ""), func(r *http.Request) { r.URL.RawQuery = "token=" + w.c.token }},
		"another kind of form":  {good, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
	} {
		for _, path := range []string{"/console/shop/dead/" + id, "/console/shop/dead", "/console/shop/verify"} {
			if a := w.post(path, one.form, one.edit); a.Code != http.StatusForbidden {
				t.Errorf("%s at %s: %d", name, path, a.Code)
			}
		}
	}
	for _, path := range []string{"/console/shop/dead/" + id, "/console/shop/dead"} {
		w.ask("GET", path+"?"+good.Encode())
	}
	if a := w.ask("GET", "/console/shop/verify?"+good.Encode()); a.Code/100 == 2 {
		t.Errorf("a GET of an action: %d", a.Code)
	}
	reading := opened(t, Options{})
	other, _ := reading.parks()
	if page := reading.page("/console/shop/dead/" + other); tokenOf.MatchString(page) || strings.Contains(page, `method="post"`) {
		t.Error("a console that only reads offers actions")
	}
	for _, path := range []string{"/console/shop/dead/" + other, "/console/shop/dead", "/console/shop/verify"} {
		form := url.Values{"token": {reading.c.token}, "action": {"discard"}, "sure": {"yes"}}
		if a := reading.post(path, form, nil); a.Code != http.StatusForbidden {
			t.Errorf("a console that only reads answers %s with %d", path, a.Code)
		}
	}
	if n := len(w.letters()); n != before || len(reading.letters()) != before {
		t.Errorf("%d and %d dead letters are left of %d", n, len(reading.letters()), before)
	}
	if a := w.post("/console/shop/dead/"+id, good, nil); a.Code != http.StatusSeeOther || len(w.letters()) != before-1 {
		t.Errorf("the same from a page of the console: %d, %d dead letters", a.Code, len(w.letters()))
	}
}

// TestLetters: one is retried, all are retried, and one is discarded once that is confirmed.
func TestLetters(t *testing.T) {
	w := opened(t, Options{Write: true})
	id, image := w.parks()
	token := tokenOf.FindStringSubmatch(w.page("/console/shop/dead/" + id))[1]
	form := func(pairs ...string) url.Values {
		f := url.Values{"token": {token}}
		for i := 0; i < len(pairs); i += 2 {
			f.Set(pairs[i], pairs[i+1])
		}
		return f
	}
	if a := w.post("/console/shop/dead", form("action", "retry"), nil); a.Code != 200 || !strings.Contains(a.Body.String(), "1 applied, 1 stay.") {
		t.Errorf("retry all: %d %s", a.Code, a.Body)
	}
	if left := w.letters(); len(left) != 1 || left[0].ID != image {
		t.Errorf("left: %v", left)
	}
	if a := w.post("/console/shop/dead/"+image, form("action", "retry"), nil); a.Code != http.StatusConflict || !strings.Contains(a.Body.String(), "still a dead letter") {
		t.Errorf("retry what cannot be helped: %d %s", a.Code, a.Body)
	}
	if a := w.post("/console/shop/dead/"+image, form("action", "discard"), nil); a.Code != 200 || !strings.Contains(a.Body.String(), "Discard it for good") || len(w.letters()) != 1 {
		t.Errorf("discard is not confirmed first: %d, %d left", a.Code, len(w.letters()))
	}
	if a := w.post("/console/shop/dead/"+image, form("action", "discard", "sure", "yes"), nil); a.Code != http.StatusSeeOther || len(w.letters()) != 0 {
		t.Errorf("discard: %d, %d left", a.Code, len(w.letters()))
	}
	if a := w.post("/console/shop/dead/"+image, form("action", "retry"), nil); a.Code != http.StatusNotFound {
		t.Errorf("one that is gone: %d", a.Code)
	}
	w.refuses()
	if a := w.post("/console/shop/dead/"+id, form("action", "retry"), nil); a.Code != http.StatusSeeOther || len(w.letters()) != 0 {
		t.Errorf("retry: %d, %d left", a.Code, len(w.letters()))
	}
}

// TestVerifyFromHere: a recount finds what was spoilt, without values that the model may hide, and ends when it
// is told to or the console closes.
func TestVerifyFromHere(t *testing.T) {
	w := opened(t, Options{Write: true})
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.derive()
	run := func() string {
		t.Helper()
		if a := w.post("/console/shop/verify", url.Values{"token": {w.c.token}, "action": {"verify"}}, nil); a.Code != http.StatusSeeOther {
			t.Fatalf("verify: %d %s", a.Code, a.Body)
		}
		for range 400 {
			if page := w.page("/console/shop/health"); !strings.Contains(page, "A recount runs") {
				return page
			}
			time.Sleep(25 * time.Millisecond)
		}
		t.Fatal("the recount does not end")
		return ""
	}
	if page := run(); !strings.Contains(page, "and none differs") {
		t.Errorf("nothing differs, and it says\n%s", page)
	}
	rows, err := w.s.Store.Get(t.Context(), []store.Ref{pot})
	failtest.On(t, err)
	spoilt := rows[0].With(value.Attr{Name: "reviews", Value: value.OfInt(77)})
	failtest.On(t, w.s.Store.Transact(t.Context(), []store.Write{{Ref: pot, Put: spoilt}}))
	if page := run(); !regexp.MustCompile(`(?s)1 of \d+ derived values differ.*PRODUCT#pot · ABOUT.*Product\.reviews.*<bdi>77<`).MatchString(page) {
		t.Errorf("the spoilt count is not listed, or with a value:\n%s", page)
	}
	if a := w.post("/console/shop/verify", url.Values{"token": {w.c.token}, "action": {"verify"}}, nil); a.Code != http.StatusSeeOther {
		t.Fatal(a.Code)
	}
	if a := w.post("/console/shop/verify", url.Values{"token": {w.c.token}, "action": {"stop"}}, nil); a.Code != http.StatusSeeOther {
		t.Fatal(a.Code)
	}
	w.c.Close() // waits for it
	if page := w.page("/console/shop/health"); !strings.Contains(page, "stopped before it ended") {
		t.Errorf("it does not say that it was stopped:\n%s", page)
	}
}
