package value

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestJSON(t *testing.T) {
	set := func(k Kind, vs ...Value) Value {
		v, ok := OfElements(k, OfList(vs...).Elements())
		if !ok {
			t.Fatalf("%v is no %v", vs, k)
		}
		return v
	}
	for _, c := range []struct {
		v            Value
		typed, plain string
	}{
		{OfString("a\"\\\n\x01é旅\xff/"), `{"S":"a\"\\\n\u0001é旅�/"}`, `"a\"\\\n\u0001é旅�/"`},
		{OfInt(-5), `{"N":"-5"}`, `-5`},
		{MustNumber("12345678901234567890123456789012345678"), `{"N":"12345678901234567890123456789012345678"}`, `12345678901234567890123456789012345678`},
		{OfBinary("\x00\xff"), `{"B":"AP8="}`, `"AP8="`},
		{OfBool(true), `{"BOOL":true}`, `true`},
		{OfBool(false), `{"BOOL":false}`, `false`},
		{OfNull(), `{"NULL":true}`, `null`},
		{OfList(OfInt(1), OfString("x"), OfList()), `{"L":[{"N":"1"},{"S":"x"},{"L":[]}]}`, `[1,"x",[]]`},
		{OfMap(NewItem(Attr{"b", OfInt(1)}, Attr{"a", OfMap(Item{})})), `{"M":{"a":{"M":{}},"b":{"N":"1"}}}`, `{"a":{},"b":1}`},
		{set(StringSet, OfString("b"), OfString("a")), `{"SS":["a","b"]}`, `["a","b"]`},
		{set(NumberSet, OfInt(10), OfInt(9), OfInt(-1)), `{"NS":["-1","9","10"]}`, `[-1,9,10]`},
		{set(BinarySet, OfBinary("b"), OfBinary("a")), `{"BS":["YQ==","Yg=="]}`, `["YQ==","Yg=="]`},
	} {
		if diff := cmp.Diff(c.typed, string(AppendTyped(nil, c.v))); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(c.plain, string(AppendPlain(nil, c.v))); diff != "" {
			t.Error(diff)
		}
	}
	for _, c := range []struct {
		it   Item
		want string
	}{{nil, "null"}, {Item{}, "{}"}} {
		if b, err := json.Marshal(c.it); err != nil || string(b) != c.want {
			t.Errorf("%s, %v; want %s", b, err, c.want)
		}
	}
}

// Whatever is in an item, what is printed is JSON with the same strings in it.
func TestJSONValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := anyItem(3).Draw(t, "item")
		for _, b := range [][]byte{AppendPlainItem(nil, it), AppendTypedItem(nil, it)} {
			if !json.Valid(b) || !utf8.Valid(b) {
				t.Fatalf("not JSON: %s", b)
			}
		}
		s := rapid.String().Draw(t, "string") + string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		var got string
		if err := json.Unmarshal(AppendPlain(nil, OfString(s)), &got); err != nil || got != string([]rune(s)) {
			t.Fatalf("%q came back as %q, %v", s, got, err)
		}
	})
}
