package value

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rat(t rapid.TB, s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no decimal", s)
	}
	return r
}

func TestParseNumber(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, c := range []struct{ in, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.000", "0"}, {"-0.0", "0"}, {"0e50", "0"}, {"00", "0"}, {"007", "7"}, {"-007.50", "-7.5"}, {"+3", "3"},
		{"1.0", "1"}, {"100", "100"}, {"1e2", "100"}, {"1E+2", "100"}, {"1.5e1", "15"}, {"15e-1", "1.5"}, {"1e-3", "0.001"}, {".5", "0.5"}, {"5.", "5"},
		{nines, nines}, {"-" + nines, "-" + nines}, {"0." + nines, "0." + nines}, {nines + "000", nines + "000"}, {"0.00" + nines, "0.00" + nines},
		{"1e125", "1" + strings.Repeat("0", 125)}, {"9.9e125", "99" + strings.Repeat("0", 124)}, {"1e-130", "0." + strings.Repeat("0", 129) + "1"},
		{"1." + strings.Repeat("0", 100), "1"},
	} {
		if v, err := ParseNumber(c.in); err != nil || v.Text() != c.want || v.Kind() != Number {
			t.Errorf("%q is %q, %v; want %q", c.in, v.Text(), err, c.want)
		}
	}
	for _, in := range []string{
		"", "-", "+", ".", "e", "1e", "e5", "1e1.5", "--1", "1-", "abc", "1a", " 1", "1 ", "1,5", "0x10", "1_000", "NaN", "Infinity", "١",
		"1e126", "1e-131", "1e1000000", "1e99999999999999999999", "-1e126", nines + "1", "0." + nines + "1", "1" + strings.Repeat("0", 37) + "1",
	} {
		if v, err := ParseNumber(in); !errors.Is(err, ErrNumber) || !v.IsMissing() {
			t.Errorf("%q is %q, %v; want an error", in, v.Text(), err)
		}
	}
}

// The canonical text has the value of what was written, is its own canonical
// text, and is the same for all ways of writing it.
func TestParseNumberCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := decimals.Draw(t, "decimal")
		v, err := ParseNumber(in)
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		if rat(t, in).Cmp(rat(t, v.Text())) != 0 {
			t.Fatalf("%q became %q", in, v.Text())
		}
		if again, err := ParseNumber(v.Text()); err != nil || again.Text() != v.Text() {
			t.Fatalf("%q is canonical, and became %q, %v", v.Text(), again.Text(), err)
		}
		if slow, err := canonicalNumber(in); err != nil || slow != v.Text() {
			t.Fatalf("%q is %q, and canonically %q, %v", in, v.Text(), slow, err)
		}
	})
}

func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"0", "-1.50", "1e5", "0.00", "12345678901234567890123456789012345678", "1e-130", "-0", "0.1", "10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseNumber(s)
		if slow, serr := canonicalNumber(s); (err == nil) != (serr == nil) || slow != v.Text() {
			t.Fatalf("%q is %q, %v, and canonically %q, %v", s, v.Text(), err, slow, serr)
		}
		if err != nil {
			return
		}
		if len(s) < 200 && rat(t, s).Cmp(rat(t, v.Text())) != 0 {
			t.Fatalf("%q became %q", s, v.Text())
		}
	})
}

func TestCompareNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numberValues.Draw(t, "a"), numberValues.Draw(t, "b")
		if got, want := sign(Compare(a, b)), rat(t, a.Text()).Cmp(rat(t, b.Text())); got != want {
			t.Fatalf("Compare(%s, %s) = %d", a.Text(), b.Text(), got)
		}
		if Compare(a, a) != 0 || a.Sign() != rat(t, a.Text()).Sign() {
			t.Fatalf("%s differs from itself, or its sign is %d", a.Text(), a.Sign())
		}
		s, digits, exp := a.Decimal()
		if s != 0 {
			text := map[int]string{1: "", -1: "-"}[s] + "0." + digits + "e" + big.NewInt(int64(exp)).String()
			if rat(t, text).Cmp(rat(t, a.Text())) != 0 {
				t.Fatalf("%s is taken apart into %s", a.Text(), text)
			}
		}
	})
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func TestAddNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numberValues.Draw(t, "a"), numberValues.Draw(t, "b")
		want := new(big.Rat).Add(rat(t, a.Text()), rat(t, b.Text()))
		got, err := AddNumbers(a, b)
		if err != nil {
			if !errors.Is(err, ErrNumber) {
				t.Fatal(err)
			}
			if _, err := ParseNumber(want.FloatString(260)); err == nil {
				t.Fatalf("%s + %s = %s fits, and is refused", a.Text(), b.Text(), want.FloatString(140))
			}
			return
		}
		if rat(t, got.Text()).Cmp(want) != 0 {
			t.Fatalf("%s + %s = %s", a.Text(), b.Text(), got.Text())
		}
		back, err := AddNumbers(got, Negate(b))
		if err != nil || !Equal(back, a) {
			t.Fatalf("%s + %s - %s = %s, %v", a.Text(), b.Text(), b.Text(), back.Text(), err)
		}
	})
	for _, c := range []struct{ a, b, want string }{
		{"9223372036854775807", "1", "9223372036854775808"}, {"-9223372036854775808", "-1", "-9223372036854775809"},
		{"0.1", "0.2", "0.3"}, {"5", "-5", "0"}, {"0", "0", "0"}, {"9223372036854775807", "0", "9223372036854775807"}, {"-1", "0", "-1"},
	} {
		if got, err := AddNumbers(MustNumber(c.a), MustNumber(c.b)); err != nil || got.Text() != c.want {
			t.Errorf("%s + %s = %s, %v", c.a, c.b, got.Text(), err)
		}
	}
	if got, err := AddNumbers(Value{}, OfInt(3)); err != nil || got.Text() != "3" {
		t.Error(got, err)
	}
	if got, err := AddNumbers(OfString("5"), OfInt(3)); !errors.Is(err, ErrNumber) {
		t.Error(got, err)
	}
}

func TestMean(t *testing.T) {
	for _, c := range []struct {
		sum, count string
		places     int
		want       string
	}{
		{"10", "4", 2, "2.5"}, {"10", "3", 2, "3.33"}, {"20", "3", 2, "6.67"}, {"1", "8", 2, "0.13"}, {"-1", "8", 2, "-0.13"},
		{"9", "2", 0, "5"}, {"0", "5", 2, "0"}, {"12345678901234567890123456789012345678", "1", 2, "12345678901234567890123456789012345678"}, {"2.675", "1", 2, "2.68"},
	} {
		var sum Exact
		sum.Add(MustNumber(c.sum), 0)
		if got, err := sum.Mean(MustNumber(c.count), c.places); err != nil || got.Text() != c.want {
			t.Errorf("%s / %s = %s, %v; want %s", c.sum, c.count, got.Text(), err, c.want)
		}
	}
	if _, err := new(Exact).Mean(OfInt(0), 2); !errors.Is(err, ErrNumber) {
		t.Errorf("a mean of nothing: %v", err)
	}
}

// TestAnyMean: means of small and of large numbers are rounded the same way, which is that of big.Rat.
func TestAnyMean(t *testing.T) {
	digits := rapid.StringMatching(`-?[0-9]{1,19}(\.[0-9]{1,9})?`)
	count := rapid.OneOf(rapid.StringMatching(`[1-9][0-9]{0,3}`), rapid.StringMatching(`-?[1-9][0-9]{0,18}`))
	rapid.Check(t, func(t *rapid.T) {
		sum, n, places := digits.Draw(t, "sum"), count.Draw(t, "count"), rapid.IntRange(0, 9).Draw(t, "places")
		var e Exact
		e.Add(MustNumber(sum), 0)
		got, err := e.Mean(MustNumber(n), places)
		want := new(big.Rat).Quo(rat(t, sum), rat(t, n)).FloatString(places)
		if err != nil || !Equal(got, MustNumber(want)) {
			t.Fatalf("%s / %s to %d places is %s, %v; want %s", sum, n, places, got.Text(), err, want)
		}
	})
}

func TestInt64(t *testing.T) {
	for _, c := range []struct {
		in   Value
		want int64
		ok   bool
	}{
		{MustNumber("9223372036854775807"), 9223372036854775807, true}, {MustNumber("9223372036854775808"), 0, false},
		{MustNumber("1.5"), 0, false}, {MustNumber("1e3"), 1000, true}, {OfString("5"), 0, false}, {OfInt(-7), -7, true},
	} {
		if got, ok := c.in.Int64(); ok != c.ok || ok && got != c.want {
			t.Errorf("%v: %d, %v", c.in.Text(), got, ok)
		}
	}
}

// TestAddProduct: sums of products are exact, whatever lies between.
func TestAddProduct(t *testing.T) {
	n := rapid.SampledFrom([]string{"0", "1", "-3", "0.005", "99999999999999999999999999999999999999", "-9.9E+125", "1E-130", "-1.0000000000000000000000000000000000001E-130"})
	rapid.Check(t, func(t *rapid.T) {
		var got Exact
		want := new(big.Rat)
		for left := MaxFactors; left > 0; {
			minus := rapid.Bool().Draw(t, "minus")
			factors := rapid.SliceOfN(n, 1, left).Draw(t, "factors")
			left -= len(factors)
			product := big.NewRat(1, 1)
			var of []Value
			for _, f := range factors {
				of = append(of, MustNumber(f))
				product.Mul(product, rat(t, f))
			}
			if got.AddProduct(minus, of...); minus {
				product.Neg(product)
			}
			want.Add(want, product)
		}
		if is := got.d.Text('f'); rat(t, is).Cmp(want) != 0 {
			t.Fatalf("%s, want %s", is, want.FloatString(2000))
		}
	})
}
