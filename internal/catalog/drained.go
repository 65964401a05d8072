package catalog

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/owntable"
)

// Drained is an operator's word that nothing of what a reader has read can be delivered again, so
// that another reader may take its streams over. It says when that was so. A word that is left in a
// start script or an environment is therefore of no use against a reader that began later.
type Drained struct {
	Reader Reader
	At     time.Time
}

const (
	// drainedAhead is by how much clocks may differ.
	drainedAhead = time.Minute
	// drainedLife is how long records may come again that were applied, as an operator says: a
	// stream keeps them for 24 hours.
	drainedLife = 25 * time.Hour
)

// ParseDrained reads what --drained and WEIR_DRAINED have: READER@TIME.
func ParseDrained(text string) (Drained, error) {
	name, stamp, timed := strings.Cut(text, "@")
	r, err := parseReader(name)
	if err != nil {
		return Drained{}, err
	}
	at, err := time.Parse(time.RFC3339, stamp)
	if !timed || err != nil {
		return Drained{}, fmt.Errorf("%q does not say since when %s is drained: it is %s@TIME, such as %s@2026-11-24T20:00:00Z. What is refused without it names the time to give", text, r, name, name)
	}
	return Drained{r, at}, nil
}

// String returns what ParseDrained reads.
func (d Drained) String() string { return d.Reader.Name() + "@" + d.At.UTC().Format(time.RFC3339) }

// Frees reports whether the word holds for the reader of a table's stream: it has the name of that
// reader, and was given after the reader began.
func (d Drained) Frees(pin owntable.Pin, now time.Time) bool {
	return pin.Reader != "" && d.Reader == Reader(pin.Reader) && d.isOf(pin, now)
}

// Repeats reports whether events that come to a function out of order are repetitions: the
// word was given after it began, and is so new that what was applied before may come again.
func (d Drained) Repeats(pin owntable.Pin, now time.Time) bool {
	return d.Reader == Shard && d.isOf(pin, now) && now.Sub(d.At) < drainedLife
}

// isOf reports whether the word was given after the reader of a stream began, and not in the future.
func (d Drained) isOf(pin owntable.Pin, now time.Time) bool {
	return d.At.After(pin.Read) && d.At.Before(now.Add(drainedAhead))
}

// drained is the word by which a reader's streams can be taken over now.
func drained(pin owntable.Pin, now time.Time) Drained {
	if now.Before(pin.Read) {
		now = pin.Read
	}
	return Drained{Reader(pin.Reader), now.Truncate(time.Second).Add(time.Second)}
}
