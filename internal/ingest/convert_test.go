package ingest

import (
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/value"
)

func TestConvert(t *testing.T) {
	words := &model.Attribute{Type: model.TypeString, Enum: []string{"draft", "done"}, Reading: &model.Reading{Legacy: map[string]string{"closed": "done"}}}
	bounded := &model.Attribute{Type: model.TypeNumber, Least: value.MustNumber("-0.5"), Most: value.OfInt(5)}
	of := func(typ model.Type) *model.Attribute { return &model.Attribute{Type: typ} }
	for _, c := range []struct {
		attr         *model.Attribute
		given        string
		want, reason string
	}{
		{of(model.TypeString), `"a"`, `{"S":"a"}`, ""},
		{of(model.TypeString), `7`, "", "must be a text, not 7"},
		{&model.Attribute{Type: model.TypeString, Max: 3}, `"äöü"`, `{"S":"äöü"}`, ""},
		{&model.Attribute{Type: model.TypeString, Max: 3}, `"four"`, "", "has 4 characters, 3 are possible"},
		{words, `"draft"`, `{"S":"draft"}`, ""},
		{words, `"closed"`, `{"S":"done"}`, ""},
		{words, `"drafd"`, "", `is never "drafd"; did you mean "draft"?`},
		{words, `"elsewhere"`, "", `must be one of draft, done, not "elsewhere"`},
		{of(model.TypeNumber), `12345678901234567890.5`, `{"N":"12345678901234567890.5"}`, ""},
		{of(model.TypeNumber), `"7"`, "", `must be a number, not "7"`},
		{bounded, `-0.5`, `{"N":"-0.5"}`, ""},
		{bounded, `5`, `{"N":"5"}`, ""},
		{bounded, `-0.51`, "", "must be at least -0.5, not -0.51"},
		{bounded, `1e125`, "", "must be at most 5, not 1" + strings.Repeat("0", 125)},
		{bounded, `"7"`, "", `must be a number, not "7"`},
		{of(model.TypeBoolean), `true`, `{"BOOL":true}`, ""},
		{of(model.TypeBoolean), `"true"`, "", `must be true or false, not "true"`},
		{of(model.TypeFlag), `true`, `{"S":"true"}`, ""},
		{of(model.TypeFlag), `"false"`, `{"S":"false"}`, ""},
		{of(model.TypeFlag), `1`, "", "must be true or false, not 1"},
		{of(model.TypeFlag), `"yes"`, "", `must be true or false, not "yes"`},
		{of(model.TypeTime), `"2025-01-01T00:00:00.5Z"`, `{"S":"2025-01-01T00:00:00.5Z"}`, ""},
		{of(model.TypeTime), `"2025-01-01T02:00:00+02:00"`, `{"S":"2025-01-01T00:00:00Z"}`, ""},
		{of(model.TypeTime), `"2025-02-30T00:00:00Z"`, "", `must be a time like 2026-01-31T12:00:00Z, not "2025-02-30T00:00:00Z"`},
		{of(model.TypeTime), `"2025-02-03T9:00:00Z"`, "", `must be a time like 2026-01-31T12:00:00Z, not "2025-02-03T9:00:00Z"`},
		{of(model.TypeTime), `1735689600`, "", `must be a time like 2026-01-31T12:00:00Z, not 1735689600`},
		{of(model.TypeBinary), `"AQI="`, `{"B":"AQI="}`, ""},
		{of(model.TypeBinary), `"?"`, "", `must be a text in base64, not "?"`},
		{of(model.TypeList), `["a",1]`, `{"L":[{"S":"a"},{"N":"1"}]}`, ""},
		{of(model.TypeList), `{"a":1}`, "", "must be an array, not an object"},
		{of(model.TypeMap), `{"a":null}`, `{"M":{"a":{"NULL":true}}}`, ""},
		{of(model.TypeMap), `[]`, "", "must be an object, not an array"},
		{of(model.TypeStrings), `["b","a"]`, `{"SS":["a","b"]}`, ""},
		{of(model.TypeStrings), `["a","a"]`, "", "has an element twice"},
		{of(model.TypeStrings), `[]`, "", "must have an element: no table holds an empty set"},
		{of(model.TypeNumbers), `[1,"a"]`, "", `must be an array of numbers, not "a"`},
		{of(model.TypeCommas), `"a,b"`, `{"S":"a,b"}`, ""},
		{of(model.TypeCommas), `["a","b"]`, `{"S":"a,b"}`, ""},
		{of(model.TypeCommas), `["a,b"]`, "", `must be an array of texts without commas, not "a,b"`},
		{of(model.TypeAny), `[true]`, `{"L":[{"BOOL":true}]}`, ""},
	} {
		it, err := ReadItem([]byte(`{"v":` + c.given + `}`))
		if err != nil {
			t.Fatal(err)
		}
		v, reason := convertValue(c.attr, it.Get("v"))
		if reason != c.reason || reason == "" && string(value.AppendTyped(nil, v)) != c.want {
			t.Errorf("%s from %s: %s %q, not %s %q", c.attr.Type, c.given, value.AppendTyped(nil, v), reason, c.want, c.reason)
		}
	}
}

func TestReadItem(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1`:                 "is not JSON at byte 6: unexpected EOF",
		``:                       "there is nothing where JSON should be",
		`[1]`:                    "must be a JSON object, not an array",
		`{"a":{"b":1,"b":2}}`:    "/a/b is there twice",
		`{"a/b":{"~":1e999}}`:    `/a~1b/~0 is a number that no table holds: not a DynamoDB number: "1e999" is outside 1E-130 to 9.9E+125`,
		`{} {}`:                  "goes on after its end, at byte 4",
		"{\"a\":\"\xff\"}":       "",
		`{"a":"\ud800"}`:         "",
		`{"a":[[1,2],{"b":[]}]}`: "ok",
	} {
		_, err := ReadItem([]byte(text))
		switch {
		case want == "ok" && err != nil, want != "ok" && err == nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && want != "ok" && err.Error() != want:
			t.Errorf("%s:\n%s, not\n%s", text, err, want)
		}
	}
}

func TestTimesAreNotedInOrder(t *testing.T) {
	list := func(ts ...string) value.Value {
		var vs []value.Value
		for _, s := range ts {
			vs = append(vs, value.OfString(s))
		}
		return value.OfList(vs...)
	}
	const one, two, three = "2025-01-01T00:00:01Z", "2025-01-01T00:00:02Z", "2025-01-01T00:00:03.5Z"
	for _, c := range []struct {
		had, given value.Value
		at         string
		want       value.Value
		known      bool
	}{
		{value.Value{}, value.Value{}, one, list(one), false},
		{list(one), value.Value{}, two, list(one, two), false},
		{list(two), value.Value{}, one, list(one, two), false},
		{list(one, three), value.Value{}, two, list(one, two, three), false},
		{list(one, two), value.Value{}, two, list(one, two), true},
		{list("2025-01-01T00:00:01.000Z"), value.Value{}, one, list("2025-01-01T00:00:01.000Z"), true},
		{list(one), list(two, one), three, list(one, two, three), false},
		{list("long ago"), value.Value{}, one, list("long ago", one), false},
	} {
		got, known := insertTime(c.had, c.given, value.OfString(c.at))
		if !value.Equal(got, c.want) || known != c.known {
			t.Errorf("%s and %s: %s %v", value.AppendPlain(nil, c.had), c.at, value.AppendPlain(nil, got), known)
		}
	}
}
