package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/internal/store"
)

func (w *world) form(pairs ...string) url.Values {
	f := url.Values{"token": {w.c.token}}
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return f
}

func (w *world) count() int {
	w.t.Helper()
	page, err := w.s.Store.Query(w.t.Context(), store.Query{Table: "shop-rows", Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(page.Rows)
}

// TestRowForm: a row is written by the form of its entity, and what is wrong is said at its field.
func TestRowForm(t *testing.T) {
	w := opened(t, Options{Write: true, Try: &Try{}})
	if page := w.page("/console/shop/new/Review"); !strings.Contains(page, `name="field.product"`) || !strings.Contains(page, `number, required`) {
		t.Errorf("the form is not the entity's:\n%s", page)
	}
	path := "/console/shop/new/Review"
	a := w.post(path, w.form("action", "create", "field.product", "pot", "field.user", "ida", "field.stars", "many<b>"), nil)
	if a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), `value="many&lt;b&gt;" autocomplete="off" spellcheck="false" aria-invalid="true"`) || w.count() != 0 {
		t.Errorf("a mistake at a field: %d %s", a.Code, a.Body)
	}
	if a := w.post(path, w.form("action", "create", "field.product", "pot", "field.user", "ida"), nil); a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), `<span class="bad">is required</span>`) {
		t.Errorf("a required field: %d %s", a.Code, a.Body)
	}
	good := w.form("action", "create", "field.product", "pot", "field.user", "ida", "field.stars", "4")
	if a := w.post(path, good, nil); a.Code != 200 || !strings.Contains(a.Body.String(), "The row is created.") || w.count() != 1 {
		t.Errorf("create: %d %s", a.Code, a.Body)
	}
	if a := w.post(path, good, nil); a.Code != http.StatusUnprocessableEntity || w.count() != 1 {
		t.Errorf("a row that is there: %d %s", a.Code, a.Body)
	}
	list := w.form("action", "put", "field.id", "pot", "field.name", "Tea pot", "field.tags", `["a"`)
	if a := w.post("/console/shop/new/Product", list, nil); a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), "is JSON") {
		t.Errorf("a list that is none: %d %s", a.Code, a.Body)
	}
	good.Set("action", "delete")
	if a := w.post(path, good, nil); a.Code != 200 || w.count() != 0 {
		t.Errorf("delete: %d %s", a.Code, a.Body)
	}
}

// TestTriesAreRefused: no tool answers without a token, from elsewhere, by GET, in a console that only reads, or in
// a process that is not for trying things out.
func TestTriesAreRefused(t *testing.T) {
	killed := 0
	tools := &Try{Kill: func(string) int { killed++; return killed }}
	w := opened(t, Options{Write: true, Try: tools})
	paths := map[string][]string{
		"/console/shop/kill":       {"action", "kill"},
		"/console/shop/new/Review": {"action", "create", "field.product", "pot", "field.user", "ida", "field.stars", "4"},
	}
	for path, pairs := range paths {
		form := w.form(pairs...)
		if a := w.post(path, form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); a.Code != http.StatusForbidden {
			t.Errorf("%s from elsewhere: %d", path, a.Code)
		}
		w.ask("GET", path+"?"+form.Encode())
		form.Del("token")
		if a := w.post(path, form, nil); a.Code != http.StatusForbidden {
			t.Errorf("%s without a token: %d", path, a.Code)
		}
	}
	if killed != 0 || w.count() != 0 {
		t.Errorf("%d killed, %d rows", killed, w.count())
	}
	for name, o := range map[string]Options{"reading": {Try: tools}, "running": {Write: true}} {
		w := opened(t, o)
		for path, pairs := range paths {
			if a := w.post(path, w.form(pairs...), nil); a.Code/100 != 4 {
				t.Errorf("%s: %s: %d", name, path, a.Code)
			}
		}
		if a := w.ask("GET", "/console/shop/try"); a.Code != http.StatusNotFound || killed != 0 || w.count() != 0 {
			t.Errorf("%s: %d, %d killed, %d rows", name, a.Code, killed, w.count())
		}
	}
	if a := w.post("/console/shop/kill", w.form("action", "kill"), nil); a.Code != http.StatusSeeOther || killed != 1 {
		t.Errorf("from its own page: %d, %d killed", a.Code, killed)
	}
}
