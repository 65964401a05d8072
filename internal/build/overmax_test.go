package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/repair"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/verify"
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

// TestOverMax: a status with more rows than its max is left out of its row, and a dead letter
// says so. Everything else of the row goes on, beside the stream, in a build and after it; and
// the status comes back by itself.
func TestOverMax(t *testing.T) { open(t, load(t, voted)).overMax() }

// TestOverMaxOnDynamoDB is the same on DynamoDB.
func TestOverMaxOnDynamoDB(t *testing.T) { openOnDynamoDB(t, load(t, voted)).overMax() }

func (f *fixture) overMax() {
	vote := func(user, stars int) {
		f.write("PK", fmt.Sprint("USER#", user), "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", stars, "at", fmt.Sprint("a", user))
	}
	unvote := func(user int) { f.write("PK", fmt.Sprint("USER#", user), "SK", "RATING#1") }
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "state", "new")
	f.read()
	for user := range 4 {
		vote(user, 1)
	}
	f.catchUp()
	f.votes("over its max", 4, "", "", true)
	vote(4, 9)
	f.catchUp()
	f.votes("and goes on", 5, "", "loud", true)

	f.build(owntable.BuildLive, "Movie")
	f.catchUp()
	f.votes("built", 5, "", "loud", true)
	vote(5, 9)
	f.catchUp()
	f.votes("after the build", 6, "", "loud", true)
	for user := range 3 {
		unvote(user)
	}
	f.catchUp()
	f.votes("below its max", 3, "a5", "loud", false)
	vote(1, 9)
	f.catchUp()
	f.votes("over it again", 4, "", "loud", true)

	// What is spoilt by hand is put right, and so is what the ledger notes of the letter.
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "state", "loved", "ratings", 77, "by", "me", "weir", 1<<40)
	ledger := owntable.Ledger(owntable.Build{Generation: 1}.Ledgers(f.model.Name), f.theMovie())
	out, err := f.Store.Write(f.Context(), []store.Write{{Ref: ledger, Ops: []store.Op{store.Assign(owntable.Unmoved, value.Value{})}}})
	f.ok(err)
	f.ok(out[0].Err)
	r := repair.Repair{Verify: f.Verify(f.Models[0]), Runner: f.runner(), NoCounts: true, Yield: func(verify.Difference) {}}
	left, _, err := r.Run(f.Context())
	f.ok(err)
	for _, l := range left {
		f.Errorf("left: %+v", l)
	}
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "state", "new")
	f.catchUp()
	f.votes("repaired", 4, "", "loud", true)
	for _, d := range f.dead() {
		if _, err := f.runner().Retry(f.Context(), d.ID); err == nil {
			f.Errorf("a retry of %s in vain says nothing", d.ID)
		}
	}
	f.write("PK", "MOVIE#1", "SK", "METADATA")
	f.catchUp()
	if dead := f.dead(); len(dead) > 0 {
		f.Errorf("the movie is gone: dead letters %+v", dead)
	}
	f.verified()
}

func (f *fixture) theMovie() store.Ref {
	key, _ := f.model.Tables[0].KeyOf(value.NewItem(value.Attr{Name: "PK", Value: value.OfString("MOVIE#1")}, value.Attr{Name: "SK", Value: value.OfString("METADATA")}))
	return store.Ref{Table: f.table, Key: key}
}

// votes expects what the movie shows, and its dead letter while it is over its max.
func (f *fixture) votes(when string, ratings int, by, mood string, over bool) {
	f.Helper()
	rows, err := f.Store.Get(f.Context(), []store.Ref{f.theMovie()})
	f.ok(err)
	got := fmt.Sprint(rows[0].Get("ratings").Text(), rows[0].Get("state").Text(), rows[0].Get("by").Text(), rows[0].Get("mood").Text())
	if want := fmt.Sprint(ratings, "seen", by, mood); got != want {
		f.Errorf("%s: the movie shows %s, should be %s", when, got, want)
	}
	dead := f.dead()
	switch {
	case !over && len(dead) > 0:
		f.Errorf("%s: dead letters %+v", when, dead)
	case over && (len(dead) != 1 || dead[0].Kind != runner.DeadStatus || !strings.Contains(dead[0].Reason, "Movie.state seen")):
		f.Errorf("%s: dead letters %+v, want one about Movie.state", when, dead)
	}
	f.verified()
}
