package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
)

// TestLetterWithoutTarget: what a ledger holds too much of to be shown is said by a dead letter also
// while the target row does not exist, whether the stream or a build counted it, and whether the row
// has a status. The letter goes with its cause.
func TestLetterWithoutTarget(t *testing.T) {
	for name, text := range map[string]string{
		"tallies": strings.Replace(films, "max: 100", "max: 2", 1),
		"status":  strings.Replace(voted, "  Movie.mood:", "  Movie.moods: {distinct: Rating.at, to: {id: movie}, max: 2}\n  Movie.mood:", 1),
	} {
		t.Run(name, func(t *testing.T) { letterWithoutTarget(t, text) })
	}
}

func letterWithoutTarget(t *testing.T, text string) {
	f := open(t, load(t, text))
	rate := func(user int) {
		f.write("PK", fmt.Sprint("USER#", user), "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", 1, "at", fmt.Sprint("at ", user), "mood", fmt.Sprint("mood ", user))
	}
	letters := func(when string, want int) {
		t.Helper()
		if dead := f.dead(); len(dead) != want {
			t.Errorf("%s: dead letters %+v, want %d", when, dead, want)
		}
		f.verified()
	}
	for user := range 5 {
		rate(user)
	}
	f.unread()
	f.unbuilt()
	f.build(owntable.BuildLive, "Movie")
	letters("built without its target", 1)
	f.clock.Add(25)
	f.catchUp()
	f.build(owntable.BuildVerified, "Movie")
	letters("audited", 1)
	for user := range 3 {
		f.write("PK", fmt.Sprint("USER#", user), "SK", "RATING#1")
	}
	f.catchUp()
	letters("below its max", 0)
}
