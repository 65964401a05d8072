package lambda

import (
	"slices"
	"strconv"
	"testing"

	"weir/internal/value"
)

// step is an event whose invocation comes to an end.
type step struct{ state, end string }

func after(steps ...step) lane {
	l := lane{}
	for _, s := range steps {
		if l.follows(s.state) {
			l = l.moved(s.state, s.end)
		}
		l.row = value.Item{}
	}
	return l
}

// TestLaneFollows: whatever a mapping may bring after these steps follows, and what
// only a parallelization factor brings does not.
func TestLaneFollows(t *testing.T) {
	for name, c := range map[string]struct {
		steps  []step
		states []string
		not    []string
	}{
		"nothing yet":                      {nil, []string{"", "5"}, nil},
		"one after the other":              {[]step{{"", "1"}, {"1", "2"}, {"2", "3"}}, []string{"", "2", "3"}, []string{"1", "4"}},
		"the first half after the whole":   {[]step{{"", "1"}, {"1", "4"}, {"1", "2"}}, []string{"1", "2", "4"}, []string{"3"}},
		"in portions":                      {[]step{{"", "1"}, {"1", "2"}, {"1", "3"}}, []string{"1", "2", "3"}, nil},
		"one that slept moves nothing":     {[]step{{"", "1"}, {"1", "2"}, {"2", "3"}, {"1", "2"}}, []string{"2", "3"}, []string{"1"}},
		"a long one that slept":            {[]step{{"", "1"}, {"1", "2"}, {"2", "3"}, {"1", "9"}}, []string{"2", "3"}, []string{"9"}},
		"a new window, and one that slept": {[]step{{"", "1"}, {"1", "2"}, {"", "3"}, {"1", "2"}}, []string{"", "1", "2", "3"}, []string{"9"}},
		"a window's first event, late":     {[]step{{"", "2"}, {"2", "3"}, {"", "9"}}, []string{"2", "3", "9"}, []string{"4"}},
		"parts, then the whole, late":      {[]step{{"", "4"}, {"", "1"}, {"", "2"}, {"1", "2"}, {"1", "9"}}, []string{"1", "2", "9"}, []string{"4"}},
		"parts go on, then the whole":      {[]step{{"", "4"}, {"", "1"}, {"1", "2"}, {"2", "3"}, {"1", "9"}}, []string{"1", "2", "3", "9"}, []string{"4"}},
		"two side by side":                 {[]step{{"", "1"}, {"", "2"}, {"1", "3"}}, []string{"1", "3"}, []string{"2"}},
		"another begins a window later":    {[]step{{"", "1"}, {"1", "3"}, {"", "2"}, {"3", "5"}}, []string{"3", "5"}, []string{"2"}},
	} {
		l := after(c.steps...)
		for _, s := range c.states {
			if !l.follows(s) {
				t.Errorf("%s: %q does not follow %q %q", name, s, l.from, l.answers)
			}
		}
		for _, s := range c.not {
			if l.follows(s) {
				t.Errorf("%s: %q follows %q %q", name, s, l.from, l.answers)
			}
		}
	}
}

// TestLaneIsBounded: an event that is tried for ever fills no row.
func TestLaneIsBounded(t *testing.T) {
	l := after(step{"", "1"})
	for n := range 1000 {
		l = l.moved("1", strconv.Itoa(5000-n))
	}
	if len(l.answers) != maxAnswers || !slices.Contains(l.ends(), "4001") {
		t.Errorf("%d ends", len(l.answers))
	}
}
