package cli

import (
	"testing"
	"time"
)

// TestTTL: days and durations are read; what is negative or neither is refused.
func TestTTL(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "0": 0, "30d": 720 * time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute, "4095d": 4095 * 24 * time.Hour} {
		var is TTL
		if err := is.UnmarshalText([]byte(text)); err != nil || time.Duration(is) != want {
			t.Errorf("%q: %v, %v", text, time.Duration(is), err)
		}
	}
	for _, text := range []string{"d", "-1d", "-1h", "1.5d", "4096d", "30", "a month"} {
		if err := new(TTL).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
