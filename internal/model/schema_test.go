package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a YAML text as a JSON validator sees it.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(namedAsJSON(v))
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// namedAsJSON has the names in maps as JSON has them, as texts.
func namedAsJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = namedAsJSON(e)
		}
	case map[any]any:
		out := map[string]any{}
		for k, e := range v {
			out[fmt.Sprint(k)] = namedAsJSON(e)
		}
		return out
	case []any:
		for i, e := range v {
			v[i] = namedAsJSON(e)
		}
	}
	return v
}

func TestSchemaTakesEveryGoodModel(t *testing.T) {
	s := compiledSchema(t)
	good, _ := filepath.Glob("testdata/good/*.yaml")
	built, _ := filepath.Glob("../../models/*.yaml")
	for _, file := range append(append(good, built...), "testdata/base.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Each text stands in the place of a section of the base model, and is refused by
// the schema and by Parse alike.
func TestSchemaRefusesBrokenModels(t *testing.T) {
	s := compiledSchema(t)
	base := sections(t, "testdata/base.yaml")
	for _, section := range []string{
		"model: My Shop",
		"model: 5",
		"models: x",
		"tables: {}",
		"tables: {weir: {key: [PK]}}",
		"tables: {s: {key: [PK]}}",
		"tables: {shop: {}}",
		"tables: {shop: {key: PK}}",
		"tables: {shop: {key: [PK, SK, XK]}}",
		"tables: {shop: {key: [PK, {SK: text}]}}",
		"tables: {shop: {key: [PK, SK], indexes: [GSI1]}}",
		"tables: {shop: {key: [PK, SK], indexes: {GSI1: {key: [a], projection: some}}}}",
		"tables: {shop: {key: [PK, SK], stream: old}}",
		"tables: {shop: {key: [weir.a, SK]}}",
		"entities: {\"A b\": {key: {PK: a, SK: b}}}",
		"entities: {A: {key: {PK: a, SK: b}, keys: {}}}",
		"entities: {A: {key: {PK: 5, SK: b}}}",
		"entities: {A: {key: {PK: a, SK: b}, attributes: {a: text}}}",
		"entities: {A: {key: {PK: a, SK: b}, attributes: {a: {required: true}}}}",
		"entities: {A: {key: {PK: a, SK: b}, attributes: {a: {type: string, max: 0}}}}",
		"entities: {A: {key: {PK: a, SK: b}, attributes: {weir: string}}}",
		"entities: {A: {key: {PK: a, SK: b}, where: {a: {nor: b}}}}",
		"entities: {A: {key: {PK: a, SK: b}, where: {a: []}}}",
		"derive: {Album.n: {}}",
		"derive: {Album.n: {count: Photo, sum: Photo.stars}}",
		"derive: {Album.n: {row: Photo, set: {}}}",
		"derive: {Album.n: {mean: Photo.stars, to: {id: albumId}}}",
		"derive: {Album.n: {distinct: Photo.stars, to: {id: albumId}, max: 0}}",
		"derive: {Album.n: {count: Photo, to: {id: albumId}, round: 2}}",
		"derive: {Album.n: {count: Photo, to: {id: albumId}, hidden: true}}",
		"derive: {Log: {count: Photo}}",
		"derive: {Log: {row: Photo}}",
		"derive: {Log: {row: Photo, set: {}}}",
		"derive: {Log: {row: Photo, keep: [never], set: {a: b}}}",
		"derive: {Log: {row: Photo, keep: [], set: {a: b}}}",
		"derive: {Log: {row: Photo, set: {title: $tine}}}",
		"derive: {Log: {row: Photo, set: {title: 5}}}",
		"derive: {Log: {row: Photo, set: {title: {follow: Album}}}}",
		"derive: {Log: {row: Photo, set: {title: {follow: Album.title, bye: {}}}}}",
		"derive: {Log: {row: Photo, set: {title: {follow: Album.title, keep: last}}}}",
		"derive: {Album.kind: {steps: {}}}",
		"derive: {Album.kind: {steps: {travel: {}}}}",
		"derive: {Album.kind: {steps: {travel: {when: Photo, each: tags}}}}",
		"derive: {Album.kind: {steps: {travel: {when: Photo, to: {id: albumId}, each: tags}}}}",
		"derive: {Album.kind: {steps: {travel: {when: Photo, to: {id: albumId}, max: 0}}}}",
		"derive: {Album.kind: {steps: {travel: {when: Photo, to: {id: albumId}, then: x}}}}",
		"entities: {A: {key: {PK: a, SK: b}, attributes: {a: {type: string, enum: [b, c], after: {d: b, e: c}}}}}",
		"entities: {A: {key: {PK: a, SK: b}, attributes: {a: {type: list, else: Album}}}}",
		"queries: {a: {get: Album, with: [id], return: {}}}",
		"queries: {a: {get: Album, with: [id], return: {n: {}}}}",
		"queries: {a: {get: Album, with: [id], return: {n: {size: tags, distinct: Photo.place}}}}",
		"derive: {Album.n: {set: Photo.stars, to: {id: albumId}, count: Photo}}",
		"derive: {Log: {row: Photo, keep: [insert], each: Album, set: {title: place}}}",
		"derive: {Log: {row: Photo, keep: [insert], each: {of: Album}, set: {title: place}}}",
		"derive: {Log: {row: Photo, keep: [insert], each: {of: Album, by: [id], to: x}, set: {title: place}}}",
		"derive: {Log: {row: [], keep: [insert], set: {title: place}}}",
		"queries: {a: {list: [], with: [albumId]}}",
		"search: {albums: {of: Album}}",
		"search: {Albums: {of: Album, text: title}}",
		"search: {albums: {of: Album, text: title, facets: [a]}}",
		"queries: {A: {list: Album, by: GSI1}}",
		"queries: {a: {}}",
		"queries: {a: {get: Album, list: Album}}",
		"queries: {a: {get: Album, with: 5}}",
		"queries: {a: {search: albums, order: newest}}",
		"queries: {a: {list: Album, by: GSI1, order: new}}",
		"queries: {a: {list: Album, by: GSI1, below: [createdAt]}}",
		"queries: {a: {list: Album, by: GSI1, then: []}}",
		"queries: {a: {list: Album, by: GSI1, then: [{search: albums}]}}",
		"queries: {a: {list: Album, by: GSI1, limit: 5}}",
	} {
		name, _, _ := strings.Cut(section, ":")
		text := section + "\n"
		for _, s := range base {
			if !strings.HasPrefix(s, name+":") {
				text += s
			}
		}
		if err := s.Validate(instance(t, []byte(text))); err == nil {
			t.Errorf("the schema takes %s", section)
		}
		if _, err := Parse("m.yaml", []byte(text)); err == nil {
			t.Errorf("Parse takes %s", section)
		}
	}
}

type schemaNode struct {
	Ref         string                 `json:"$ref"`
	Description string                 `json:"description"`
	Properties  map[string]*schemaNode `json:"properties"`
	Enum        []string               `json:"enum"`
	Required    []string               `json:"required"`
	Defs        map[string]*schemaNode `json:"$defs"`
}

func schemaDefs(t *testing.T) map[string]*schemaNode {
	t.Helper()
	var root schemaNode
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	return root.Defs
}

// shapes returns the keys of each declaration, by its noun.
func shapes() map[string][]string {
	out := map[string][]string{"test": testKeys}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || nounOf(typ) == "" || out[nounOf(typ)] != nil {
			return
		}
		out[nounOf(typ)] = declaredKeys(typ)
		for _, s := range reflect.VisibleFields(typ) {
			walk(s.Type)
		}
	}
	for _, k := range kinds {
		walk(reflect.TypeOf(k.declare()))
	}
	for _, d := range []declaration{&modelDecl{}, &followDecl{}, &paramDecl{}} {
		walk(reflect.TypeOf(d))
	}
	return out
}

func TestSchemaHasTheReadersKeys(t *testing.T) {
	read, defined := map[string][]string{}, map[string][]string{}
	for shape, keys := range shapes() {
		read[strings.ReplaceAll(shape, " ", "-")] = slices.Sorted(slices.Values(keys))
	}
	for name, def := range schemaDefs(t) {
		if def.Properties != nil {
			defined[name] = slices.Sorted(maps.Keys(def.Properties))
		}
	}
	if d := cmp.Diff(read, defined); d != "" {
		t.Errorf("keys of the reader (-) and of models/schema.json (+):\n%s", d)
	}
}

func TestSchemaHasTheReadersWords(t *testing.T) {
	defs, both := schemaDefs(t), slices.Clone(types)
	one := func(d any, field string) []string {
		s, _ := reflect.TypeOf(d).FieldByName(field)
		return strings.Fields(s.Tag.Get("one"))
	}
	for _, typ := range types {
		both = append(both, typ+"!")
	}
	for name, c := range map[string]struct{ read, defined []string }{
		"types":       {both, defs["type"].Enum},
		"key types":   {keyTypeNames, defs["key-type"].Enum},
		"streams":     {one(tableDecl{}, "Stream"), defs["table"].Properties["stream"].Enum},
		"projections": {one(indexDecl{}, "Projection"), defs["index"].Properties["projection"].Enum},
		"events":      {one(rowDecl{}, "Keep"), defs["event"].Enum},
		"orders":      {one(stepDecl{}, "Order"), defs["step"].Properties["order"].Enum},
	} {
		if d := cmp.Diff(c.read, c.defined); d != "" {
			t.Errorf("%s of the reader (-) and of models/schema.json (+):\n%s", name, d)
		}
	}
	for _, word := range records {
		if !bytes.Contains(Schema(), []byte(`"`+word+`"`)) {
			t.Errorf("models/schema.json has no %s", word)
		}
	}
}

// An editor shows a description for every key.
func TestSchemaDescribesEveryKey(t *testing.T) {
	defs := schemaDefs(t)
	resolve := func(ref string) *schemaNode {
		path := strings.Split(strings.TrimPrefix(ref, "#/$defs/"), "/")
		n := defs[path[0]]
		if len(path) == 3 {
			n = n.Properties[path[2]]
		}
		return n
	}
	for name, def := range defs {
		for key, p := range def.Properties {
			for p.Description == "" && p.Ref != "" {
				p = resolve(p.Ref)
			}
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, key)
			}
		}
	}
}
