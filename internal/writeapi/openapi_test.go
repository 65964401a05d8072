package writeapi

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var all = []string{"gallery", "movienight", "viewing", "wardrobe", "watchlists"}

// document is a description as JSON, and a compiler that knows it.
func document(t *testing.T, names ...string) (doc map[string]any, c *jsonschema.Compiler) {
	t.Helper()
	text := newRig(t, names...).do("GET", "/openapi.json", "").Body.Bytes()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c = jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	// Schemas are read by the dialect that OpenAPI 3.1 builds on.
	doc = v.(map[string]any)
	dialect := doc["jsonSchemaDialect"]
	delete(doc, "jsonSchemaDialect")
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	doc["jsonSchemaDialect"] = dialect
	return doc, c
}

// checkReferences checks that every reference of a description leads to one of its parts.
func checkReferences(t *testing.T, doc map[string]any, text []byte) {
	t.Helper()
	for _, ref := range regexp.MustCompile(`"\$ref":"(#[^"]*)"`).FindAllSubmatch(text, -1) {
		at := any(doc)
		for step := range strings.SplitSeq(strings.TrimPrefix(string(ref[1]), "#/"), "/") {
			m, _ := at.(map[string]any)
			at = m[step]
		}
		if at == nil {
			t.Errorf("%s leads nowhere", ref[1])
		}
	}
}

// TestDescription: every schema is one, every reference leads somewhere, and what
// OpenAPI asks of a document is there.
func TestDescription(t *testing.T) {
	doc, c := document(t, all...)
	text, _ := json.Marshal(doc)
	checkReferences(t, doc, text)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	if len(schemas) < 100 {
		t.Errorf("%d schemas", len(schemas))
	}
	for name := range schemas {
		if _, err := c.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ids := map[string]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o := op.(map[string]any)
			id, _ := o["operationId"].(string)
			if id == "" || ids[id] || o["responses"] == nil {
				t.Errorf("%s %s: operationId %q", method, path, id)
			}
			ids[id] = true
		}
	}
	for _, m := range all {
		if !ids["batch."+m] {
			t.Errorf("no batch of %s", m)
		}
	}
}

// The same models give the same bytes, whoever asks when.
func TestDescriptionIsDeterministic(t *testing.T) {
	first := newRig(t, all...).do("GET", "/openapi.json", "").Body.Bytes()
	for range 3 {
		if !bytes.Equal(first, newRig(t, all...).do("GET", "/openapi.json", "").Body.Bytes()) {
			t.Fatal("another description")
		}
	}
	if !bytes.Contains(first, []byte(`"openapi":"3.1.0"`)) || bytes.Contains(first, []byte("securitySchemes")) {
		t.Errorf("%.200s", first)
	}
}

// TestSchemas: what the description allows is taken, what it forbids is refused, and
// what is answered is as described.
func TestSchemas(t *testing.T) {
	_, compiler := document(t, "gallery")
	schema := func(name string) *jsonschema.Schema {
		s, err := compiler.Compile("openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := newRig(t, "gallery")
	for _, c := range []struct {
		body string
		good bool
	}{
		{sea, true},
		{`{"id":"a","title":"x","createdAt":"2026-01-31T12:00:00Z","isPublic":"false","tags":["x"],"createdBy":null}`, true},
		{`{"id":"","title":"x","createdAt":"2026-01-31T12:00:00Z"}`, false},
		{`{"id":"b","title":null,"createdAt":"2026-01-31T12:00:00Z"}`, false},
		{`{"id":"b","createdAt":"2026-01-31T12:00:00Z"}`, false},
		{`{"id":"b","title":"x","createdAt":"today"}`, false},
		{`{"id":"b","title":"x","createdAt":"2026-01-31T12:00:00Z","isPublic":"yes"}`, false},
		{`{"id":"b","title":"x","createdAt":"2026-01-31T12:00:00Z","createdByType":"robot"}`, false},
		{`{"id":"b","title":"x","createdAt":"2026-01-31T12:00:00Z","mediaCount":1}`, false},
		{`{"id":"b","title":"x","createdAt":"2026-01-31T12:00:00Z","what":1}`, false},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		err = schema("gallery.Album.Whole").Validate(v)
		w := r.do("PUT", albums, c.body)
		if (err == nil) != c.good || (w.Code < 300) != c.good {
			t.Errorf("%s: by the schema %v; answered %d %s", c.body, err, w.Code, w.Body)
		}
		answer, _ := jsonschema.UnmarshalJSON(w.Body)
		if c.good {
			err = schema("gallery.Album").Validate(answer)
		} else {
			err = schema("Problem").Validate(answer)
		}
		if err != nil {
			t.Errorf("%s: the answer: %v", c.body, err)
		}
	}
}

// TestQueriesAreDescribedBeside: a server that answers queries too describes both, and no
// reference leads nowhere.
func TestQueriesAreDescribedBeside(t *testing.T) {
	a := newRig(t, all...).api
	text, err := a.describe(true, true)
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]any{}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	checkReferences(t, doc, text)
	paths := doc["paths"].(map[string]any)
	for _, one := range a.targets {
		for _, q := range one.Model.Queries {
			if paths["/v1/"+one.Model.Name+"/"+q.Name] == nil {
				t.Errorf("the query %s of %s is not described", q.Name, one.Model.Name)
			}
		}
		if paths["/v1/"+one.Model.Name+"/batch"] == nil {
			t.Errorf("the writes of %s are not described", one.Model.Name)
		}
	}
}
