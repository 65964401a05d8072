package value

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it, rest := anyItem(3).Draw(t, "item"), rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "rest")
		stored := AppendItem(nil, it)
		got, after, err := DecodeItem(append(bytes.Clone(stored), rest...))
		if err != nil || !EqualItems(got, it) || !bytes.Equal(after, rest) {
			t.Fatalf("%s came back as %s, %v; after it %q", typed(it), typed(got), err, after)
		}
		other := anyItem(1).Draw(t, "other")
		if bytes.Equal(AppendItem(nil, other), stored) != EqualItems(other, it) {
			t.Fatalf("stored forms of %s and %s", typed(it), typed(other))
		}
		clone := got.Clone()
		if !EqualItems(clone, it) || clone.Size() != it.Size() {
			t.Fatalf("the clone of %s is %s", typed(it), typed(clone))
		}
	})
}

func typed(it Item) string { return string(AppendTypedItem(nil, it)) }

// Of an item that is torn off anywhere nothing is returned.
func TestCodecTorn(t *testing.T) {
	it := NewItem(Attr{"a", OfString("text")}, Attr{"b", OfList(OfInt(1), OfMap(NewItem(Attr{"c", OfBool(true)})))},
		Attr{"d", OfStrings([]string{"x", "y"})}, Attr{"e", OfNull()})
	stored := AppendItem(nil, it)
	for n := range stored {
		if got, _, err := DecodeItem(stored[:n]); !errors.Is(err, ErrCorrupt) || got != nil {
			t.Errorf("%d of %d bytes: %s, %v", n, len(stored), typed(got), err)
		}
	}
	if it, rest, err := DecodeItem([]byte{0}); err != nil || it == nil || len(it) != 0 || len(rest) != 0 {
		t.Errorf("an empty item: %v, %q, %v", it, rest, err)
	}
}

func TestCodecDeep(t *testing.T) {
	v := OfInt(1)
	for range MaxDepth {
		v = OfList(v)
	}
	it := NewItem(Attr{"deep", v})
	if got, _, err := DecodeItem(AppendItem(nil, it)); err != nil || !EqualItems(got, it) {
		t.Errorf("%d levels: %v", MaxDepth, err)
	}
	for range 1000 {
		v = OfMap(NewItem(Attr{"m", v}))
	}
	if _, _, err := DecodeItem(AppendItem(nil, NewItem(Attr{"deep", v}))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%d levels: %v", MaxDepth+1000, err)
	}
}

// FuzzDecodeItem decodes any bytes: without a panic, and into an item that is
// stored as it was.
func FuzzDecodeItem(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add(AppendItem(nil, NewItem(Attr{"a", OfString("text")}, Attr{"b", OfList(OfInt(1), OfMap(Item{}))}, Attr{"d", OfStrings([]string{"x", "y"})})))
	f.Add(AppendItem(nil, NewItem(Attr{"n", MustNumber("-1.5")}, Attr{"t", OfBool(true)}, Attr{"z", OfNull()}, Attr{"b", OfBinary("\x00\xff")})))
	f.Fuzz(func(t *testing.T, b []byte) {
		it, rest, err := DecodeItem(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) || it != nil || rest != nil {
				t.Fatalf("%v, %v, %v", it, rest, err)
			}
			return
		}
		stored := AppendItem(nil, it)
		again, _, err := DecodeItem(stored)
		if err != nil || !EqualItems(it, again) {
			t.Fatalf("%q is decoded, and not after it was stored again: %v", b, err)
		}
		AppendPlainItem(nil, it)
		AppendTypedItem(nil, it)
	})
}
