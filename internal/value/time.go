package value

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// CompareTimes orders two texts that are times by the instants that they mean, whatever
// their offsets and however many digits their seconds have. It reports false unless both are
// times of RFC 3339. A date alone is its midnight in UTC.
func CompareTimes(a, b Value) (int, bool) {
	if a.Kind() != String || b.Kind() != String {
		return 0, false
	}
	x, okX := instantOf(a.Text())
	y, okY := instantOf(b.Text())
	if !okX || !okY {
		return 0, false
	}
	return cmp.Or(cmp.Compare(x.second, y.second), strings.Compare(x.fraction, y.fraction)), true
}

// Instant returns a text for a time, and false for a value that is no time (CompareTimes): the bytes of
// these texts are in the order of the instants, and times of one instant have the same.
func Instant(v Value) (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	i, ok := instantOf(v.Text())
	const year0 = 100_000_000_000 // more seconds than a time can be before 1970
	return fmt.Sprintf("%012d.%s", i.second+year0, i.fraction), ok
}

// Time returns the instant that a time means, and false for a value that is no time (CompareTimes).
// Digits behind the nanoseconds are left out.
func Time(v Value) (time.Time, bool) {
	if v.Kind() != String {
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

// dateLength is the length of a date such as 2026-01-31, and of the beginning of every time.
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

// ReadTime returns a time as languages and SDKs write it, as a text that the rest of this package
// takes for a time. A date, or a time of RFC 3339, stays as it is. Anything else becomes RFC 3339 in
// UTC: an offset without a colon or without minutes, a blank for the T, a comma for the point, a time
// without seconds. A text without an offset is in zone; without a zone only a date is a time. A
// local time that a zone has twice is the first of the two; one that it leaves out is as much later.
func ReadTime(text string, zone *time.Location) (string, bool) {
	if _, ok := instantOf(text); ok && (zone == nil || len(text) != dateLength) {
		return text, true
	}
	day, rest := text[:min(dateLength, len(text))], text[min(dateLength, len(text)):]
	clock, fraction := "00:00:00", ""
	if rest != "" {
		if !strings.ContainsRune("Tt ", rune(rest[0])) {
			return "", false
		}
		clock, fraction, rest = cutClock(rest[1:])
	}
	t, err := time.Parse(time.DateTime, day+" "+clock)
	offset, ok := offsetOf(strings.TrimPrefix(rest, " "))
	switch {
	case err != nil || !ok && (rest != "" || zone == nil):
		return "", false
	case ok:
		t = t.Add(-offset)
	default:
		t = localTime(t, zone)
	}
	text = t.Format("2006-01-02T15:04:05") + fraction + "Z"
	_, ok = instantOf(text)
	return text, ok
}

// cutClock cuts a time of day from the text after it: hours, minutes and seconds, and the point with its
// digits. A clock that is none is not one for time.Parse either.
func cutClock(text string) (clock, fraction, rest string) {
	n := len("15:04")
	if len(text) > n && text[n] == ':' {
		n = len("15:04:05")
	}
	clock, rest = text[:min(n, len(text))], text[min(n, len(text)):]
	if n == len("15:04") {
		clock += ":00"
	}
	if rest != "" && (rest[0] == '.' || rest[0] == ',') {
		after := strings.TrimLeft(rest[1:], "0123456789")
		fraction, rest = "."+rest[1:len(rest)-len(after)], after
	}
	return clock, fraction, rest
}

// offsetOf reads a distance from UTC: Z, UTC, GMT, +01, +0100 or +01:00.
func offsetOf(text string) (time.Duration, bool) {
	switch text {
	case "Z", "z", "UTC", "GMT":
		return 0, true
	}
	for _, layout := range [...]string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, text); err == nil {
			_, seconds := t.Zone()
			return time.Duration(seconds) * time.Second, true
		}
	}
	return 0, false
}

// localTime returns the instant at which clocks of a zone show the time that t shows in UTC.
func localTime(t time.Time, zone *time.Location) time.Time {
	const day = 24 * time.Hour
	shifted := func(at time.Time) time.Time {
		_, seconds := at.In(zone).Zone()
		return t.Add(-time.Duration(seconds) * time.Second)
	}
	before, after := shifted(t.Add(-day)), shifted(t.Add(day))
	if !shifted(before).Equal(before) && shifted(after).Equal(after) {
		return after
	}
	return before
}
