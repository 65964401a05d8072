package ingestcli

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/cli/clitest"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// TestJSON holds docs/guide/json.md against what commands print with -o json: no field is on one
// side alone, or of another type.
func TestJSON(t *testing.T) {
	soaktest.Calm(t)
	page := clitest.JSONPage(t, "../../docs/guide/json.md", "ingest")
	data := filepath.Join(t.TempDir(), "data")
	check := func(section, stdin string, args ...string) {
		t.Helper()
		var out, said bytes.Buffer
		if code := run(t.Context(), append(args, "--data", data, "-o", "json"), strings.NewReader(stdin), &out, &said); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, said.String())
		}
		var v map[string]any
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", out.String(), err)
		}
		seen := map[string]any{}
		flatten(seen, "", v)
		for path, x := range seen {
			if is := page[section][path]; is.Kind != clitest.KindOf(is.Kind, x) {
				t.Errorf("%s prints %s: %v, on the page %+v", section, path, x, is)
			}
		}
		for path := range page[section] {
			if _, ok := seen[path]; !ok {
				t.Errorf("the page has %s of %s, which prints %s", path, section, out.String())
			}
		}
		delete(page, section)
	}
	check("ingest put", `{"op": "create", "entity": "Album", "item": {"id": "a1", "title": "Sea", "createdAt": "2025-01-01T00:00:00Z"}}`, "put", "gallery", "-")
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	s, err := system.Open(t.Context(), data, []*model.Model{m}, system.Options{NoSearch: true, Writes: true})
	if err != nil {
		t.Fatal(err)
	}
	key := store.Key{Partition: value.OfString("ALBUM#a2"), Sort: value.OfString("METADATA")}
	done, err := s.Store.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Ops: []store.Op{
		{Kind: store.Set, Attr: "EntityType", Value: value.OfString("Album")}, {Kind: store.Set, Attr: "id", Value: value.OfString("a2")},
	}}})
	if err != nil || done[0].Err != nil {
		t.Fatal(err, done)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check("ingest backfill", "", "backfill", "gallery", "--dry-run")
	check("ingest migrate", "", "migrate", "watchlists", "v1", "--dry-run")
	if len(page) > 0 {
		t.Errorf("no command prints what the page has of %q", slices.Sorted(maps.Keys(page)))
	}
}

// flatten adds the fields of an object by their paths, with those of the objects in its lists. What
// other objects contain is named by the model.
func flatten(to map[string]any, under string, v map[string]any) {
	for name, x := range v {
		to[under+name] = x
		list, _ := x.([]any)
		for _, y := range list {
			if object, ok := y.(map[string]any); ok {
				flatten(to, under+name+"[].", object)
			}
		}
	}
}
