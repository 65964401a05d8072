package events

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/value"
)

var sequenceNumbers = rapid.OneOf(
	rapid.StringMatching(`[0-9]{21,40}`), rapid.StringMatching(`[0-9]{1,20}`), rapid.SampledFrom([]string{"0", "9", "18446744073709551615", "18446744073709551616",
		"340282366920938463463374607431768211455", "340282366920938463463374607431768211456", strings.Repeat("9", 40), "000000000000000000001"}),
)

// A position is the number that its text is, and orders like it.
func TestPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sequenceNumbers.Draw(t, "a"), sequenceNumbers.Draw(t, "b")
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		p, err := ParsePosition(a)
		if err != nil {
			t.Fatal(err)
		}
		q, err := ParsePosition(b)
		if err != nil {
			t.Fatal(err)
		}
		if p.String() != x.String() || new(big.Int).SetBytes(p[:]).Cmp(x) != 0 {
			t.Fatalf("%s became %s", a, p)
		}
		if p.Compare(q) != x.Cmp(y) || value.Compare(p.Value(), q.Value()) != x.Cmp(y) || (p == q) != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s compare as %d", a, b, p.Compare(q))
		}
		if p.IsZero() != (x.Sign() == 0) || PositionFrom(p.Value()) != p {
			t.Fatalf("%s: zero %v, back from its value %s", a, p.IsZero(), PositionFrom(p.Value()))
		}
		if x.IsUint64() && (p.Uint64() != x.Uint64() || PositionOf(x.Uint64()) != p) {
			t.Fatalf("%s as an integer is %d", a, p.Uint64())
		}
	})
}

func TestPositionRefused(t *testing.T) {
	for _, s := range []string{"", " 1", "-1", "+1", "1.0", "1e5", "0x1", "١", strings.Repeat("9", 41), "12345678901234567890a"} {
		if p, err := ParsePosition(s); !errors.Is(err, ErrPosition) || !p.IsZero() {
			t.Errorf("%q: %v, %v", s, p, err)
		}
	}
	if p := PositionFrom(value.OfString("x")); !p.IsZero() {
		t.Error(p)
	}
	if p := PositionFrom(value.Value{}); !p.IsZero() {
		t.Error(p)
	}
}

func TestRecordEvent(t *testing.T) {
	row := value.Item{}
	for _, c := range []struct {
		r    Record
		want string
	}{{Record{New: row}, "INSERT"}, {Record{Old: row, New: row}, "MODIFY"}, {Record{Old: row}, "REMOVE"}, {Record{}, "REMOVE"}} {
		if got := c.r.Event(); got != c.want {
			t.Errorf("%s, not %s", got, c.want)
		}
	}
}
