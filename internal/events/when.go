package events

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"weir/internal/value"
)

// stamp is a time as a record has it. Its unit is known only once the whole record is read.
type stamp struct {
	text      string
	iso       bool   // text stood in quotes
	precision string // as Kinesis records say it; "" in others
}

const (
	precisionMillis = "MILLISECOND"
	precisionMicros = "MICROSECOND"
)

var errTime = errors.New("not a time in Unix seconds or ISO 8601")

// readStamp reads a number or a string.
func (p *scanner) readStamp(s *stamp, name string) {
	switch c := p.b[p.i]; {
	case c == '"':
		s.text, s.iso = p.readString(), true
	case c == '-' || c-'0' <= 9:
		s.text, s.iso = p.readNumber(), false
	default:
		s.text = ""
		p.notKind(c, "a number or a string", name)
	}
}

// timeOf returns the time, zero for none. A number without a precision is in seconds. If that
// would be thousands of years from now, it is in milliseconds or microseconds, which Kinesis
// records and some tools use.
func (s stamp) timeOf() (time.Time, error) {
	switch {
	case s.text == "":
		return time.Time{}, nil
	case s.iso:
		return parseISO(s.text)
	}
	if len(s.text) <= 11 && s.precision == "" {
		if n, err := strconv.ParseInt(s.text, 10, 64); err == nil {
			return time.Unix(n, 0).UTC(), nil
		}
	}
	v, err := value.ParseNumber(s.text)
	if err != nil {
		return time.Time{}, errTime
	}
	sign, digits, exp := v.Decimal()
	switch {
	case s.precision == precisionMicros:
		exp -= 6
	case s.precision == precisionMillis:
		exp -= 3
	case exp > 14:
		exp -= 6
	case exp > 11:
		exp -= 3
	}
	return unixTime(sign, digits, exp)
}

// unixTime returns the time 0.DIGITS × 10^exp seconds after 1970, truncated to nanoseconds.
// A time before 1970 is cut towards 1970. More than 11 digits of seconds are no time.
func unixTime(sign int, digits string, exp int) (time.Time, error) {
	if exp > 11 {
		return time.Time{}, errTime
	}
	if exp += 9; exp <= 0 {
		return time.Unix(0, 0).UTC(), nil
	}
	if len(digits) > exp {
		digits = digits[:exp]
	}
	padded := strings.Repeat("0", max(0, 9-exp)) + digits + strings.Repeat("0", exp-len(digits))
	whole, frac := padded[:len(padded)-9], padded[len(padded)-9:]
	sec, _ := strconv.ParseInt("0"+whole, 10, 64)
	nano, _ := strconv.ParseInt(frac, 10, 64)
	if sign < 0 {
		sec, nano = -sec, -nano
	}
	return time.Unix(sec, nano).UTC(), nil
}

// isoLayouts are the layouts in which tools write a time. A time without a zone is UTC.
var isoLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700"}

// parseISO parses the forms of time that the CLI prints, and seconds since 1970 in quotes.
func parseISO(s string) (time.Time, error) {
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	// A number in quotes is a number.
	if v, err := value.ParseNumber(s); err == nil {
		return stamp{text: v.Text()}.timeOf()
	}
	return time.Time{}, errTime
}
