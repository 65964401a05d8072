package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// voted has a status with a bound beside a count and another status of the same row.
const voted = `model: films
tables:
  films: {key: [PK, SK]}
entities:
  Movie:
    where: {type: Movie}
    key: {PK: "MOVIE#{id}", SK: METADATA}
    attributes: {state: {type: string, enum: [new, seen, loved]}, by: string, mood: {type: string, enum: [calm, loud]}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {movie: string, stars: number, at: string}}
derive:
  Movie.ratings: {count: Rating, to: {id: movie}}
  Movie.mood: {steps: {loud: {when: Rating, to: {id: movie}, where: {stars: {atLeast: 9}}}}}
  Movie.state: {steps: {seen: {when: Rating, to: {id: movie}, max: 3, set: {by: at}}}}
`

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

// TestRetirementDies: a program that retires a derivation and ends before it has settled the letters about it leaves them to the
// next that begins, or that retires.
func TestRetirementDies(t *testing.T) {
	text := strings.Replace(films, "max: 100", "max: 2", 1)
	for _, again := range []string{"Retire", "SettleRetired"} {
		f := open(t, load(t, text))
		f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "one")
		for user := range 5 {
			f.write("PK", fmt.Sprint("USER#", user), "SK", "RATING#1", "type", "Rating", "movie", "1", "mood", fmt.Sprint("mood ", user))
		}
		f.catchUp()
		if n := len(f.dead()); n != 1 {
			t.Fatalf("%d letters", n)
		}
		f.with(load(t, strings.Replace(films, moods, "", 1)))
		if is, err := f.runner().Catalog.Retire(t.Context(), false); err != nil || len(is) != 1 { // and the program ends
			t.Fatal(is, err)
		}
		if n := len(f.dead()); n != 1 {
			t.Fatalf("%d letters of what is retired", n)
		}
		if again == "Retire" {
			f.retired()
		} else {
			f.ok(f.builder().SettleRetired(t.Context()))
		}
		if left := f.dead(); len(left) > 0 {
			t.Errorf("%s: %+v", again, left)
		}
		f.verified()
	}
}

func (f *fixture) theMovie() store.Ref {
	key, _ := f.model.Tables[0].KeyOf(value.NewItem(value.Attr{Name: "PK", Value: value.OfString("MOVIE#1")}, value.Attr{Name: "SK", Value: value.OfString("METADATA")}))
	return store.Ref{Table: f.table, Key: key}
}
