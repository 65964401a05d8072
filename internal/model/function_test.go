package model

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/internal/seq"
	"weir/internal/value"
)

// TestFunction: what a function gets, what it adds, and what is wrong with that.
func TestFunction(t *testing.T) {
	text := `
model: shop
tables: {shop: {key: [PK, SK]}}
entities:
  User: {where: {type: user}, key: {PK: "USER#{user}", SK: "IN#{city}"}, attributes: {name: string}}
  Order: {where: {type: order}, key: {PK: "USER#{user}", SK: "ORDER#{order}"}, attributes: {total: number, secret: {type: string, hidden: true}}}
derive:
  User.points: {sum: Order.points(v1), where: {type: order}}
`
	without := mustParse(t, "shop", text)
	if err := without.Functions(); !errors.Is(err, ErrFunction) || !strings.Contains(err.Error(), "User.points of model shop needs points(v1), and the program has no such function") {
		t.Error(err)
	}
	var got value.Item
	var adds []FunctionAdd
	Register(Function{Name: "points", Version: 1}, func(row value.Item) ([]FunctionAdd, error) {
		if got = row; row.Get("total").Sign() < 0 {
			panic("below zero")
		}
		return adds, nil
	})
	defer delete(functions, "points")
	m := mustParse(t, "shop", text)
	if err := m.Functions(); err != nil {
		t.Error(err)
	}
	s := m.Entity("Order").Sources[0]
	row := func(total string) value.Item {
		text := func(name, is string) value.Attr { return value.Attr{Name: name, Value: value.OfString(is)} }
		return value.NewItem(text("PK", "USER#u1"), text("SK", "ORDER#o1"), text("type", "order"), text("secret", "x"), text("more", "y"), value.Attr{Name: "total", Value: value.MustNumber(total)})
	}
	to := func(city string) map[string]string { return map[string]string{"city": city} }
	for _, c := range []struct {
		total string
		adds  []FunctionAdd
		want  string
	}{
		{"1", []FunctionAdd{{to("Rome"), value.OfInt(3)}, {to("a#b"), value.MustNumber("0.5")}}, ""},
		{"1", nil, ""},
		{"-1", nil, "points(v1): it panics: below zero"},
		{"1", []FunctionAdd{{to("Rome"), value.MustNumber("1E+12")}}, "points(v1): it adds the number"},
		{"1", []FunctionAdd{{nil, value.OfInt(1)}}, "points(v1): it adds to no key of User, which has user, city"},
		{"1", []FunctionAdd{{map[string]string{"city": "Rome", "town": "x"}, value.OfInt(1)}}, "points(v1): it adds to no key of User"},
		{"1", slices.Repeat([]FunctionAdd{{to("Rome"), value.OfInt(1)}}, 101), "points(v1): it adds to 101 targets, at most 100 are possible"},
	} {
		adds = c.adds
		all, is, err := s.Additions(row(c.total))
		if !is || (err == nil) != (c.want == "") || err != nil && (!strings.HasPrefix(err.Error(), c.want) || all != nil) || err == nil && len(all) != len(c.adds) {
			t.Errorf("%v: %v %v", c.adds, all, err)
		}
		if err == nil && len(all) > 0 && (all[0].Key.Partition.Text() != "USER#u1" || all[0].Key.Sort.Text() != "IN#Rome" || all[1].Key.Sort.Text() == "IN#a#b") {
			t.Error(all)
		}
	}
	if names := seq.Map(got, func(a value.Attr) string { return a.Name }); !slices.Equal(names, []string{"order", "total", "user"}) {
		t.Errorf("the function gets %s", names)
	}

	was := hashesOf(m)
	if !maps.Equal(was, hashesOf(without)) {
		t.Error("a definition depends on the code")
	}
	for _, c := range []struct {
		old, new string
		changes  bool
	}{
		{"points(v1)", "points(v2)", true}, {"points(v1)", "stars(v1)", true}, {"{total: number", "{total: number, tip: number", true},
		{"{total: number", "{total: string", true}, {"{name: string}", "{name: string, age: number}", false},
		{"secret: {", "secret2: {type: string, hidden: true}, secret: {", false},
	} {
		is := hashesOf(mustParse(t, "shop", strings.Replace(text, c.old, c.new, 1)))
		if maps.Equal(was, is) == c.changes {
			t.Errorf("%s: %v", c.new, !c.changes)
		}
	}
}
