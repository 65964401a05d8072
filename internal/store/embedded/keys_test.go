package embedded

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/store"
	"weir/internal/value"
)

// genText draws strings that are often close to each other and full of the bytes
// that the key form treats specially.
var genText = rapid.OneOf(
	rapid.String(),
	rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 2, 'a', 'b', 0x7f, 0xff, 0x100, 0xffff, 0x10ffff}), 0, 6, -1),
	rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0xfe, 0xff}), 0, 5), func(b []byte) string { return string(b) }),
)

// genNumber draws numbers over DynamoDB's whole range, many with few digits.
var genNumber = rapid.Custom(func(t *rapid.T) value.Value {
	digits := rapid.StringMatching(`[0-9]{1,38}`).Draw(t, "digits")
	if rapid.Bool().Draw(t, "short") {
		digits = digits[:1]
	}
	exp := rapid.IntRange(-130, 125-len(digits)).Draw(t, "exponent")
	v, err := value.ParseNumber(rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + digits + "E" + value.OfInt(int64(exp)).Text())
	if err != nil {
		t.Skip(err)
	}
	return v
})

func genKeyValue(kind store.KeyType) *rapid.Generator[value.Value] {
	switch kind {
	case value.Number:
		return genNumber
	case value.Binary:
		return rapid.Map(genText, value.OfBinary)
	}
	return rapid.Map(genText, value.OfString)
}

var genKind = rapid.SampledFrom([]store.KeyType{value.String, value.Number, value.Binary})

// TestKeyForm: forms sort like values, no form is the beginning of another, and a value
// can be read back from its form, whatever follows it.
func TestKeyForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := genKind.Draw(t, "kind")
		a, b := genKeyValue(kind).Draw(t, "a"), genKeyValue(kind).Draw(t, "b")
		x, y := appendKeyValue(nil, a), appendKeyValue(nil, b)
		if got, want := sign(bytes.Compare(x, y)), sign(value.Compare(a, b)); got != want {
			t.Fatalf("%q and %q compare %d, their forms %x and %x %d", a.Text(), b.Text(), want, x, y, got)
		}
		if !value.Equal(a, b) && bytes.HasPrefix(x, y) {
			t.Fatalf("%x begins %x", y, x)
		}
		tail := rapid.SliceOf(rapid.Byte()).Draw(t, "tail")
		back, rest, err := takeKeyValue(append(x, tail...), kind)
		if err != nil || !value.Equal(back, a) || !bytes.Equal(rest, tail) {
			t.Fatalf("%q comes back as %q, %x, %v", a.Text(), back.Text(), rest, err)
		}
	})
}

func sign(n int) int { return min(max(n, -1), 1) }

// TestKeyFormNumbers: the extreme numbers, in order.
func TestKeyFormNumbers(t *testing.T) {
	nines := strings.Repeat("9", 38)
	var last []byte
	for _, s := range []string{
		"-" + nines + "E88", "-1E125", "-100", "-99.9", "-11", "-10.1", "-10", "-1.000000000001", "-1", "-0.11", "-0.1", "-1E-129", "-1.1E-130", "-1E-130", "0",
		"1E-130", "1.1E-130", "1E-129", "0.1", "0.11", "1", "1.000000000001", "10", "10.1", "11", "99.9", "100", "1E125", nines + "E88",
	} {
		form := appendKeyValue(nil, value.MustNumber(s))
		if bytes.Compare(last, form) >= 0 {
			t.Errorf("%s: form %x is not above %x", s, form, last)
		}
		last = form
	}
}

// TestPrefixForm: the keys that begin with a prefix are those whose forms begin
// with the prefix's.
func TestPrefixForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, s := genText.Draw(t, "prefix"), genText.Draw(t, "string")
		if rapid.Bool().Draw(t, "extend") {
			s = p + s
		}
		low := appendEscaped(nil, p)
		form := appendKeyValue(nil, value.OfString(s))
		if got := bytes.HasPrefix(form, low); got != strings.HasPrefix(s, p) {
			t.Fatalf("%q in %q: %v", p, s, got)
		}
		high := keyAfter(bytes.Clone(low))
		in := bytes.Compare(form, low) >= 0 && (high == nil || bytes.Compare(form, high) < 0)
		if in != strings.HasPrefix(s, p) {
			t.Fatalf("%q among those that begin with %q: %v", s, p, in)
		}
	})
}

// TestCompositeForm: two parts sort by the first, then the second.
func TestCompositeForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := [2]store.KeyType{genKind.Draw(t, "partition"), genKind.Draw(t, "sort")}
		draw := func(label string) store.Key {
			return store.Key{Partition: genKeyValue(kinds[0]).Draw(t, label), Sort: genKeyValue(kinds[1]).Draw(t, label)}
		}
		a, b := draw("a"), draw("b")
		if rapid.Bool().Draw(t, "same partition") {
			b.Partition = a.Partition
		}
		want := value.Compare(a.Partition, b.Partition)
		if want == 0 {
			want = value.Compare(a.Sort, b.Sort)
		}
		if got := bytes.Compare(appendKey(nil, a), appendKey(nil, b)); sign(got) != sign(want) {
			t.Fatalf("%v and %v compare %d, their forms %d", a, b, want, got)
		}
	})
}

// FuzzKeyForm: bytes that are not a form are refused without a panic, and other bytes
// are the form of the value that they give.
func FuzzKeyForm(f *testing.F) {
	for _, v := range []value.Value{value.OfString("a\x00b"), value.OfBinary("\xff"), value.MustNumber("-12.5"), value.OfInt(0)} {
		f.Add(byte(v.Kind()), appendKeyValue(nil, v))
	}
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		v, rest, err := takeKeyValue(b, store.KeyType(kind))
		if err != nil {
			return
		}
		if back := appendKeyValue(nil, v); store.KeyType(kind) != value.Number && !bytes.Equal(append(back, rest...), b) {
			t.Fatalf("%x gives %q, whose form is %x", b, v.Text(), back)
		}
	})
}
