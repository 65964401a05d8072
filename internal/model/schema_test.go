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

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"weir/internal/failtest"
	"weir/internal/goldentest"

	"weir/internal/seq"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	failtest.On(t, err)
	c := jsonschema.NewCompiler()
	failtest.On(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	failtest.On(t, err)
	return s
}

// instance is a YAML text as a JSON validator sees it.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var n yaml.Node
	failtest.On(t, yaml.Unmarshal(text, &n))
	nameTexts(&n)
	var v any
	failtest.On(t, n.Decode(&v))
	b, err := json.Marshal(v)
	failtest.On(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	failtest.On(t, err)
	return out
}

// nameTexts makes texts of the names in maps, which JSON has.
func nameTexts(n *yaml.Node) {
	for i, in := range n.Content {
		if nameTexts(in); n.Kind == yaml.MappingNode && i%2 == 0 {
			in.Tag = "!!str"
		}
	}
}

func TestSchemaTakesEveryGoodModel(t *testing.T) {
	s := compiledSchema(t)
	good, _ := filepath.Glob("testdata/good/*.yaml")
	built, _ := filepath.Glob("../../models/*.yaml")
	examples, _ := filepath.Glob("../../examples/*/*.yaml")
	for _, file := range append(slices.Concat(good, built, examples), "testdata/base.yaml") {
		m, err := Load(file)
		failtest.On(t, err)
		if err := s.Validate(instance(t, m.text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Files whose shape alone is wrong are refused by the schema, too.
func TestSchemaRefusesBrokenModels(t *testing.T) {
	s, base := compiledSchema(t), sections(t, "testdata/base.yaml")
	datadriven.RunTest(t, "testdata/lint/shape.txt", func(t *testing.T, d *datadriven.TestData) string {
		if err := s.Validate(instance(t, []byte(whole(d.Input+"\n", base)))); err == nil {
			t.Errorf("the schema takes %s", d.Input)
		}
		return d.Expected
	})
}

type schemaNode struct {
	Properties map[string]any         `json:"properties"`
	Defs       map[string]*schemaNode `json:"$defs"`
}

func schemaDefs(t *testing.T) map[string]*schemaNode {
	t.Helper()
	var root schemaNode
	failtest.On(t, json.Unmarshal(Schema(), &root))
	return root.Defs
}

// TestSchema: models/schema.json is made of the declarations with their tags and comments, and of testdata/schema.json, which
// has the values that are no maps of keys. With -says it is written again.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile("testdata/schema.json")
	failtest.On(t, err)
	var root object
	failtest.On(t, json.Unmarshal(text, &root))
	s := schemaMaker{t, root["$defs"].(object), commentsOf(t)}
	typed := slices.Concat(types, seq.Map(types, func(typ string) string { return typ + "!" }))
	for name, words := range map[string][]string{"attribute-type": types, "type": typed, "key-type": keyTypeNames, "record": records} {
		s.defs[name].(object)["enum"] = words
	}
	test := s.defs["test"].(object)["properties"].(object)
	if d := cmp.Diff(slices.Sorted(slices.Values(testKeys)), slices.Sorted(maps.Keys(test))); d != "" {
		t.Errorf("words of a test that are read (-), and in the schema (+):\n%s", d)
	}
	for _, k := range kinds {
		s.define(reflect.TypeOf(k.declare()).Elem())
	}
	for _, d := range []any{modelDecl{}, followDecl{}, paramDecl{}, groupValueDecl{}, groupLatestDecl{}} {
		s.define(reflect.TypeOf(d))
	}
	body := strings.TrimPrefix(strings.TrimSuffix(formatted(root, ""), "\n}"), "{\n")
	goldentest.Part(t, "../../models/schema.json", "{\n", "\n}\n", body)
}

type object = map[string]any

// schemaMaker makes definitions of declarations.
type schemaMaker struct {
	t        *testing.T
	defs     object
	comments map[string][]string // by "type.field", in lines
}

// Definitions of testdata/schema.json: of the values of keys whose type does not say all, by noun and key, and of what may
// stand in place of a map, by its noun.
var (
	keyShapes = map[string]string{
		"attribute type": "attribute-type", "attribute default": "default", "attribute min": "number", "attribute max": "number",
		"attribute plus": "plus", "parameter param": "param", "key template template": "template",
	}
	shortShapes = map[string]string{
		"index": "key", "key template": "template", "attribute": "type", "time bucket": "word", "returned value": "word",
	}
	typeShapes = map[string]string{
		"word": "word", "[]model.word": "words", "[]model.pair": "pairs", "[]model.testDecl": "where", "namesOrPairs": "names-or-pairs",
		"keyDecl": "key", "sets": "set", "becomes": "into", "derivations": "derivations", "groupSet": "group-set",
	}
)

func ref(name string) object { return object{"$ref": "#/$defs/" + strings.ReplaceAll(name, " ", "-")} }

func listOf(one object) object {
	return object{"anyOf": []any{one, object{"type": "array", "minItems": 1, "items": one}}}
}

// define adds the definition of a declaration, and those of what stands in it.
func (s schemaMaker) define(typ reflect.Type) {
	noun := nounOf(typ)
	name := strings.ReplaceAll(noun, " ", "-")
	if s.defs[name] != nil {
		return
	}
	properties, beside := object{}, map[string][]string{}
	def := object{"type": "object", "additionalProperties": false, "properties": properties, "description": s.described(typ, typ.Field(0), "")}
	s.defs[name] = def
	either := strings.Fields(typ.Field(0).Tag.Get("either"))
	var required []string
	var alone, all []any
	for _, field := range reflect.VisibleFields(typ) {
		if !field.IsExported() {
			continue
		}
		tag, keys := field.Tag, []string{strings.ToLower(field.Name)}
		if of, several := tag.Lookup("keys"); several {
			keys = strings.Fields(of)
			alone = requiring(keys)
		}
		for _, key := range keys {
			p := s.value(noun, key, field)
			p["description"] = s.described(typ, field, key)
			properties[key] = p
			_, needed := tag.Lookup("need")
			with := strings.Fields(tag.Get("with"))
			switch {
			case len(with) == 1:
				beside[key] = append(beside[key], with...)
			case len(with) > 1:
				def["dependentSchemas"] = object{key: object{"anyOf": requiring(with)}}
			case needed && len(keys) == 1:
				required = append(required, key)
			}
			for _, other := range with {
				if needed {
					beside[other] = append(beside[other], key)
				}
			}
			if of, limited := tag.Lookup("of"); limited {
				all = append(all, object{"if": object{"properties": object{"type": object{"not": object{"enum": strings.Fields(of)}}}}, "then": object{"properties": object{key: false}}})
			}
			if only, limited := tag.Lookup("only"); limited {
				alone = append(alone, object{"required": []string{key}, "propertyNames": object{"enum": append(strings.Fields(only), key)}})
				either = slices.DeleteFunc(either, func(other string) bool { return other == key })
			}
		}
	}
	alone = append(alone, requiring(either)...)
	if noun == "attribute" {
		all = append(all, ref("max"))
	}
	for key, value := range map[string]any{"required": required, "oneOf": alone, "allOf": all, "dependentRequired": beside} {
		if reflect.ValueOf(value).Len() > 0 {
			def[key] = value
		}
	}
}

// requiring is a schema for each of some keys, which says that the key is there.
func requiring(keys []string) []any {
	return seq.Map(keys, func(key string) any { return object{"required": []string{key}} })
}

// value is what stands under a key.
func (s schemaMaker) value(noun, key string, field reflect.StructField) (p object) {
	tag, typ := field.Tag, field.Type
	_, needed := tag.Lookup("need")
	_, some := tag.Lookup("some")
	_, dotted := tag.Lookup("form")
	words, limited := tag.Lookup("one")
	one := object{"enum": strings.Fields(words)}
	named := nameSchema(tag.Get("name"))
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch shape, entries := typeShapes[strings.TrimPrefix(typ.String(), "model.")], strings.HasPrefix(typ.Name(), "named["); {
	case keyShapes[noun+" "+key] != "":
		p = ref(keyShapes[noun+" "+key])
	case limited && shape == "word":
		p = one
	case limited && shape == "pairs":
		p = object{"type": "object", "additionalProperties": one}
	case limited:
		p = listOf(one)
	case dotted:
		p = ref("dotted")
	case shape == "word" && len(named) > 0:
		named["type"] = "string"
		p, named = named, nil
	case shape != "":
		p = ref(shape)
	case typ.Kind() == reflect.Bool:
		p = object{"type": "boolean"}
	case typ.Kind() == reflect.Int:
		return object{"type": "integer", "minimum": json.Number(tag.Get("from")), "maximum": json.Number(tag.Get("to"))}
	case typ == reflect.TypeOf(keyword{}):
		return ref(map[bool]string{true: "words", false: "word"}[some])
	case typ == reflect.TypeOf(steps{}):
		s.define(reflect.TypeOf(stepDecl{}))
		return listOf(ref("step"))
	case entries:
		of := typ.Elem().Elem()
		s.define(of)
		p = object{"type": "object", "additionalProperties": ref(nounOf(of))}
		if short := shortShapes[nounOf(of)]; short != "" {
			p["additionalProperties"] = object{"anyOf": []any{ref(short), ref(nounOf(of))}}
		}
		if noun == "model" && !needed {
			p["type"] = []any{"object", "null"}
		}
	case typ.Kind() == reflect.Struct:
		s.define(typ)
		return ref(nounOf(typ))
	default:
		s.t.Fatalf("%s of %s is a %s, and no shape is known for it", key, noun, typ)
	}
	if needed || some {
		p["minProperties"] = 1
		if typ == reflect.TypeOf(namesOrPairs{}) {
			p["minItems"] = 1
		}
	}
	if to := tag.Get("to"); to != "" {
		p["maxProperties"] = json.Number(to)
	}
	if len(named) > 0 {
		p["propertyNames"] = named
	}
	return p
}

// nameSchema is the rule of names of such a thing; empty for none.
func nameSchema(of string) object {
	out, rule := object{}, nameRules[of]
	if of == "" {
		return out
	}
	out["pattern"] = rule.pattern.String()
	if rule.most > 0 {
		out["maxLength"] = rule.most
	}
	if rule.ours != nil {
		out["not"] = object{"pattern": rule.ours.String()}
	}
	return out
}

// described is the comment of a field of a declaration; of one that stands for several keys, the line of this key.
func (s schemaMaker) described(typ reflect.Type, field reflect.StructField, key string) string {
	if len(field.Index) > 1 { // of a declaration that begins this one
		typ = typ.Field(0).Type
	}
	name := typ.Name() + "." + field.Name
	if key == "" {
		name = typ.Name() + "." // what begins the declaration
	}
	lines := s.comments[name]
	if keys := strings.Fields(field.Tag.Get("keys")); len(keys) > 0 {
		of := ""
		lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			if word, _, begins := strings.Cut(line, ": "); begins && slices.Contains(keys, word) {
				of = word
			}
			return of != key
		})
	}
	text := strings.TrimPrefix(strings.Join(lines, " "), key+": ")
	if text == "" {
		s.t.Errorf("%s: the comment that describes it is missing (%s)", name, key)
	}
	return text
}

// commentsOf returns the lines of comments of the fields of structs, by "type.field"; those of an embedded field are under "type.".
func commentsOf(t *testing.T) map[string][]string {
	files, _ := filepath.Glob("*.go")
	out, of, comment := map[string][]string{}, "", []string(nil)
	for _, name := range files {
		text, err := os.ReadFile(name)
		failtest.On(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			words := strings.Fields(line)
			switch {
			case len(words) > 2 && words[0] == "type" && words[2] == "struct":
				of, comment = words[1], nil
			case strings.HasPrefix(line, "\t// "):
				comment = append(comment, strings.TrimPrefix(line, "\t// "))
			case len(comment) > 0 && len(words) > 1 && strings.HasPrefix(words[1], "`noun:"):
				out[of+"."], comment = comment, nil
			case len(comment) > 0 && len(words) > 0:
				out[of+"."+words[0]], comment = comment, nil
			}
		}
	}
	return out
}

// formatted is a value as JSON; what fits a line is in one.
func formatted(v any, indent string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	line := strings.TrimSpace(b.String())
	entries, is := v.(object)
	if !is || indent != "" && len(line) < 160-len(indent) {
		return line
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		lines = append(lines, fmt.Sprintf("%s  %q: %s", indent, key, formatted(entries[key], indent+"  ")))
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n" + indent + "}"
}
