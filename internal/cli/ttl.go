package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// LetterFlag is the flag that says how long dead letters have the rows that they are about.
type LetterFlag struct {
	LetterTTL TTL `placeholder:"30d" help:"Have TTL delete the rows that new dead letters keep after so long, such as 30d or 36h. The letters stay, and say so; a retry then needs the recording, or a build. Without it, letters have their rows until they are settled."`
}

// TTL is a time of days, 30d, or any duration of Go above zero; 0 and "" are never.
type TTL time.Duration

// UnmarshalText reads one.
func (t *TTL) UnmarshalText(text []byte) error {
	s := string(text)
	d, err := time.ParseDuration(s)
	if days, is := strings.CutSuffix(s, "d"); is {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 12)
		d = time.Duration(n) * 24 * time.Hour
	}
	if s == "" || s == "0" {
		d, err = 0, nil
	}
	if err != nil || d < 0 {
		return errors.New("it is a number of days of at most 4095, such as 30d, or a duration, such as 36h")
	}
	*t = TTL(d)
	return nil
}
