package aggregate_test

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/aggregate"
	"weir/internal/owntable"
	"weir/internal/value"
)

// naive is what each aggregate shows of the values of its rows, by its definition.
var naive = map[*aggregate.Aggregate]func(values []value.Value) *big.Rat{
	aggregate.Count: func(values []value.Value) *big.Rat { return big.NewRat(int64(len(values)), 1) },
	aggregate.Sum:   sum,
	aggregate.Mean: func(values []value.Value) *big.Rat {
		if len(values) == 0 {
			return nil
		}
		return new(big.Rat).Quo(sum(values), big.NewRat(int64(len(values)), 1))
	},
	aggregate.Distinct: func(values []value.Value) *big.Rat {
		var texts []string
		for _, v := range values {
			texts = append(texts, v.Text())
		}
		slices.Sort(texts)
		return big.NewRat(int64(len(slices.Compact(texts))), 1)
	},
}

func sum(values []value.Value) *big.Rat {
	total := new(big.Rat)
	for _, v := range values {
		total.Add(total, rational(v))
	}
	return total
}

func rational(v value.Value) *big.Rat {
	r, ok := new(big.Rat).SetString(v.Text())
	if !ok {
		panic(v.Text())
	}
	return r
}

var numbers = rapid.Custom(func(t *rapid.T) value.Value {
	return value.MustNumber(rapid.SampledFrom([]string{"0", "1", "-1", "2.5", "0.001", "-7e20", "99999999999999999999", "1e-9"}).Draw(t, "number"))
})

// TestShown adds rows and takes some of them away, in any order: what each aggregate
// shows is what its definition makes of the rows that are left.
func TestShown(t *testing.T) {
	for _, a := range aggregate.All {
		if a.Shown == nil {
			continue
		}
		t.Run(a.Keyword, rapid.MakeCheck(func(t *rapid.T) {
			var ledger value.Item
			apply := func(v value.Value, take bool) {
				adds, unfit := a.Adds(nil, "x", v)
				if unfit != "" {
					t.Fatalf("%v does not fit: it must be %s", v, unfit)
				}
				for _, add := range adds {
					if take {
						add.Value = value.Negate(add.Value)
					}
					n, err := value.AddNumbers(ledger.Get(add.Name), add.Value)
					if err != nil {
						t.Fatal(err)
					}
					ledger = ledger.With(value.Attr{Name: add.Name, Value: n})
				}
			}
			gone := rapid.SliceOfN(numbers, 0, 6).Draw(t, "gone")
			left := rapid.SliceOfN(numbers, 0, 6).Draw(t, "left")
			for _, v := range append(slices.Clone(gone), left...) {
				apply(v, false)
			}
			for _, v := range rapid.Permutation(gone).Draw(t, "order") {
				apply(v, true)
			}
			const round = 3
			shown, err := a.Shown(aggregate.Declared{Attr: "x", Round: round, Max: 1000}, owntable.SettledLedger(ledger))
			if err != nil {
				t.Fatal(err)
			}
			want := naive[a](left)
			switch {
			case want == nil:
				if !shown.IsMissing() {
					t.Errorf("%v of no rows", shown)
				}
			case a == aggregate.Mean:
				off := new(big.Rat).Sub(rational(shown), want)
				if off.Abs(off).Cmp(big.NewRat(5, 10000)) > 0 {
					t.Errorf("%v of %v, want %v", shown, left, want)
				}
			case rational(shown).Cmp(want) != 0:
				t.Errorf("%v of %v, want %v", shown, left, want)
			}
			if len(left)+len(gone) == 0 && !value.Equal(shown, a.Empty) {
				t.Errorf("%v of nothing, but Empty is %v", shown, a.Empty)
			}
		}))
	}
}

// TestUnfit: a value of the wrong type adds nothing, and the reason says what is wanted.
func TestUnfit(t *testing.T) {
	long := value.OfString(string(make([]byte, aggregate.MaxMember+1)))
	for _, c := range []struct {
		a    *aggregate.Aggregate
		v    value.Value
		want string
	}{
		{aggregate.Count, value.OfString("3"), "a number"},
		{aggregate.Count, value.Value{}, ""},
		{aggregate.Sum, value.OfString("3"), "a number"},
		{aggregate.Mean, value.OfBool(true), "a number"},
		{aggregate.Distinct, value.OfList(), "a number or a string with characters"},
		{aggregate.Distinct, value.OfBool(false), ""},
		{aggregate.Set, long, "a member of at most 1024 bytes"},
	} {
		adds, unfit := c.a.Adds(nil, "x", c.v)
		if unfit != c.want || unfit != "" && len(adds) > 0 {
			t.Errorf("%s of a %v: adds %v, unfit %q, want %q", c.a.Keyword, c.v.Kind(), adds, unfit, c.want)
		}
	}
}

// TestExplain: the digits of a sum are one amount, and other attributes are left out.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		a    *aggregate.Aggregate
		v    string
		want []string
	}{
		{aggregate.Count, "7", []string{"+1"}},
		{aggregate.Sum, "-7.25", []string{"-7.25"}},
		{aggregate.Mean, "1e60", []string{"+1 rows", "+1000000000000000000000000000000000000000000000000000000000000"}},
		{aggregate.Distinct, "7", []string{"+1 7"}},
	} {
		adds, _ := c.a.Adds(nil, "x", value.MustNumber(c.v))
		other, _ := c.a.Adds(nil, "y", value.MustNumber(c.v))
		if got := aggregate.Explain("x", append(adds, other...)); !slices.Equal(got, c.want) {
			t.Errorf("%s of %s: %q, want %q", c.a.Keyword, c.v, got, c.want)
		}
	}
}
