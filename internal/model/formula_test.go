package model

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/failtest"
	"weir/internal/seq"
	"weir/internal/value"
)

const formulaModel = `
model: shop
tables: {shop: {key: [PK, SK], indexes: {GSI1: [GSI1PK, GSI1SK]}}}
entities:
  Order:
    where: {t: Order}
    key: {PK: "o#{id}#{d}", SK: "nr#{nr}", GSI1PK: "c#{customer}", GSI1SK: "at#{placed}#{n}"}
    attributes:
      nr: number
      d: {type: time, zone: Europe/Berlin}
      m: map
      l: list
      s: strings
      x: any
      q: number
      p: {type: number, as: text}
      w: {type: number, whole: true}
      a: {type: time, zone: Europe/Berlin}
      b: {type: time, as: milliseconds}
      a.b: map
      v: {%s}
`

// formulaRow is a row of the model, as JSON has it.
func formulaRow(t testing.TB, text string) value.Item {
	t.Helper()
	var plain any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	failtest.On(t, d.Decode(&plain))
	return plainValue(plain).Item()
}

// plainValue is a value that JSON has.
func plainValue(v any) value.Value {
	switch x := v.(type) {
	case bool:
		return value.OfBool(x)
	case string:
		return value.OfString(x)
	case json.Number:
		return value.MustNumber(x.String())
	case []any:
		return value.OfList(seq.Map(x, plainValue)...)
	case map[string]any:
		var attrs []value.Attr
		for name, v := range x {
			attrs = append(attrs, value.Attr{Name: name, Value: plainValue(v)})
		}
		return value.OfMap(value.NewItem(attrs...))
	}
	return value.OfNull()
}

// TestFormulas: what each form of a computed attribute gives, and which part of a row it cannot use.
func TestFormulas(t *testing.T) {
	for _, c := range []struct{ is, row, want string }{
		{`type: string, is: m.city`, `{"m":{"city":"Bonn"}}`, `"Bonn"`},
		{`type: string, is: m.city`, `{"m":{"town":"Bonn"}}`, ``},
		{`type: string, is: m.city`, `{"m":{"city":null}}`, ``},
		{`type: string, is: m.city`, `{"m":null}`, ``},
		{`type: string, is: m.city`, `{}`, ``},
		{`type: string, is: m.city`, `{"m":"Bonn"}`, `m is the string "Bonn", not a map`},
		{`type: string, is: m.city`, `{"m":{"city":7}}`, `v is the number "7", not a string`},
		{`type: string, is: m.to.city`, `{"m":{"to":["x"]}}`, `m.to is a list, not a map`},
		{`type: string, is: m.to.city, hidden: true`, `{"m":{"to":"Bonn"}}`, `m.to is the string (hidden), not a map`},
		{`type: string, is: a.b.c`, `{"a":"2026-01-01","a.b":{"c":"x"}}`, `"x"`},
		{`type: any, is: x.y`, `{"x":{"y":[1]}}`, `[1]`},
		{`type: string, is: "l[1]"`, `{"l":["x","y"]}`, `"y"`},
		{`type: string, is: "l[2]"`, `{"l":["x","y"]}`, ``},
		{`type: string, is: "l[0]"`, `{"l":{"0":"x"}}`, `l is a map, not a list`},
		{`type: string, is: "x[0]"`, `{"x":"y"}`, `x is the string "y", not a list`},
		{`type: string, is: "x[0].y[1]"`, `{"x":[{"y":["a","b"]}]}`, `"b"`},
		{`type: number, is: size(l)`, `{"l":["x","y"]}`, `2`},
		{`type: number, is: size(l)`, `{"l":[]}`, `0`},
		{`type: number, is: size(l)`, `{}`, ``},
		{`type: number, is: size(m.l)`, `{"m":{"l":"xy"}}`, `m.l is the string "xy", not a list or a set`},
		{`type: number, is: "sum(l[].n)"`, `{"l":[{"n":1.5},{"n":2},{},{"n":null}]}`, `3.5`},
		{`type: number, is: "sum(l[])"`, `{"l":[1,2]}`, `3`},
		{`type: number, is: "sum(l[])"`, `{"l":[]}`, `0`},
		{`type: number, is: "sum(l[].n)"`, `{}`, ``},
		{`type: number, is: "sum(x.l[].n)"`, `{"x":{"l":{"n":1}}}`, `x.l is a map, not a list`},
		{`type: number, is: "sum(x.l[].n)"`, `{"x":{"l":[{"n":1},{"n":"2"}]}}`, `x.l[1].n is the string "2", not ` + wantSummed},
		{`type: number, is: "sum(x.l[].n)"`, `{"x":{"l":[{"n":1},3]}}`, `x.l[1] is the number "3", not a map`},
		{`type: number, is: "sum(l[])"`, `{"l":[999999999999,1]}`, `v is the number "1000000000000", not ` + wantSummed},
		{`type: number, is: "sum(l[])", whole: true`, `{"l":[999999999999,1]}`, `1000000000000`},
		{`type: number, is: "sum(l[])", whole: true`, `{"l":[0.5]}`, `l[0] is the number "0.5", not ` + wantWhole},
		{`type: number, is: q * p - 1`, `{"q":2,"p":"1.50"}`, `2`},
		{`type: number, is: q * p - 1`, `{"q":2}`, ``},
		{`type: number, is: q * p - 1`, `{"q":2,"p":true}`, `p is the boolean "true", not a number as text`},
		{`type: number, is: q * p - 1`, `{"p":"x"}`, `p is the string "x", not a number as text`},
		{`type: number, is: q * q`, `{"q":999999999}`, `v is the number "999999998000000001", not ` + wantSummed},
		{`type: number, is: q * q, hidden: true`, `{"q":999999999}`, `v is the number (hidden), not ` + wantSummed},
		{`type: number, is: q * q * q * q * q * q * q * q`, `{"q":99999999999.99999}`, `v is a number with too many digits, not ` + wantSummed},
		{`type: number, is: w * w, whole: true`, `{"w":999999999}`, `999999998000000001`},
		{`type: number, is: q - m.n`, `{"q":2,"m":{"n":3}}`, `-1`},
		{`type: number, is: q - m.n`, `{"q":2,"m":{"n":"3"}}`, `m.n is the string "3", not a number`},
		{`type: number, is: q + size(l)`, `{"q":2,"l":[1,1]}`, `4`},
		{`type: number, is: nr + q`, `{"SK":"nr#7","q":1}`, `8`},
		{`type: number, is: b - a, in: hours`, `{"a":"2026-01-01 00:00:00","b":1767225600000}`, `1`},
		{`type: number, is: b - d, in: hours`, `{"PK":"o#1#2026-01-01 00:00:00","b":1767225600000}`, `1`},
		{`type: number, is: b - d, in: hours`, `{"PK":"o#1#soon","b":1767225600000}`, `d is the string "soon", not a time like 2026-01-31T12:00:00, or a date`},
		{`type: number, is: b - a, in: minutes`, `{"a":"2026-01-01T00:00:00.5Z","b":1767225720400}`, `1`},
		{`type: number, is: b - a, in: minutes`, `{"a":"2026-01-01T00:02:00.4Z","b":1767225600500}`, `-1`},
		{`type: number, is: b - a, in: seconds`, `{"a":"0001-01-01T00:00:00Z","b":253402300799000}`, `315537897599`},
		{`type: number, is: b - a, in: days`, `{"a":"2026-01-01T00:00:00Z"}`, ``},
		{`type: number, is: b - a, in: days`, `{"a":"2026-01-01T00:00:00Z","b":"2026"}`, `b is the string "2026", not a number of milliseconds since 1970`},
		{`type: number, is: b - x.at, in: days`, `{"x":{"at":"2026-01-01T00:00:00Z"},"b":1767398399000}`, `1`},
		{`type: number, is: b - x.at, in: days`, `{"x":{"at":"soon"},"b":1767398399000}`, `x.at is the string "soon", not a time with a zone like 2026-01-31T12:00:00Z, or a date`},
		{`type: string, is: customer`, `{"GSI1PK":"c#7"}`, `"7"`},
		{`type: string, is: customer`, `{}`, ``},
		{`type: string, is: customer`, `{"GSI1PK":"x"}`, `customer is the string "x", not a GSI1PK like c#{customer}`},
		{`type: time, is: placed`, `{"GSI1SK":"at#2026-01-01#1"}`, `"2026-01-01"`},
		{`type: time, is: placed`, `{"GSI1SK":"at#soon#1"}`, `v is the string "soon", not a time with a zone like 2026-01-31T12:00:00Z, or a date`},
		{`type: time, as: seconds, is: n`, `{"GSI1SK":"at#x#60"}`, `"1970-01-01T00:01:00Z"`},
		{`type: number, is: n`, `{"GSI1SK":"at#x#7.50"}`, `7.5`},
		{`type: number, is: n`, `{"GSI1SK":"at#x#y"}`, `v is the string "y", not a number`},
	} {
		m := mustParse(t, "m.yaml", fmt.Sprintf(formulaModel, c.is))
		f, row := m.Entity("Order").Field("v"), formulaRow(t, c.row)
		in := Input{Derivation: "x", Fields: []*Field{f}}
		got := ""
		if ok, unfit := in.Take(row); unfit != nil {
			got = unfit.String()
		} else if v := f.Get(row); !ok {
			got = "it does not count"
		} else if !v.IsMissing() {
			got = string(value.AppendPlain(nil, v))
		}
		if got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.is, c.row, got, c.want)
		}
		if v := f.Get(row); strings.Contains(c.want, ", not ") && f.Formula == nil || row.Has("v") || strings.Contains(c.want, " is ") && !v.IsMissing() && !strings.HasPrefix(c.want, "v is") {
			t.Errorf("%s of %s: Get gives %v", c.is, c.row, v)
		}
	}
}

// TestRandomFormulas: numbers and times as big.Rat and whole seconds have them.
func TestRandomFormulas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row, names := value.Item{}, []string{"q", "w", "m.n", "size(l)", "sum(l[].n)"}
		of := map[string]*big.Rat{}
		number := func(name string) value.Value {
			n := rapid.Int64Range(-999, 999).Draw(t, name)
			of[name] = big.NewRat(n, 1)
			return value.OfInt(n)
		}
		var all []value.Value
		sum := new(big.Rat)
		for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
			all = append(all, value.OfMap(value.NewItem(value.Attr{Name: "n", Value: number(fmt.Sprint("l", i))})))
			sum.Add(sum, of[fmt.Sprint("l", i)])
		}
		of["sum(l[].n)"], of["size(l)"] = sum, big.NewRat(int64(len(all)), 1)
		row = row.With(value.Attr{Name: "q", Value: number("q")}, value.Attr{Name: "w", Value: number("w")}, value.Attr{Name: "l", Value: value.OfList(all...)},
			value.Attr{Name: "m", Value: value.OfMap(value.NewItem(value.Attr{Name: "n", Value: number("m.n")}))})
		is, want := "", new(big.Rat)
		for i := range rapid.IntRange(2, 3).Draw(t, "terms") {
			x, y := rapid.SampledFrom(names).Draw(t, "x"), rapid.SampledFrom(names).Draw(t, "y")
			product := new(big.Rat).Mul(of[x], of[y])
			switch minus := rapid.Bool().Draw(t, "minus"); {
			case i == 0:
				is, want = x+" * "+y, product
			case minus:
				is, want = is+" - "+x+" * "+y, want.Sub(want, product)
			default:
				is, want = is+" + "+x+" * "+y, want.Add(want, product)
			}
		}
		from, seconds := rapid.Int64Range(0, 4e9).Draw(t, "from"), rapid.Int64Range(-4e9, 4e9).Draw(t, "seconds")
		unit := rapid.SampledFrom([]string{"seconds", "minutes", "hours", "days"}).Draw(t, "unit")
		row = row.With(value.Attr{Name: "a", Value: value.OfString(time.Unix(from, 0).UTC().Format(time.RFC3339))}, value.Attr{Name: "b", Value: value.OfInt((from + seconds) * 1000)})
		units := seconds / map[string]int64{"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}[unit]
		for _, c := range []struct{ is, want string }{
			{fmt.Sprintf("type: number, is: %q", is), want.RatString()},
			{"type: number, is: b - a, in: " + unit, fmt.Sprint(units)},
		} {
			m, err := Parse("m.yaml", []byte(fmt.Sprintf(formulaModel, c.is)))
			if err != nil {
				t.Fatal(err)
			}
			if v, unlike := m.Entity("Order").Field("v").Read(row); v.Text() != c.want || unlike != "" {
				t.Fatalf("%s is %v, not %s; %s", c.is, v, c.want, unlike)
			}
		}
	})
}
