package model

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/failtest"
	"weir/internal/value"
)

// reachable returns the fields in a part of a compiled model, found by reflection: those of what it
// is made of, and nothing of what it only refers to.
func reachable(v reflect.Value, out map[*Field]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		switch x := v.Interface().(type) {
		case *Field:
			if x != nil {
				out[x] = true
			}
		case *Amount, *Bucket, *Subscribers, *Follow:
			if !v.IsNil() {
				reachable(v.Elem(), out)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			reachable(v.Index(i), out)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Input]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				reachable(v.Field(i), out)
			}
		}
	}
}

// TestInputsAreWhole: each field in what a derivation is compiled into is in one of its inputs, so no
// construct reads a field past the rule of types; and its declared type is in the definition.
func TestInputsAreWhole(t *testing.T) {
	checked := 0
	for name, text := range modelFiles(t) {
		m := mustParse(t, name, text)
		holds := func(of string, part any, elsewhere map[*Field]bool, inputs ...*Input) {
			have := map[string]bool{}
			for _, in := range inputs {
				if in.Derivation == "" {
					t.Errorf("%s: an input of %s is of no derivation", name, of)
				}
				for i := range in.Where {
					have[in.Where[i].Field.Name] = true
				}
				for _, f := range in.Fields {
					have[f.Name] = true
				}
			}
			all := map[*Field]bool{}
			reachable(reflect.ValueOf(part).Elem(), all)
			for f := range all {
				if checked++; !elsewhere[f] && !have[f.Name] {
					t.Errorf("%s: %s reads %s, and no input has it", name, of, f.Name)
				}
			}
		}
		for _, tally := range m.Tallies {
			for _, s := range tally.Sources {
				holds(tally.Name, s, nil, &s.Input, &s.Given)
			}
		}
		for _, r := range m.Rows {
			inputs, followed := []*Input{&r.Input}, map[*Field]bool{}
			if r.Subscribers != nil {
				inputs = append(inputs, &r.Subscribers.Input)
			}
			for _, f := range m.Follows {
				followed[f.Field] = true // package follow reads it of its own row
			}
			holds(r.Name, r, followed, inputs...)
		}
		for _, f := range m.Follows {
			if f.Rule == nil {
				holds(f.Name, f, map[*Field]bool{f.Field: true}, &f.Input)
			}
		}
		for _, l := range m.Latest {
			holds(l.Name, l, nil, &l.Input, &l.Given)
		}
		for _, s := range m.Statuses {
			for _, st := range s.Stages {
				holds(s.Name, st, nil, &st.Input)
				if st.List != nil && st.List.Others != nil {
					holds(s.Name, st.List.Others, nil, &st.List.Others.Input, &s.Input)
				}
			}
		}
		for _, s := range m.Searches {
			holds(s.Derivation(), s, nil, &s.Input)
		}
	}
	if checked < 150 {
		t.Errorf("only %d fields", checked)
	}
}

// TestReadTypes: which values each type takes, and as what.
func TestReadTypes(t *testing.T) {
	berlin, err := zoneOf("Europe/Berlin")
	failtest.On(t, err)
	text, num := value.OfString, value.MustNumber
	list, set := value.OfList(text("a")), value.OfStrings([]string{"a"})
	numbers, _ := value.OfElements(value.NumberSet, []value.Attr{{Value: num("1")}})
	object := value.OfMap(value.NewItem(value.Attr{Name: "a", Value: num("1")}))
	all := map[string]value.Value{
		"null": value.OfNull(), "text": text("x"), "digits": text("07"), "number": num("1500"), "true": value.OfBool(true), "binary": value.OfBinary("b"),
		"list": list, "strings": set, "numbers": numbers, "map": object, "time": text("2026-01-31T12:00:00Z"), "local": text("2026-01-31 12:00:00"),
	}
	for _, c := range []struct {
		a     Attribute
		takes map[string]string // what is taken, and as what if that differs
	}{
		{Attribute{Type: TypeString}, map[string]string{"text": "", "digits": "", "time": "", "local": ""}},
		{Attribute{Type: TypeCommas}, map[string]string{"text": "", "digits": "", "time": "", "local": ""}},
		{Attribute{Type: TypeNumber}, map[string]string{"number": ""}},
		{Attribute{Type: TypeNumber, As: AsText}, map[string]string{"number": "", "digits": "7"}},
		{Attribute{Type: TypeBoolean}, map[string]string{"true": ""}},
		{Attribute{Type: TypeFlag}, map[string]string{"true": "", "text": "", "digits": "", "time": "", "local": ""}},
		{Attribute{Type: TypeTime}, map[string]string{"time": ""}},
		{Attribute{Type: TypeTime, Zone: berlin}, map[string]string{"time": "", "local": "2026-01-31T11:00:00Z"}},
		{Attribute{Type: TypeTime, As: AsSeconds}, map[string]string{"number": "1970-01-01T00:25:00Z"}},
		{Attribute{Type: TypeTime, As: AsMilliseconds}, map[string]string{"number": "1970-01-01T00:00:01.5Z"}},
		{Attribute{Type: TypeBinary}, map[string]string{"binary": ""}},
		{Attribute{Type: TypeList}, map[string]string{"list": "", "strings": "", "numbers": ""}},
		{Attribute{Type: TypeStrings}, map[string]string{"list": "", "strings": ""}},
		{Attribute{Type: TypeNumbers}, map[string]string{"list": "", "numbers": ""}},
		{Attribute{Type: TypeMap}, map[string]string{"map": ""}},
		{Attribute{Type: TypeAny}, nil},
	} {
		for name, v := range all {
			as, takes := c.takes[name]
			takes = takes || name == "null" || c.a.Type == TypeAny
			got, want := c.a.Read(v, false)
			if (want == "") != takes {
				t.Errorf("%s %s: %s: wants %q", c.a.Type, c.a.As, name, want)
			}
			if as == "" && !value.Equal(got, v) || as != "" && value.Scalar(got) != as {
				t.Errorf("%s %s: %s is read as %v", c.a.Type, c.a.As, name, value.Scalar(got))
			}
			if _, same := c.a.Read(c.a.Store(got), false); want == "" && same != "" {
				t.Errorf("%s %s: %s is not what rows have", c.a.Type, c.a.As, value.Scalar(c.a.Store(got)))
			}
		}
	}
	for _, typ := range types {
		if a := (Attribute{Type: Type(typ)}); a.Type != TypeAny {
			if _, want := a.Read(value.OfMap(nil), false); want == "" && a.Type != TypeMap {
				t.Errorf("a %s may be a map", typ)
			}
		}
	}
}

// TestUnfitSays: a letter says that a string is empty, but not that a hidden one is.
func TestUnfitSays(t *testing.T) {
	open, hidden := &Field{Name: "a"}, &Field{Name: "a", Declared: &Attribute{Hidden: true}}
	for _, c := range []struct {
		field *Field
		v     value.Value
		want  string
	}{
		{open, value.OfString(""), "a is an empty string, not X"},
		{open, value.OfString("b"), `a is the string "b", not X`},
		{open, value.OfString(strings.Repeat("1", 41)), `a is the string "` + strings.Repeat("1", 40) + `…", not X`},
		{open, value.OfList(), "a is a list, not X"},
		{hidden, value.OfString(""), "a is the string (hidden), not X"},
		{hidden, value.OfString("b"), "a is the string (hidden), not X"},
	} {
		if got := (&Unfit{c.field, c.v, "X"}).String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestSummable holds the numbers that a sum takes against fractions: 10^9 of them fit a number.
func TestSummable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9]([09]{0,37}|[0-9]{0,37})`).Draw(t, "digits")
		lead := rapid.OneOf(rapid.IntRange(-40, 40), rapid.SampledFrom([]int{-130, -18, -17, -16, -1, 0, 10, 11, 12, 25, 26, 27, 87})).Draw(t, "lead")
		v := value.MustNumber(fmt.Sprintf("%s%s.%s0e%d", rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign"), digits[:1], digits[1:], lead))
		r, _ := new(big.Rat).SetString(v.Text())
		size := new(big.Rat).Abs(r)
		power := func(n int64) *big.Rat {
			return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil))
		}
		whole := r.IsInt() && size.Cmp(power(27)) < 0
		if got := checkSummable(v, true) == ""; got != whole {
			t.Fatalf("%s is a whole number to add up: %v", v.Text(), got)
		}
		other := size.Cmp(power(12)) < 0 && new(big.Rat).Mul(r, power(17)).IsInt()
		if got := checkSummable(v, false) == ""; got != other {
			t.Fatalf("%s is a number to add up: %v", v.Text(), got)
		}
		sum := new(big.Rat).Mul(r, power(9))
		if _, err := value.ParseNumber(sum.FloatString(20)); (whole || other) && err != nil {
			t.Fatalf("10^9 times %s: %v", v.Text(), err)
		}
	})
	for _, v := range []value.Value{value.OfInt(0), value.MustNumber("0.000"), value.OfString("1e100"), value.OfNull(), {}} {
		if a, b := checkSummable(v, true), checkSummable(v, false); a+b != "" {
			t.Errorf("%v: %s, %s", v, a, b)
		}
	}
}

// TestSummed: the bounds hold where a sum or a mean reads a number, and nowhere else, and whole numbers are whole
// wherever they are read.
func TestSummed(t *testing.T) {
	m := cartModel(t, "Line.a * Line.b")
	of := m.Tallies[0].Sources[0].Amount
	for _, f := range of.Fields {
		for n, fits := range map[string]bool{"999999999999.99999": true, "-1e12": false, "1e-18": false} {
			row := value.NewItem(value.Attr{Name: f.Name, Value: value.MustNumber(n)})
			if _, want := f.Read(row); (want == "") != fits {
				t.Errorf("%s = %s: wants %q", f.Name, n, want)
			}
			if _, want := m.Tallies[0].Sources[0].Entity.Field(f.Name).Read(row); want != "" {
				t.Errorf("%s = %s is read by what adds up nothing: wants %q", f.Name, n, want)
			}
		}
	}
	two := value.OfInt(999_999_999_999)
	if _, _, beyond := of.Of(value.NewItem(value.Attr{Name: "a", Value: two}, value.Attr{Name: "b", Value: two})); beyond == nil || !strings.Contains(beyond.Error(), `the number "999999999998000000000001", not a number below`) {
		t.Errorf("what is computed is %v", beyond)
	}
	for _, as := range []As{"", AsText} {
		a := Attribute{Type: TypeNumber, As: as, Whole: true}
		for n, fits := range map[string]bool{"7": true, "-999999999999999999999999999": true, "1e27": false, "0.5": false} {
			if _, want := a.Read(a.Store(value.MustNumber(n)), false); (want == "") != fits {
				t.Errorf("%s, as %q: wants %q", n, as, want)
			}
			if _, want := a.Read(value.OfString(n), true); (want == "") != fits {
				t.Errorf("%s in a key: wants %q", n, want)
			}
		}
	}
}

// TestWholeIsInTheDefinition: what reads a number is derived by another definition once that is whole, and what does not
// read it by the same.
func TestWholeIsInTheDefinition(t *testing.T) {
	const text = `model: carts
tables: {carts: {key: [PK, SK]}}
entities:
  Cart: {where: {t: Cart}, key: {PK: "CART#{id}", SK: CART}, attributes: {name: string}}
  Line: {where: {t: Line}, key: {PK: "CART#{id}", SK: "LINE#{nr}"}, attributes: {a: {type: number, whole: false}, b: number}}
derive:
  Cart.a: {sum: Line.a}
  Cart.mean: {mean: Line.a, round: 1}
  Cart.least: {min: Line.a}
  Cart.many: {count: Line, where: {a: {above: 5}}}
  Cart.b: {sum: Line.b}
  Cart.lines: {count: Line}
`
	was, is := hashesOf(mustParse(t, "m", text)), hashesOf(mustParse(t, "m", strings.Replace(text, "whole: false", "whole: true", 1)))
	for name, changed := range map[string]bool{"Cart.a": true, "Cart.mean": true, "Cart.least": true, "Cart.many": true, "Cart.b": false, "Cart.lines": false} {
		if (was[name] != is[name]) != changed {
			t.Errorf("%s has another definition: %v", name, !changed)
		}
	}
}

// TestEpochTimes: numbers since 1970 keep all of their digits.
func TestEpochTimes(t *testing.T) {
	for _, c := range []struct {
		as    As
		n, is string
	}{
		{AsSeconds, "0", "1970-01-01T00:00:00Z"}, {AsSeconds, "1700000000.25", "2023-11-14T22:13:20.25Z"}, {AsSeconds, "-0.5", "1969-12-31T23:59:59.5Z"},
		{AsMilliseconds, "1700000000001", "2023-11-14T22:13:20.001Z"}, {AsMilliseconds, "-1", "1969-12-31T23:59:59.999Z"}, {AsMilliseconds, "0.000001", "1970-01-01T00:00:00.000000001Z"},
		{AsSeconds, "1e100", ""}, {AsSeconds, "-1e20", ""}, {AsMilliseconds, "1700000000000000", ""},
	} {
		text, ok := c.as.text(value.MustNumber(c.n))
		if text != c.is || ok != (c.is != "") {
			t.Errorf("%s %s is %q, %v", c.n, c.as, text, ok)
		}
		if ok {
			if _, is := value.Instant(value.OfString(text)); !is {
				t.Errorf("%s is no time", text)
			}
		}
	}
}

// TestTypesDecideDefinitions: another type, form or zone of a field that a derivation reads is another definition of
// it, and of no other one.
func TestTypesDecideDefinitions(t *testing.T) {
	file := func(at, n, other string) map[string]string {
		return hashesOf(mustParse(t, "typed", fmt.Sprintf(`
model: typed
tables: {tab: {key: [PK, SK]}}
entities:
  A: {where: {k: a}, key: {PK: "A#{a}", SK: A}, attributes: {x: number}}
  B: {where: {k: b}, key: {PK: "A#{a}", SK: "B#{b}"}, attributes: {at: %s, n: %s, other: %s}}
derive:
  A.recent: {count: B, where: {at: {atLeast: 2026-01-01T00:00:00Z}}}
  A.sum: {sum: B.n}
  A.all: {count: B}
`, at, n, other)))
	}
	was := file("time", "number", "string")
	for _, c := range []struct {
		at, n, other string
		changes      []string
	}{
		{"{type: time, zone: Europe/Berlin}", "number", "string", []string{"A.recent"}},
		{"{type: time, as: seconds}", "number", "string", []string{"A.recent"}},
		{"{type: time, as: milliseconds}", "number", "string", []string{"A.recent"}},
		{"time", "{type: number, as: text}", "string", []string{"A.sum"}},
		{"time", "any", "string", []string{"A.sum"}},
		{"time", "{type: number, min: 1, max: 9}", "{type: string, enum: [a, b]}", nil},
		{"time!", "number", "list", nil},
	} {
		var changed []string
		for name, hash := range file(c.at, c.n, c.other) {
			if hash != was[name] {
				changed = append(changed, name)
			}
		}
		if !slices.Equal(changed, c.changes) {
			t.Errorf("%s, %s, %s changes %v, not %v", c.at, c.n, c.other, changed, c.changes)
		}
	}
}

// TestLocalTimes is in package model because zones are compiled here.
func TestLocalTimes(t *testing.T) {
	for _, c := range []struct{ zone, text, is string }{
		{"Europe/Berlin", "2026-01-31 12:00", "2026-01-31T11:00:00Z"},
		{"Europe/Berlin", "2026-07-31T12:00:00,5", "2026-07-31T10:00:00.5Z"},
		{"Europe/Berlin", "2026-07-31", "2026-07-30T22:00:00Z"},
		{"Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"}, // twice: the first
		{"Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z"},
		{"Europe/Berlin", "2026-03-29T02:30:00", "2026-03-29T01:30:00Z"}, // never: an hour later
		{"Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z"},
		{"America/New_York", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z"},
		{"Europe/Berlin", "2026-01-31T12:00:00+00:00", "2026-01-31T12:00:00+00:00"},
		{"Europe/Berlin", "2026-01-31T12:00:00 +0530", "2026-01-31T06:30:00Z"},
		{"Europe/Berlin", "0000-01-01T00:00:00", ""},
		{"Asia/Tokyo", "noon", ""},
	} {
		zone, err := zoneOf(c.zone)
		failtest.On(t, err)
		if is, ok := value.ReadTime(c.text, zone); is != c.is && ok || ok != (c.is != "") {
			t.Errorf("%s in %s is %q, %v", c.text, c.zone, is, ok)
		}
	}
	var none *time.Location
	for text, is := range map[string]string{
		"2024-01-03T00:00:00.000000+0000": "2024-01-03T00:00:00.000000Z", "2024-01-03T00:00:00+00": "2024-01-03T00:00:00Z", "2024-01-03 00:00:00Z": "2024-01-03T00:00:00Z",
		"2024-01-03t00:00:00z": "2024-01-03T00:00:00Z", "2024-01-03T01:00-0200": "2024-01-03T03:00:00Z", "2024-01-03 10:00:00 UTC": "2024-01-03T10:00:00Z",
		"2024-01-03T00:00:00.123456789Z": "2024-01-03T00:00:00.123456789Z", "2024-01-03": "2024-01-03", "2024-01-03T00:00:00": "", "2024-01-03 00:00": "",
		"2024-01-03T24:00:00Z": "", "2024-01-03T1:00:00Z": "", "2024-13-03": "", "2024-01-03T": "", "2024-01-03T00:00:00.Z": "", "2024-01-03T00:00:00+25": "", "": "", "1704240000": "",
	} {
		if got, ok := value.ReadTime(text, none); ok != (is != "") || ok && got != is {
			t.Errorf("%q is %q, %v", text, got, ok)
		}
	}
}

// TestCommasInSearch: a search index has the elements of a text that lists values with commas, which is part of its definition, and a
// list has no order.
func TestCommasInSearch(t *testing.T) {
	text := func(typ, search string) string {
		return `model: m
tables: {rows: {key: [PK, SK]}}
entities:
  A: {where: {k: A}, key: {PK: "A#{id}", SK: A}, attributes: {text: string, tags: ` + typ + `}}
search:
  all: {of: A, text: [text], ` + search + `}
`
	}
	hash := func(typ string) string {
		return mustParse(t, typ, text(typ, "filters: [tags]")).Derivations()[0].Hash
	}
	if hash("commas") == hash("string") {
		t.Error("a text and a list of texts have one definition")
	}
	if _, err := Parse("m.yaml", []byte(text("commas", "sorts: [tags]"))); err == nil || !strings.Contains(err.Error(), `tags is a commas, and "sorts" of a search takes only`) {
		t.Error(err)
	}
}
