package memory

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Size{
		"256MB": Default, "1GB": GB, "1gb": GB, "134217728": Least, " 128 mb ": Least, "300000000": 300_000_000, "129MB": 129 * MB,
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%q is written %s, which is read as %d, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "not a size", "MB": "not a size", "-1GB": "not a size", "+1GB": "not a size", "1.5GB": "not a size", "256 M": "not a size", "1GBMB": "not a size",
		"1TB": "not a size", "256": "128MB is the least", "127MB": "128MB is the least", "0": "128MB is the least", "134217727": "128MB is the least",
		"9000000000GB": "the most", "9223372036854775807": "the most", "99999999999999999999": "not a size",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v; want %q", text, got, err, want)
		}
	}
}

// TestShares: the default is divided as it always was, and every part grows with the whole.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		size, of Size
		want     int64
	}{
		{0, 12 * MB, 12 << 20}, {Default, 12 * MB, 12 << 20}, {128 * MB, 12 * MB, 6 << 20}, {GB, 16 * MB, 64 << 20},
		{300_000_000, 24 * MB, 28_125_000}, {most, aim, int64(most) / 256 * 246},
	} {
		if got := c.size.Share(c.of); got != c.want {
			t.Errorf("%d of %s: %d, want %d", c.of, c.size, got, c.want)
		}
	}
}

func TestHeap(t *testing.T) {
	for _, c := range []struct {
		size         Size
		mapped, want int64
	}{
		{Default, 0, 246}, {Default, 20 << 20, 226}, {Default, 20<<20 + 1, 225}, {Default, 60 << 20, 186},
		{Default, 66 << 20, 180}, {Default, 67 << 20, 180}, {Default, 4 << 30, 180},
		{128 * MB, 0, 123}, {128 * MB, 20 << 20, 103}, {128 * MB, 60 << 20, 63}, {128 * MB, 70 << 20, 60}, {255 * MB, 4 << 30, 119},
		{GB, 0, 984}, {GB, 66 << 20, 918}, {GB, 4 << 30, 720}, {0, 0, 246},
	} {
		if got := c.size.Heap(c.mapped); got != c.want<<20 {
			t.Errorf("%s beside %d bytes: %d, want %d MB", c.size, c.mapped, got, c.want)
		}
	}
}
