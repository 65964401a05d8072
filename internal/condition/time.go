package condition

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"weir/internal/value"
)

// CompareTimes orders two texts that are times by the instants that they mean, whatever
// their offsets and however many digits their seconds have. It reports false unless both are
// times of RFC 3339. A date alone is its midnight in UTC.
func CompareTimes(a, b value.Value) (int, bool) {
	if a.Kind() != value.String || b.Kind() != value.String {
		return 0, false
	}
	x, okX := instantOf(a.Text())
	y, okY := instantOf(b.Text())
	if !okX || !okY {
		return 0, false
	}
	return cmp.Or(cmp.Compare(x.second, y.second), strings.Compare(x.fraction, y.fraction)), true
}

// Instant returns a text for a time, and false for what is no time (CompareTimes): the bytes of
// these texts are in the order of the instants, and times of one instant have the same.
func Instant(v value.Value) (string, bool) {
	if v.Kind() != value.String {
		return "", false
	}
	i, ok := instantOf(v.Text())
	const year0 = 100_000_000_000 // more seconds than a time can be before 1970
	return fmt.Sprintf("%012d.%s", i.second+year0, i.fraction), ok
}

// Time returns the instant that a time means, and false for what is no time (CompareTimes).
// Digits behind the nanoseconds are left out.
func Time(v value.Value) (time.Time, bool) {
	if v.Kind() != value.String {
		return time.Time{}, false
	}
	i, ok := instantOf(v.Text())
	nanoseconds := int64(0)
	for _, digit := range (i.fraction + "000000000")[:9] {
		nanoseconds = nanoseconds*10 + int64(digit-'0')
	}
	return time.Unix(i.second, nanoseconds).UTC(), ok
}

// instant is a second since 1970 and the digits behind it, without zeros at their end. It has
// all digits, where time.Time has nine.
type instant struct {
	second   int64
	fraction string
}

// dateLength is the length of a date such as 2026-01-31, and of what every time begins with.
const dateLength = len(time.DateOnly)

// instantOf reads a date, or a time of RFC 3339 with any number of fractional digits. It is
// stricter than time.Parse: two digits for the hour, and a point before the fraction.
func instantOf(text string) (instant, bool) {
	if len(text) == dateLength {
		t, err := time.Parse(time.DateOnly, text)
		return instant{second: t.Unix()}, err == nil
	}
	whole, fraction := text, ""
	if i := len("2026-01-31T12:00:00"); len(text) > i && text[i] == '.' {
		n := len(text) - i - 1 - len(strings.TrimLeft(text[i+1:], "0123456789"))
		if n == 0 {
			return instant{}, false
		}
		whole, fraction = text[:i]+text[i+1+n:], strings.TrimRight(text[i+1:i+1+n], "0")
	}
	t, err := time.Parse("2006-01-02T15:04:05Z07:00", whole)
	if err != nil || strings.ContainsRune(whole, ',') || whole[len("2006-01-02T15")] != ':' { // an hour of one digit
		return instant{}, false
	}
	return instant{t.Unix(), fraction}, true
}
