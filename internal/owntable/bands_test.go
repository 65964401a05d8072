package owntable

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/value"
)

// numbers are any that DynamoDB takes, near the borders of bands more often.
var numbers = rapid.Custom(func(t *rapid.T) value.Value {
	digits := rapid.StringMatching(`[1-9]([09]{0,37}|[0-9]{0,37})`).Draw(t, "digits")
	lead := rapid.OneOf(rapid.IntRange(-130, 125), rapid.SampledFrom([]int{-130, -9, -8, 0, 13, 14, 15, 37, 38, 125})).Draw(t, "lead")
	sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
	return value.MustNumber(fmt.Sprintf("%s%s.%se%d", sign, digits[:1], digits[1:]+"0", lead))
})

func add(t *rapid.T, ledger value.Item, parts []value.Attr) value.Item {
	for _, p := range parts {
		sum, err := value.AddNumbers(ledger.Get(p.Name), p.Value)
		if err != nil {
			t.Fatalf("%s: %v + %v: %v", p.Name, ledger.Get(p.Name), p.Value, err)
		}
		ledger = ledger.With(value.Attr{Name: p.Name, Value: sum})
	}
	return ledger
}

func total(t *rapid.T, ledger value.Item) string {
	sum, err := Total("x", ledger)
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

// TestSplit says that the digits of a number are all in its bands, and that a band has
// room for those of 10^15 rows.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := numbers.Draw(t, "n")
		parts := Split("x", n)
		ledger := add(t, nil, parts)
		if got := total(t, ledger); got != n.Text() {
			t.Fatalf("%s comes to %s: %v", n.Text(), got, parts)
		}
		for _, p := range parts {
			attr, exp, ok := Band(p.Name)
			if !ok || attr != "x" || (exp-bandLowest)%bandPlaces != 0 && exp != 0 || !IsSum(p.Name) {
				t.Fatalf("%q is the band of %q at %d, %v", p.Name, attr, exp, ok)
			}
			full := p.Value
			for range 15 { // ten times as often, fifteen times
				sum := ledger.With(value.Attr{Name: p.Name, Value: full})
				for range 9 {
					sum = add(t, sum, []value.Attr{{Name: p.Name, Value: full}})
				}
				full = sum.Get(p.Name)
			}
		}
		if ledger = add(t, ledger, Split("x", value.Negate(n))); total(t, ledger) != "0" {
			t.Fatalf("%s leaves %v", n.Text(), ledger)
		}
		for _, a := range ledger {
			if a.Value.Sign() != 0 {
				t.Fatalf("%s leaves %v", n.Text(), ledger)
			}
		}
	})
	if parts := Split("x", value.OfInt(0)); parts != nil {
		t.Errorf("0 adds %v", parts)
	}
	if parts := Split("x", value.MustNumber("-12345678901234.12345678")); len(parts) != 1 || parts[0].Name != Sum("x") {
		t.Errorf("what the middle band holds is in %v", parts)
	}
}

// TestTotal says that the order in which numbers come and go makes no difference.
func TestTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ledger, once value.Item
		for _, n := range rapid.SliceOfN(numbers, 0, 8).Draw(t, "stay") {
			ledger, once = add(t, ledger, Split("x", n)), add(t, once, Split("x", n))
		}
		for _, n := range rapid.SliceOfN(numbers, 0, 4).Draw(t, "go") {
			ledger = add(t, add(t, ledger, Split("x", n)), Split("x", value.Negate(n)))
		}
		if a, b := total(t, ledger), total(t, once); a != b {
			t.Fatalf("%s and %s", a, b)
		}
	})
}

// TestRespread says that a ledger that holds a number in its middle band, whatever that
// is, comes to the same afterwards and has room for any other.
func TestRespread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ledger := add(t, value.Item{}, Split("x", numbers.Draw(t, "in bands"))).With(value.Attr{Name: Sum("x"), Value: numbers.Draw(t, "old")})
		before := total(t, ledger)
		ledger = ledger.With(Respread(ledger)...)
		if after := total(t, ledger); after != before {
			t.Fatalf("%s becomes %s", before, after)
		}
		if again := Respread(ledger); again != nil {
			t.Fatalf("again %v", again)
		}
		add(t, ledger, Split("x", numbers.Draw(t, "more")))
	})
}

func TestBandNames(t *testing.T) {
	for name, want := range map[string]string{
		"a:x": "x 0", "a:": " 0", "a+1:x": "x 15", "a-1:x:y": "x:y -31", "a+5:x": "x 107", "a-7:x": "x -169",
		"a+0:x": "", "a01:x": "", "a1:x": "", "a+x:x": "", "a": "", "ab:x": "", "c:x": "", "d:x:a:y": "", "o:x": "", "": "", "a+1": "",
	} {
		got := ""
		if attr, exp, ok := Band(name); ok {
			got = fmt.Sprint(attr, " ", exp)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
		if IsSum(name) != (want != "" || strings.HasPrefix(name, "c:")) {
			t.Errorf("%q is a sum: %v", name, IsSum(name))
		}
	}
}

func TestTotalOfDamage(t *testing.T) {
	if _, err := Total("x", value.NewItem(value.Attr{Name: "a:x", Value: value.OfString("5")})); err == nil {
		t.Error("a ledger that holds a text comes to something")
	}
}
