package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestSelect: an answer has the attributes asked for, in their order, and the cursor is the
// one of the same query without.
func TestSelect(t *testing.T) {
	r := newRig(t, 3)
	if got := r.do("GET", "/v1/gallery/album?albumId=a1&select=title,none,id").Body.String(); got != `{"items":[{"title":"Sommer & <Meer>","id":"a1"}]}`+"\n" {
		t.Error(got)
	}
	first := r.page("/v1/gallery/public-albums?isPublic=true&limit=2&select=id")
	if len(first.Items) != 2 || first.Cursor == nil {
		t.Fatalf("%+v", first)
	}
	if rest := r.page("/v1/gallery/public-albums?isPublic=true&cursor=" + url.QueryEscape(*first.Cursor)); len(rest.Items) != 1 {
		t.Errorf("behind the cursor: %+v", rest)
	}
	for _, bad := range []string{"", ",", "id,", "id&select=title"} {
		if w := r.do("GET", "/v1/gallery/album?albumId=a1&select="+bad); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"select"`) {
			t.Errorf("select=%s: %d %s", bad, w.Code, w.Body)
		}
	}
}

// TestQueriesAreDescribed: the description has each query with its parameters, every reference
// leads somewhere, and an answer fits its schema.
func TestQueriesAreDescribed(t *testing.T) {
	r := newRig(t, 3)
	w := r.do("GET", "/openapi.json")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(w.Body.String()))
	if w.Code != http.StatusOK || err != nil {
		t.Fatal(w.Code, err)
	}
	delete(doc.(map[string]any), "jsonSchemaDialect")
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	paths := doc.(map[string]any)["paths"].(map[string]any)
	for _, e := range r.api.engines {
		for _, q := range e.Model.Queries {
			path := "/v1/" + e.Model.Name + "/" + q.Name
			item, _ := paths[path].(map[string]any)
			if item == nil {
				t.Errorf("%s is not described", path)
				continue
			}
			have := map[string]bool{}
			for _, p := range item["get"].(map[string]any)["parameters"].([]any) {
				have[p.(map[string]any)["name"].(string)] = true
			}
			for _, p := range e.Parameters(q.Name) {
				if !have[p.Name] {
					t.Errorf("%s lacks the parameter %s", path, p.Name)
				}
			}
			if !have["limit"] || !have["cursor"] || !have["select"] {
				t.Errorf("%s: %v", path, have)
			}
			at := "openapi.json#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/get/responses/200/content/application~1json/schema"
			s, err := c.Compile(at)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if q.Name == "public-albums" {
				var page any
				if err := json.Unmarshal(r.do("GET", path+"?isPublic=true").Body.Bytes(), &page); err != nil || s.Validate(page) != nil {
					t.Errorf("%v, %v", err, s.Validate(page))
				}
				page.(map[string]any)["items"].([]any)[0].(map[string]any)["isPublic"] = "true"
				if s.Validate(page) == nil {
					t.Error("a flag as text fits the schema")
				}
			}
		}
	}
	if again := r.do("GET", "/openapi.json").Body.String(); again != w.Body.String() {
		t.Error("the same models have two descriptions")
	}
}
