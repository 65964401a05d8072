package value

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNewItem(t *testing.T) {
	it := NewItem(Attr{"b", OfInt(1)}, Attr{"a", OfInt(2)}, Attr{"b", OfInt(3)}, Attr{"c", Value{}}, Attr{"d", OfNull()})
	if got := typed(it); got != `{"a":{"N":"2"},"b":{"N":"3"},"d":{"NULL":true}}` {
		t.Error(got)
	}
	if it := NewItem(); it == nil || len(it) != 0 {
		t.Errorf("an item without attributes is %v", it)
	}
	if it.Has("c") || !it.Has("d") || !it.Get("c").IsMissing() || it.Get("d").Kind() != Null {
		t.Error("NULL is an attribute, a missing value is none")
	}
	with := it.With(Attr{"a", Value{}}, Attr{"e", OfBool(true)})
	if got := typed(with); got != `{"b":{"N":"3"},"d":{"NULL":true},"e":{"BOOL":true}}` || !it.Has("a") {
		t.Error(got)
	}
	kept := it.Filter(func(name string) bool { return name != "b" })
	if got := typed(kept); got != `{"a":{"N":"2"},"d":{"NULL":true}}` || len(it) != 3 {
		t.Error(got)
	}
	if EqualItems(nil, Item{}) || !EqualItems(nil, nil) {
		t.Error("no row and an empty one are the same")
	}
}

// An item behaves as a map of its attributes.
func TestItemAsMap(t *testing.T) {
	names := rapid.StringMatching(`[a-d]{0,2}`)
	rapid.Check(t, func(t *rapid.T) {
		var it Item = Item{}
		model := map[string]string{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			name := names.Draw(t, "name")
			if rapid.Bool().Draw(t, "remove") {
				delete(model, name)
				it = it.With(Attr{Name: name})
			} else {
				v := rapid.StringN(0, 3, -1).Draw(t, "value")
				model[name] = v
				it = it.With(Attr{name, OfString(v)})
			}
		}
		if len(it) != len(model) || !slices.IsSortedFunc(it, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatalf("%s for %v", typed(it), model)
		}
		for _, a := range it {
			if v, ok := model[a.Name]; !ok || a.Value.Text() != v || it.Get(a.Name).Text() != v {
				t.Fatalf("%s for %v", typed(it), model)
			}
		}
	})
}

func TestOfElements(t *testing.T) {
	elems := func(vs ...Value) []Attr { return OfList(vs...).Elements() }
	for _, c := range []struct {
		kind  Kind
		elems []Attr
		want  string
	}{
		{StringSet, elems(OfString("b"), OfString("a"), OfString("B")), `{"SS":["B","a","b"]}`},
		{NumberSet, elems(OfInt(100), MustNumber("9.5"), OfInt(-3)), `{"NS":["-3","9.5","100"]}`},
		{StringSet, elems(OfString("a"), OfString("a")), ""},
		{NumberSet, elems(MustNumber("1"), MustNumber("1.0")), ""},
		{StringSet, elems(OfInt(1)), ""},
		{Map, elems(OfInt(1)), ""},
		{String, nil, ""},
		{List, elems(OfInt(2), OfInt(1), OfInt(2)), `{"L":[{"N":"2"},{"N":"1"},{"N":"2"}]}`},
	} {
		v, ok := OfElements(c.kind, slices.Clone(c.elems))
		if ok != (c.want != "") || ok && string(AppendTyped(nil, v)) != c.want {
			t.Errorf("%v of %v: %s, %v", c.kind, c.elems, AppendTyped(nil, v), ok)
		}
	}
}

// A set is the same in whatever order its elements come.
func TestSetOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfNDistinct(numberValues, 0, 12, Value.Text).Draw(t, "numbers")
		a, _ := OfElements(NumberSet, OfList(vs...).Elements())
		shuffled := rapid.Permutation(vs).Draw(t, "order")
		b, ok := OfElements(NumberSet, OfList(shuffled...).Elements())
		if !ok || !Equal(a, b) {
			t.Fatalf("%s and %s", AppendTyped(nil, a), AppendTyped(nil, b))
		}
		if len(vs) > 0 {
			again, ok := OfElements(NumberSet, OfList(append(shuffled, vs[0])...).Elements())
			if ok || again.Text() != vs[0].Text() {
				t.Fatalf("%s twice is taken, or %s is named", vs[0].Text(), again.Text())
			}
		}
	})
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b Value
		want int
	}{
		{OfString("a"), OfString("b"), -1}, {OfString("B"), OfString("a"), -1}, {OfString("a"), OfString("a\x00"), -1}, {OfString("é"), OfString("z"), 1},
		{OfInt(9), OfInt(10), -1}, {OfInt(-9), OfInt(-10), 1}, {OfInt(0), OfInt(-1), 1}, {MustNumber("0.01"), MustNumber("0.1"), -1},
		{OfBinary("\xff"), OfBinary("\x00\xff"), 1}, {OfInt(5), OfString("5"), -1},
	} {
		if got := sign(Compare(c.a, c.b)); got != c.want {
			t.Errorf("Compare(%s, %s) = %d", AppendTyped(nil, c.a), AppendTyped(nil, c.b), got)
		}
		if got := sign(Compare(c.b, c.a)); got != -c.want {
			t.Errorf("Compare(%s, %s) = %d", AppendTyped(nil, c.b), AppendTyped(nil, c.a), got)
		}
	}
}

// The sizes are those of "DynamoDB item sizes and formats".
func TestSize(t *testing.T) {
	for _, c := range []struct {
		it   Item
		want int
	}{
		{nil, 0},
		{NewItem(Attr{"pk", OfString("abc")}), 5},
		{NewItem(Attr{"é", OfString("旅")}), 5},
		{NewItem(Attr{"n", OfInt(0)}), 2},
		{NewItem(Attr{"n", OfInt(7)}), 3},
		{NewItem(Attr{"n", OfInt(1234)}), 4},
		{NewItem(Attr{"n", OfInt(-1234)}), 5},
		{NewItem(Attr{"n", OfInt(1000000)}), 3},
		{NewItem(Attr{"b", OfBinary("\x00\x01")}), 3},
		{NewItem(Attr{"t", OfBool(true)}, Attr{"z", OfNull()}), 4},
		{NewItem(Attr{"l", OfList()}), 4},
		{NewItem(Attr{"l", OfList(OfString("ab"))}), 7},
		{NewItem(Attr{"m", OfMap(NewItem(Attr{"k", OfString("ab")}))}), 8},
		{NewItem(Attr{"s", OfStrings([]string{"a", "bc"})}), 4},
	} {
		if got := c.it.Size(); got != c.want {
			t.Errorf("%s: %d; want %d", typed(c.it), got, c.want)
		}
	}
}

func TestAccessors(t *testing.T) {
	if v := OfBool(true); v.Text() != "" || !v.Bool() || v.Item() != nil || v.Len() != 0 {
		t.Error("a boolean has a text or elements")
	}
	if OfString("true").Bool() {
		t.Error("a string is true")
	}
	for k := Missing; k <= BinarySet; k++ {
		if (k.Descriptor() == "") != (k == Missing) || k.String() == "" {
			t.Errorf("kind %d: %q, %q", k, k.Descriptor(), k.String())
		}
	}
	if v := OfStrings([]string{"b", "a", "b"}); v.Len() != 2 || v.At(0).Text() != "a" || v.At(1).Text() != "b" {
		t.Error(string(AppendTyped(nil, v)))
	}
}

// TestNumberSize: the size of a number is that of its significant digits, as the parser finds
// them.
func TestNumberSize(t *testing.T) {
	for _, text := range []string{
		"0", "7", "-7", "10", "100", "-1200", "1.5", "-0.05", "0.001", "120.0304", "1e20", "-1e-100", "9.99e125", "12345678901234567890123456789012345678",
	} {
		v := MustNumber(text)
		d := mustDecimal(v.Text())
		want := 1 + (len(d.digits)+1)/2
		if d.neg {
			want++
		}
		if got := numberSize(v.Text()); got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
}
