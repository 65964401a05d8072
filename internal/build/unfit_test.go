package build_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/owntable"
)

// TestUnfitRows: a build says how many rows some derivation of it cannot use, of which the stream would make
// dead letters: while it runs and afterwards, and after its audit reads them again.
func TestUnfitRows(t *testing.T) { unfitRows(open(t, load(t, unfitModel))) }

// TestUnfitRowsOnDynamoDB is the same on DynamoDB Local.
func TestUnfitRowsOnDynamoDB(t *testing.T) { unfitRows(openOnDynamoDB(t, load(t, unfitModel))) }

const unfitModel = unitEntities + `derive:
  Movie.total: {sum: Rating.stars}
  Movie.most: {max: Rating.mood}
`

func unfitRows(f *fixture) {
	f.Helper()
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "T", "state", "open")
	f.write("PK", "MOVIE#1", "SK", "RATING#1", "type", "Rating", "stars", 1, "mood", "a")
	f.write("PK", "MOVIE#1", "SK", "RATING#2", "type", "Rating", "stars", "two", "mood", "b")
	f.write("PK", "MOVIE#1", "SK", "RATING#3", "type", "Rating", "stars", 3, "mood", strings.Repeat("c", 40_000))
	f.write("PK", "MOVIE#1", "SK", "RATING#4", "type", "Rating", "stars", "four", "mood", strings.Repeat("d", 40_000))
	f.unread()
	f.unbuilt()
	said := f.builder(allNames(f.model)...)
	dry, err := said.Estimate(f.Context())
	f.ok(err)
	f.unfit("built", dry.Unfit, owntable.BuildLive)
	f.clock.Add(25)
	f.unfit("audited", dry.Unfit, owntable.BuildVerified)
}

// unfit builds, and looks at what is said of the rows that cannot be used.
func (f *fixture) unfit(when string, dry int64, to owntable.BuildState) {
	f.Helper()
	b := f.builder(allNames(f.model)...)
	_, err := b.Run(f.Context())
	f.ok(err)
	if n := b.Done().Unfit; n != 3 || dry != 3 {
		f.Errorf("%s: %d rows cannot be used, and the dry run said %d, want 3", when, n, dry)
	}
	var named []string
	for _, is := range b.UnfitRows("Movie") {
		named = append(named, is.Derivation+" of "+is.Row+": "+is.Why)
	}
	want := []string{
		`Movie.most of NAME {"PK":"MOVIE#1","SK":"RATING#3"}: mood is no value by which rows have an order: it must be a text of at most 250 bytes`,
		`Movie.total of NAME {"PK":"MOVIE#1","SK":"RATING#2"}: stars is the string "two", not a number`,
		`Movie.total of NAME {"PK":"MOVIE#1","SK":"RATING#4"}: stars is the string "four", not a number`,
	}
	for i := range want {
		want[i] = strings.Replace(want[i], "NAME", f.table, 1)
	}
	if !slices.Equal(named, want) || !slices.Equal(b.UnfitRows(""), b.UnfitRows("Movie")) || len(b.UnfitRows("Other")) > 0 {
		f.Errorf("%s: left out are %q, want %q", when, named, want)
	}
	if to != owntable.BuildLive {
		return
	}
	states, err := b.States(f.Context())
	f.ok(err)
	if len(states) != 1 || states[0].Unfit != 3 {
		f.Errorf("%s: the builds say %+v", when, states)
	}
}

// TestUnfitRowsAreBounded: a builder names the first ten of any number of rows, in whatever order it meets them.
func TestUnfitRowsAreBounded(t *testing.T) {
	f := open(t, load(t, unfitModel))
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "T", "state", "open")
	for i := range 40 {
		f.write("PK", fmt.Sprintf("MOVIE#%02d", i), "SK", "RATING#1", "type", "Rating", "stars", "none", "mood", "a")
	}
	f.unread()
	f.unbuilt()
	b := f.builder(allNames(f.model)...)
	dry, err := b.Estimate(t.Context())
	f.ok(err)
	some := b.UnfitRows("")
	if dry.Unfit != 40 || len(some) != 10 {
		t.Fatalf("%d rows cannot be used, and %d are named", dry.Unfit, len(some))
	}
	for i := range some {
		if want := fmt.Sprintf(`"MOVIE#%02d"`, i); !strings.Contains(some[i].Row, want) {
			t.Errorf("%s is named, want %s", some[i].Row, want)
		}
	}
	_, err = b.Run(t.Context())
	f.ok(err)
	if again := b.UnfitRows(""); !slices.Equal(again, some) {
		t.Errorf("after they were read again: %v", again)
	}
}

// TestUnfitHides: what a build says of a row that it cannot use does not tell a hidden value, nor what is computed from one.
func TestUnfitHides(t *testing.T) {
	f := open(t, load(t, `model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}, attributes: {spent: {type: number, hidden: true}}}
  Sum: {where: {type: Sum}, key: {PK: "SUM#{id}", SK: ALL}, attributes: {spent: {type: number, hidden: true}}}
  Sale:
    where: {type: Sale}
    key: {PK: "MOVIE#{id}", SK: "SALE#{nr}"}
    attributes: {pieces: number, cost: {type: number, hidden: true}}
derive:
  Sum: {group: Sale, by: {id: id}, set: {spent: {sum: cost * pieces}}}
`))
	f.write("PK", "MOVIE#1", "SK", "SALE#1", "type", "Sale", "pieces", 900_000_000, "cost", 4711)
	f.unread()
	f.unbuilt()
	b := f.builder(allNames(f.model)...)
	_, err := b.Run(t.Context())
	f.ok(err)
	if all := b.UnfitRows(""); len(all) != 1 || !strings.Contains(all[0].Why, "cost * pieces is the number (hidden), not") {
		t.Errorf("%+v", all)
	}
}
