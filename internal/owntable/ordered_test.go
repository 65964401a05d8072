package owntable_test

import (
	"cmp"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestOrdered: names have the order of the values, and of the keys where these are equal, in one
// direction and in the other. None begins with another, and all fit into a sort key.
func TestOrdered(t *testing.T) {
	numbers := []string{"0", "1", "-1", "2", "-2", "10", "-10", "12", "-12", "123", "-123", "0.1", "-0.1", "0.12", "-0.12", "1E-130", "-1E-130", "9.9E+125", "-9.9E+125",
		"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "99999999999999999999999999999999999998"}
	times := []string{"2026-01-31", "2026-01-31T00:00:00.0000000001Z", "2026-01-31T00:30:00+01:00", "2026-01-31T00:00:00.5Z", "2026-01-31T00:00:00.51Z",
		"2026-01-31T00:00:01Z", "0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-12-31T23:59:59.9Z"}
	texts := []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00a", "a\x01", "ab", "b", "é", "日", "\U0010FFFF", "2026-02-30", "12", strings.Repeat("x", 250)}
	var all []value.Value
	for _, s := range numbers {
		all = append(all, value.MustNumber(s))
	}
	for _, s := range append(texts, times...) {
		all = append(all, value.OfString(s))
	}
	keys := []store.Key{
		{Partition: value.OfString("a")}, {Partition: value.OfString("b")}, {Partition: value.OfString("a\x00")},
		{Partition: value.OfString("a"), Sort: value.OfString("b")}, {Partition: value.OfString("a"), Sort: value.OfString("bb")},
		{Partition: value.OfString("a"), Sort: value.MustNumber("-2")}, {Partition: value.OfString("a"), Sort: value.MustNumber("10")},
		{Partition: value.OfBinary("\xff\x00"), Sort: value.OfBinary("\xff")},
		{Partition: value.OfString(strings.Repeat("y", 2048)), Sort: value.OfString(strings.Repeat("y", 1024))},
		{Partition: value.OfString(strings.Repeat("y", 2048)), Sort: value.OfString(strings.Repeat("y", 1023) + "z")},
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.SampledFrom(all).Draw(t, "x"), rapid.SampledFrom(all).Draw(t, "y")
		k, l := rapid.IntRange(0, len(keys)-1).Draw(t, "k"), rapid.IntRange(0, len(keys)-1).Draw(t, "l")
		a, unfit := owntable.OrderedFact(x, keys[k], false)
		b, _ := owntable.OrderedFact(y, keys[l], false)
		if unfit != "" || len(a) > store.MaxSortBytes {
			t.Fatalf("%v does not fit: %s, %d bytes", x, unfit, len(a))
		}
		want := compareOrdered(x, y)
		same := want == 0
		if same && keys[k].Partition.Kind() == keys[l].Partition.Kind() && keys[k].Sort.Kind() == keys[l].Sort.Kind() && k < 8 && l < 8 {
			want = cmp.Or(strings.Compare(keys[k].Partition.Text(), keys[l].Partition.Text()), compareOrdered(keys[k].Sort, keys[l].Sort))
		}
		if got := strings.Compare(a, b); want != 0 && got != want || (a == b) != (same && k == l) {
			t.Fatalf("%v %d and %v %d: %d, want %d\n%s\n%s", x, k, y, l, got, want, a, b)
		}
		if a != b && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			t.Fatalf("%s begins with %s", a, b)
		}
		c, _ := owntable.OrderedFact(x, keys[k], true)
		d, _ := owntable.OrderedFact(y, keys[l], true)
		if strings.Compare(c, d) != -strings.Compare(a, b) {
			t.Fatalf("%v %d and %v %d are not turned around", x, k, y, l)
		}
	})
	for _, v := range []value.Value{{}, value.OfNull(), value.OfBool(true), value.OfBinary("x"), value.OfList(), value.OfString(strings.Repeat("x", 251)), value.OfString(strings.Repeat("\x00", 250))} {
		if name, unfit := owntable.OrderedFact(v, keys[0], false); unfit == "" {
			t.Errorf("%v has the name %s", v, name)
		}
	}
}

// compareOrdered orders values by the definition: numbers, texts, times.
func compareOrdered(a, b value.Value) int {
	class := func(v value.Value) (int, time.Time) {
		if v.Kind() == value.Number {
			return 0, time.Time{}
		}
		for _, layout := range []string{time.DateOnly, time.RFC3339} {
			if at, err := time.Parse(layout, v.Text()); err == nil {
				return 2, at
			}
		}
		return 1, time.Time{}
	}
	i, s := class(a)
	j, u := class(b)
	switch {
	case i != j:
		return cmp.Compare(i, j)
	case i == 0:
		x, _ := new(big.Rat).SetString(a.Text())
		y, _ := new(big.Rat).SetString(b.Text())
		return x.Cmp(y)
	case i == 2:
		if c := s.Compare(u); c != 0 || a.Text() == b.Text() {
			return c
		}
		if strings.HasSuffix(a.Text(), ".0000000001Z") || strings.HasSuffix(b.Text(), ".0000000001Z") { // more digits than time.Time has
			return cmp.Compare(len(a.Text()), len(b.Text()))
		}
		return 0
	}
	return strings.Compare(a.Text(), b.Text())
}
