// Package soaktest says how long the loops of tests go on: over seeds, kills, models or damaged
// bytes. With -short, which make test passes, a loop has its short form, otherwise its long one.
// make soak runs long forms, and .ci/run those for which a clock leaves time.
package soaktest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"weir/internal/memory/memorytest"
)

// Clock is the environment variable with the seconds after which long forms end early.
const Clock = "WEIR_SOAK_S"

var began = time.Now()

// Count returns how often a loop goes round.
func Count[N ~int | ~int64 | ~uint64](short, long N) N {
	if testing.Short() {
		return short
	}
	return long
}

// Calm says that t does much one after the other: worlds, recordings, sizes, units, or many processes. make
// race leaves it out, since shorter tests do side by side all that it does side by side.
func Calm(t testing.TB) {
	if memorytest.Race {
		t.Skip("calm: not with the race detector")
	}
}

// Left returns the time that Clock leaves for the process, which is a day without a clock. A
// loop that may take minutes ends when it is zero; it says how far it came.
func Left() time.Duration {
	seconds, err := strconv.Atoi(os.Getenv(Clock))
	if err != nil {
		return 24 * time.Hour
	}
	return max(0, time.Duration(seconds)*time.Second-time.Since(began))
}
