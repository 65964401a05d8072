package value

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func str(s string) Value { return OfString(s) }
func num(s string) Value { return MustNumber(s) }

// The values of the table: what a row can have.
var (
	big38   = num("12345678901234567890123456789012345678")
	big38up = num("12345678901234567890123456789012345679")
	values  = map[string]Value{
		"missing": {}, "null": OfNull(), "yes": OfBool(true), "no": OfBool(false),
		"4": num("4"), "5": num("5.0"), "6": num("6"), "big": big38, "big+1": big38up,
		`"5"`: str("5"), `"10"`: str("10"), `""`: str(""), `"ab"`: str("ab"), `"b"`: str("b"), `"true"`: str("true"),
		"noon": str("2026-01-31T12:00:00Z"), "noon+2": str("2026-01-31T14:00:00+02:00"), "noon.0": str("2026-01-31T12:00:00.000Z"),
		"later": str("2026-01-31T12:00:00.0000000001Z"), "day": str("2026-01-31"), "soon": str("soon"),
		"list": OfList(num("5")), "map": OfMap(NewItem(Attr{Name: "a", Value: num("5")})),
		"set": OfStrings([]string{"ab"}), "binary": OfBinary("ab"),
	}
)

// TestTable: every operation with every way to read a value, and which of all values pass.
func TestTable(t *testing.T) {
	noon := values["noon"]
	all := strings.Join(names(func(Value) bool { return true }), " ")
	but := func(left ...string) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(all), func(n string) bool { return slices.Contains(left, n) }), " ")
	}
	for _, c := range []struct {
		term Term
		pass string
	}{
		{Term{Op: Exists}, but("missing", "null")},
		{Term{Op: Absent}, "missing null"},
		{is(In, num("5")), "5"},
		{is(In, str("5")), `"5"`},
		{is(In, num("4"), str("ab"), big38), `"ab" 4 big`},
		{is(In, str("true")), `"true" yes`},
		{is(In, OfBool(true)), `"true" yes`},
		{is(In, noon), "noon"},
		{is(NotIn, num("5")), but("5")},
		{is(NotIn, num("5"), str("ab")), but("5", `"ab"`)},
		{is(NotIn, OfBool(true)), but("yes", `"true"`)},
		{is(AtLeast, num("5")), "5 6 big big+1"},
		{is(Above, num("5")), "6 big big+1"},
		{is(AtMost, num("5")), "4 5"},
		{is(Below, num("5")), "4"},
		{is(Above, big38), "big+1"},
		{is(AtMost, big38), "4 5 6 big"},
		{is(AtLeast, str("ab")), `"ab" "b" "true" soon`},
		{is(Above, str("ab")), `"b" "true" soon`},
		{is(AtMost, str("10")), `"" "10"`},
		{is(Below, str("10")), `""`},
		{is(Begins, str("a")), `"ab"`},
		{is(Begins, str("2026-01")), "day later noon noon+2 noon.0"},
		{as(AsTimes, In, noon), "noon noon+2 noon.0"},
		{as(AsTimes, NotIn, noon), but("noon", "noon+2", "noon.0")},
		{as(AsTimes, AtLeast, noon), "later noon noon+2 noon.0"},
		{as(AsTimes, Above, noon), "later"},
		{as(AsTimes, AtMost, noon), "day noon noon+2 noon.0"},
		{as(AsTimes, Below, noon), "day"},
		{as(AsNumbers, AtLeast, num("5")), `"10" "5" 5 6 big big+1`},
		{as(AsNumbers, Above, num("5")), `"10" 6 big big+1`},
		{as(AsNumbers, AtMost, num("5")), `"5" 4 5`},
		{as(AsNumbers, Below, num("10")), `"5" 4 5 6`},
	} {
		if got, want := names(c.term.Holds), strings.Fields(c.pass); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%v of %v read as %d: %v pass, want %v", c.term.Op, c.term.Values, c.term.As, got, want)
		}
	}
}

func names(pass func(Value) bool) (out []string) {
	for name, v := range values {
		if pass(v) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func is(op Op, vs ...Value) Term       { return Term{Op: op, Values: vs} }
func as(a As, op Op, vs ...Value) Term { return Term{Op: op, As: a, Values: vs} }

func TestTimes(t *testing.T) {
	order := []string{ // each earlier than the next, those of one line the same
		"2025-12-31T23:30:00-00:29",
		"2025-12-31T23:59:59.999999999999Z",
		"2026-01-01 2026-01-01T00:00:00Z 2026-01-01T00:00:00.0Z 2026-01-01T05:30:00+05:30",
		"2026-01-01T00:00:00.000000000000000000001Z",
		"2026-01-01T00:00:00.49Z 2026-01-01T01:00:00.490+01:00",
		"2026-01-01T00:00:00.5Z",
		"9999-12-31T23:59:59Z",
	}
	for i, a := range order {
		for j, b := range order {
			for _, x := range strings.Fields(a) {
				for _, y := range strings.Fields(b) {
					if c, ok := CompareTimes(str(x), str(y)); !ok || (c < 0) != (i < j) || (c > 0) != (i > j) {
						t.Errorf("%s and %s: %d, %v", x, y, c, ok)
					}
					atX, okX := Time(str(x))
					atY, okY := Time(str(y))
					if !okX || !okY || i < j && atX.After(atY) || i == j && !atX.Equal(atY) {
						t.Errorf("%s is %v, %s is %v", x, atX, y, atY)
					}
				}
			}
		}
	}
	for _, bad := range []string{"", "soon", "2026-02-30", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01T0:00:00Z",
		"2026-01-01T0:00:00+01:00", "2026-01-01T00:00:00,5Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00z", "20260101", "2026-01-01T00:00.5:00Z", "12026-01-01T00:00:00Z"} {
		if _, ok := CompareTimes(str(bad), str("2026-01-01")); ok {
			t.Errorf("%q is taken for a time", bad)
		}
		if at, ok := Time(str(bad)); ok {
			t.Errorf("%q is taken for %v", bad, at)
		}
	}
}

// TestTime: a time has nine digits behind the second, and is told in UTC.
func TestTime(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-01-31":                          time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T00:30:00+01:00":           time.Date(2026, 1, 30, 23, 30, 0, 0, time.UTC),
		"2026-01-31T12:00:00.5Z":              time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC),
		"2026-01-31T12:00:00.0000000019Z":     time.Date(2026, 1, 31, 12, 0, 0, 1, time.UTC),
		"1969-12-31T23:59:59.999999999999Z":   time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		"0000-01-01T00:00:00+14:00":           time.Date(-1, 12, 31, 10, 0, 0, 0, time.UTC),
		"9999-12-31T23:59:59.000000001-12:00": time.Date(10000, 1, 1, 11, 59, 59, 1, time.UTC),
	} {
		if at, ok := Time(str(text)); !ok || at != want {
			t.Errorf("%s is %v, want %v", text, at, want)
		}
	}
	if _, ok := Time(OfInt(2026)); ok {
		t.Error("a number is taken for a time")
	}
}

// The naive evaluator: written from the documentation, with rational numbers and time.Time.

func naive(c Condition, v Value) bool {
	for _, t := range c {
		if !naiveTerm(t, v) {
			return false
		}
	}
	return true
}

func naiveTerm(t Term, v Value) bool {
	nothing := v.IsMissing() || v.Kind() == Null
	in := false
	for _, w := range t.Values {
		in = in || naiveEqual(t.As, v, w)
	}
	switch t.Op {
	case Exists:
		return !nothing
	case Absent:
		return nothing
	case In:
		return in
	case NotIn:
		return !in
	case Begins:
		return v.Kind() == String && len(v.Text()) >= len(t.Values[0].Text()) && v.Text()[:len(t.Values[0].Text())] == t.Values[0].Text()
	}
	c, ok := naiveOrder(t.As, v, t.Values[0])
	return ok && slices.Contains(map[Op][]int{AtLeast: {0, 1}, Above: {1}, AtMost: {-1, 0}, Below: {-1}}[t.Op], c)
}

func naiveEqual(as As, v, w Value) bool {
	if c, ok := naiveOrder(AsTimes, v, w); ok && as == AsTimes {
		return c == 0
	}
	flags := map[string]int{}
	for _, x := range []Value{v, w} {
		if x.Kind() == Bool || x.Kind() == String {
			flags[Scalar(x)]++
		}
	}
	if v.Kind() == Bool || w.Kind() == Bool {
		return flags["true"] == 2 || flags["false"] == 2
	}
	c, ok := naiveOrder(AsIs, v, w)
	return ok && c == 0
}

func naiveOrder(as As, v, w Value) (int, bool) {
	rat := func(x Value) *big.Rat {
		if x.Kind() != Number && !(as == AsNumbers && x.Kind() == String) {
			return nil
		}
		n, err := ParseNumber(x.Text())
		if err != nil {
			return nil
		}
		r, _ := new(big.Rat).SetString(n.Text())
		return r
	}
	switch {
	case as == AsTimes:
		a, errA := naiveTime(v)
		b, errB := naiveTime(w)
		return a.Compare(b), errA == nil && errB == nil
	case rat(v) != nil && rat(w) != nil:
		return rat(v).Cmp(rat(w)), true
	case as == AsIs && v.Kind() == String && w.Kind() == String:
		return strings.Compare(v.Text(), w.Text()), true
	}
	return 0, false
}

func naiveTime(v Value) (time.Time, error) {
	if v.Kind() != String {
		return time.Time{}, fmt.Errorf("a %s", v.Kind())
	}
	if t, err := time.Parse(time.DateOnly, v.Text()); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339Nano, v.Text())
}

// A few values of each kind, near each other, so that conditions and values meet.
var (
	somes = []Value{
		num("0"), num("1"), num("1.00"), num("2"), num("-1"), num("1e-3"), big38, big38up, num("1e30"),
		str(""), str("1"), str("01"), str("2"), str("a"), str("ab"), str("abc"), str("b"), str("true"), str("false"),
		OfBool(true), OfBool(false),
	}
	moments = []Value{
		str("2026-01-01T00:00:00Z"), str("2026-01-01"), str("2026-01-01T01:00:00+01:00"), str("2026-01-01T00:00:00.5Z"), str("2026-01-01T00:00:01Z"), str("2025-12-31T23:59:59Z"),
	}
	others = []Value{{}, OfNull(), OfList(num("1")), OfBinary("a"), str("zz"), num("7"), str("2027-01-01T00:00:00Z")}
)

func drawTerm(t *rapid.T) Term {
	out := Term{Op: Op(rapid.IntRange(0, int(Begins)).Draw(t, "op"))}
	from := slices.Concat(somes, moments)
	switch {
	case out.Op == Exists || out.Op == Absent:
		return out
	case out.Op == In || out.Op == NotIn:
		if rapid.Bool().Draw(t, "times") {
			out.As, from = AsTimes, moments
		}
		out.Values = rapid.SliceOfN(rapid.SampledFrom(from), 1, 3).Draw(t, "values")
		return out
	case out.Op == Begins:
		from = slices.DeleteFunc(from, func(v Value) bool { return v.Kind() != String })
	default:
		switch out.As = As(rapid.IntRange(0, int(AsNumbers)).Draw(t, "as")); out.As {
		case AsTimes:
			from = moments
		case AsNumbers:
			from = slices.DeleteFunc(from, func(v Value) bool { return v.Kind() != Number })
		default:
			from = slices.DeleteFunc(from, func(v Value) bool { return v.Kind() == Bool })
		}
	}
	out.Values = []Value{rapid.SampledFrom(from).Draw(t, "value")}
	return out
}

func drawCondition(t *rapid.T) (c Condition) {
	for range rapid.IntRange(1, 4).Draw(t, "terms") {
		c = append(c, drawTerm(t))
	}
	return c
}

// TestNaive: a condition holds where a naive evaluator says so.
func TestNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCondition(t)
		for _, v := range slices.Concat(somes, moments, others) {
			if got, want := c.Holds(v), naive(c, v); got != want {
				t.Fatalf("%v of %v: %v, want %v", c, v, got, want)
			}
		}
	})
}

// TestEmptyMeansNoValue: no value passes a condition that is said to be empty. Two entities
// are taken apart by it.
func TestEmptyMeansNoValue(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawCondition(t)
		if !c.Empty() {
			return
		}
		found++
		for _, v := range slices.Concat(somes, moments, others) {
			if naive(c, v) {
				t.Fatalf("%v is empty, and %v passes", c, v)
			}
		}
	})
	if found == 0 {
		t.Error("no condition was empty")
	}
}

// TestEmptyIsFound: what lint has to find.
func TestEmptyIsFound(t *testing.T) {
	noon, one := values["noon"], str("2026-01-31T13:00:00Z")
	for i, c := range []Condition{
		{is(Above, num("5")), is(Below, num("3"))},
		{is(AtLeast, num("5")), is(Below, num("5"))},
		{is(Above, num("5")), is(AtMost, num("5"))},
		{is(AtLeast, num("5")), is(AtMost, num("5")), is(NotIn, num("5"))},
		{is(AtLeast, num("2")), is(AtMost, num("9")), is(AtLeast, num("5")), is(AtMost, num("4"))},
		{is(In, num("2")), is(Above, num("2"))},
		{is(In, str("a"), str("b")), is(NotIn, str("b"), str("a"))},
		{is(In, str("a"), str("b")), is(In, str("c"))},
		{is(In, str("a")), is(Begins, str("b"))},
		{is(Begins, str("a")), is(Begins, str("b"))},
		{is(Begins, str("ab")), is(Below, str("ab"))},
		{is(Begins, str("ab")), is(AtLeast, str("ac"))},
		{is(Begins, str("1")), is(AtLeast, num("1"))},
		{is(AtLeast, str("1")), is(AtLeast, num("1"))},
		{{Op: Exists}, {Op: Absent}},
		{{Op: Absent}, is(AtLeast, num("1"))},
		{as(AsTimes, AtLeast, one), as(AsTimes, Below, noon)},
		{as(AsTimes, AtLeast, values["noon+2"]), as(AsTimes, Below, noon)},
		{as(AsTimes, In, noon), as(AsTimes, NotIn, values["noon+2"])},
		{as(AsTimes, In, noon), as(AsTimes, Above, noon)},
		{as(AsTimes, In, noon), as(AsTimes, In, one)},
		{as(AsNumbers, AtLeast, num("10")), as(AsNumbers, Below, num("9"))},
	} {
		if !c.Empty() {
			t.Errorf("%d: %v is not found empty", i, c)
		}
	}
	for i, c := range []Condition{
		nil, {is(NotIn, str("a"))}, {{Op: Absent}, is(NotIn, str("a"))}, {is(AtLeast, num("5")), is(AtMost, num("5"))},
		{is(Begins, str("a")), is(Begins, str("ab"))}, {is(Begins, str("ab")), is(Below, str("ac")), is(Above, str("ab"))},
		{as(AsTimes, AtLeast, noon), as(AsTimes, AtMost, values["noon+2"])}, {is(In, OfBool(true)), is(In, str("true"))},
		{as(AsTimes, In, noon), is(In, values["noon+2"])},
	} {
		if c.Empty() {
			t.Errorf("%d: %v is said to be empty", i, c)
		}
	}
}

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		have, want Value
		is         bool
	}{
		{num("5"), str("5"), true}, {str("5"), num("5"), true}, {values["set"], str("ab"), true}, {values["list"], num("5"), true}, {values["list"], num("6"), false},
		{Value{}, str(""), false}, {OfNull(), str(""), false}, {OfBool(true), str("true"), true}, {str("ab"), str("a"), false},
	} {
		if Asked(c.have, c.want) != c.is {
			t.Errorf("%v asked for %v: %v", c.have, c.want, !c.is)
		}
	}
}
