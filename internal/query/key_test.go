package query

import (
	"testing"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

func part(t *testing.T, template string, typed ...string) *keyPart {
	t.Helper()
	tmpl, err := model.ParseTemplate(template)
	if err != nil {
		t.Fatal(err)
	}
	k := &keyPart{attr: store.KeyAttr{Name: "K", Type: value.String}, tmpl: tmpl, typed: typed}
	if tmpl.Whole() {
		k.name = tmpl.Names()[0]
	}
	return k
}

func from(values map[string]any) lookup {
	return func(name string) value.Value {
		switch v := values[name].(type) {
		case string:
			return value.OfString(v)
		case int:
			return value.OfInt(int64(v))
		case bool:
			return value.OfBool(v)
		}
		return value.Value{}
	}
}

type is = map[string]any

func TestBoundIsAsMuchAsTheNamesSay(t *testing.T) {
	for _, c := range []struct {
		template string
		values   is
		want     string
		whole    bool
	}{
		{"META", nil, "META", true},
		{"A#{a}", nil, "A#", false},
		{"A#{a}", is{"a": "x"}, "A#x", true},
		{"A#{a}", is{"a": true}, "A#true", true},
		{"{a}#{b}", is{"b": "y"}, "", false},
		{"{a}#{b}", is{"a": 7}, "7#", false},
		{"{a}", is{"a": "x"}, "x", true},
		{"{a}", nil, "", false},
		{"/{show}[/{season}]", is{"show": "14"}, "/14", false},
		{"/{show}[/{season}]", is{"show": "14", "season": "3"}, "/14/3", true},
		{"/{show}[/{season}]", is{"season": "3"}, "/", false},
		{"A#{a}#END", is{"a": "x"}, "A#x#END", true},
	} {
		k := part(t, c.template)
		if v, whole := k.buildPrefix(from(c.values)); v.Text() != c.want || whole != c.whole {
			t.Errorf("%s of %v: %q %v", c.template, c.values, v.Text(), whole)
		}
	}
	k := part(t, "USER#{user}#END", "user")
	row := value.NewItem(value.Attr{Name: "K", Value: value.OfString("USER#a%23%25#END")})
	if v := k.readName("user", row); v.Text() != "a#%" {
		t.Error(v.Text())
	}
	if v := k.readName("nobody", row); !v.IsMissing() {
		t.Error(v)
	}
}

func TestConvertTakesTheKeysType(t *testing.T) {
	num, bin := value.OfInt(7), value.OfBinary("x")
	for _, c := range []struct {
		typ  value.Kind
		v    value.Value
		want value.Value
	}{
		{value.Number, value.OfString("7.0"), num},
		{value.Number, value.OfString("seven"), value.Value{}},
		{value.Number, bin, value.Value{}},
		{value.String, num, value.OfString("7")},
		{value.String, value.OfString(""), value.Value{}},
		{value.String, value.OfStrings([]string{"x"}), value.Value{}},
		{value.Binary, bin, bin},
		{value.Binary, value.OfBinary(""), value.Value{}},
		{value.Binary, num, value.Value{}},
		{value.String, value.Value{}, value.Value{}},
	} {
		k := keyPart{attr: store.KeyAttr{Name: "K", Type: c.typ}, name: "a"}
		if got := k.convertValue(c.v); !value.Equal(got, c.want) {
			t.Errorf("%v as %v: %v", c.v, c.typ, got)
		}
	}
}

func TestParametersAreOfTheirType(t *testing.T) {
	for _, c := range []struct {
		typ        model.Type
		text, want string
	}{
		{model.TypeString, "007", "007"}, {model.TypeNumber, "007", "7"}, {model.TypeNumber, "1e2", "100"}, {model.TypeAny, "x", "x"},
		{model.TypeTime, "2025-01-01T02:00:00+02:00", "2025-01-01T00:00:00Z"}, {model.TypeTime, "2025-01-01T00:00:00.000Z", "2025-01-01T00:00:00.000Z"},
		{model.TypeBinary, "AP8=", "\x00\xff"}, {model.TypeList, "a", "a"},
	} {
		p := Parameter{Type: c.typ}
		if v, err := p.parseText(c.text); err != nil || v.Text() != c.want {
			t.Errorf("%s %q: %q %v", c.typ, c.text, v.Text(), err)
		}
	}
	p := Parameter{Type: model.TypeBinary}
	if _, err := p.parseText("!"); err == nil {
		t.Error("it is not base64")
	}
}
