package build_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/internal/build"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/value"
)

// logged is films with two histories: one has an entry for each change, the other one for each rating.
var logged = strings.NewReplacer("derive:\n", `  Log: {where: {type: Log}, key: {PK: "LOG#{movie}", SK: "{position}"}, attributes: {event: string, stars: number, title: string, at: string}}
  First: {where: {type: First}, key: {PK: "FIRST#{user}", SK: "{nr}"}, attributes: {mood: string}}
derive:
  Log:
    row: Rating
    keep: [insert, modify, remove]
    set: {movie: movie, position: $position, event: $event, stars: stars, at: $time, title: {follow: Movie.title, by: {id: movie}, keep: true}}
  First: {row: Rating, keep: [insert], set: {user: user, nr: nr, mood: mood}}
`).Replace(films)

// rates writes a rating; without a mood it is removed.
func (f *fixture) rates(nr, stars int, mood string) {
	if attrs := []any{"PK", "USER#1", "SK", fmt.Sprint("RATING#", nr)}; mood == "" {
		f.write(attrs...)
	} else {
		f.write(append(attrs, "type", "Rating", "movie", "1", "stars", stars, "mood", mood)...)
	}
}

// entries are what the histories have, without positions.
func (f *fixture) entries() (out []string) {
	f.Helper()
	for _, row := range f.rows(f.table) {
		switch row.Get("type").Text() {
		case "Log":
			out = append(out, fmt.Sprint("log ", row.Get("event").Text(), " ", row.Get("stars").Text(), " ", row.Get("title").Text()))
		case "First":
			out = append(out, fmt.Sprint("first ", row.Get("SK").Text(), " ", row.Get("mood").Text()))
		}
	}
	slices.Sort(out)
	return out
}

// recorded is what the streams have, as changes of a recording.
func (f *fixture) recorded() (out []projections.Change) {
	f.Helper()
	shards, err := f.Store.Shards(f.Context(), f.table)
	f.ok(err)
	for _, s := range shards {
		page, err := f.Store.Read(f.Context(), f.table, s.ID, events.Position{}, 1<<20)
		f.ok(err)
		for i := range page.Records {
			c, _ := projections.NewChange(f.model.Tables[0], &page.Records[i])
			out = append(out, c)
		}
	}
	return out
}

// recording puts what changes lead to, and returns how much of each history was put and was there.
func (f *fixture) recording(dry bool, changes ...projections.Change) (put, there int64) {
	f.Helper()
	x, err := f.builder().Recording(nil)
	f.ok(err)
	x.Dry = dry
	f.ok(x.Begin(f.Context()))
	f.ok(x.PutChanges(f.Context(), changes))
	for _, of := range x.Of {
		put, there = put+of.Put, there+of.There
	}
	return put, there
}

func (f *fixture) historyFromRecordings(later *model.Model) {
	t := f.TB
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "One")
	f.rates(1, 3, "glad")
	f.rates(1, 4, "glad")
	f.rates(2, 5, "sad")
	f.rates(1, 0, "")
	f.rates(1, 1, "cross")
	f.catchUp()
	f.with(later)
	before := f.recorded()
	f.build(owntable.BuildLive, model.BuildInPlace) // from now on it is kept
	f.rates(2, 2, "sad")
	f.rates(3, 3, "calm")
	f.catchUp()
	kept := []string{"first 3 calm", "log INSERT 3 One", "log MODIFY 2 One"}
	if got := f.entries(); !slices.Equal(got, kept) {
		t.Fatalf("kept from the stream: %q", got)
	}
	all := slices.Concat(before, f.recorded())
	want := []string{
		"first 1 cross", "first 2 sad", "first 3 calm",
		"log INSERT 1 One", "log INSERT 3 One", "log INSERT 3 One", "log INSERT 5 One", "log MODIFY 2 One", "log MODIFY 4 One", "log REMOVE 4 One",
	}
	if put, _ := f.recording(true, all...); put != 7 {
		t.Errorf("a dry run would put %d", put)
	}
	if got := f.entries(); !slices.Equal(got, kept) {
		t.Fatalf("after a dry run: %q", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2 { // in any order, in any pieces, more than once, in part
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for piece := range slices.Chunk(all[:len(all)*2/3], 1+r.IntN(5)) {
			f.recording(false, piece...)
		}
	}
	f.recording(false, all...)
	if got := f.entries(); !slices.Equal(got, want) {
		t.Errorf("with recordings:\n%q, want\n%q", got, want)
	}
	if put, there := f.recording(false, all...); put != 0 || there != int64(len(want)) {
		t.Errorf("a second time %d are put, %d were there", put, there)
	}
	for _, row := range f.rows(f.table) {
		if row.Get("type").Text() == "Log" && row.Get(owntable.Version).Kind() != value.Binary {
			t.Errorf("an entry is not marked as weir's: %v", row)
		}
	}
	f.catchUp()
	f.verified()
	if got := f.entries(); !slices.Equal(got, want) {
		t.Errorf("when the stream has told of them: %q", got)
	}
	// What the stream says is newer than any recording, and followed values reach the entries.
	f.rates(1, 0, "")
	f.rates(1, 5, "glad again")
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "Two")
	f.catchUp()
	f.recording(false, all...)
	got := f.entries()
	if !slices.Contains(got, "first 1 glad again") || slices.ContainsFunc(got, func(e string) bool { return strings.HasSuffix(e, "One") }) || len(got) != len(want)+2 {
		t.Errorf("later: %q", got)
	}
}

// TestHistoryFromRecordings: recordings of the stream fill a history that began later. Each record leads to the
// entry that weir itself would have made, once.
func TestHistoryFromRecordings(t *testing.T) {
	open(t, load(t, films)).historyFromRecordings(load(t, logged))
}

// TestHistoryFromRecordingsOnDynamoDB is the same on DynamoDB Local.
func TestHistoryFromRecordingsOnDynamoDB(t *testing.T) {
	openOnDynamoDB(t, load(t, films)).historyFromRecordings(load(t, logged))
}

// TestNotFromRecordings: what a recording does not tell is refused, and an entry of another program stays.
func TestNotFromRecordings(t *testing.T) {
	f := open(t, load(t, mixed))
	for name, says := range map[string]string{"Told": "who subscribed", "Task.votes": "not history", "None": "not history"} {
		if _, err := f.builder().Recording([]string{name}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := open(t, load(t, films)).builder().Recording(nil); err == nil || !strings.Contains(err.Error(), "no history") {
		t.Error(err)
	}
	f = open(t, load(t, logged))
	f.rates(1, 3, "glad")
	c := f.recorded()[0]
	f.write("PK", "FIRST#1", "SK", "1", "type", "First", "mood", "mine")
	x, err := f.builder().Recording([]string{"First"})
	f.ok(err)
	f.ok(x.Begin(t.Context()))
	none := c
	none.Position = events.Position{}
	if err := x.PutChanges(t.Context(), []projections.Change{none}); err == nil || !strings.Contains(err.Error(), "no sequence number") {
		t.Error(err)
	}
	f.ok(x.PutChanges(t.Context(), []projections.Change{c}))
	if of := maps.Collect(maps.All(x.Of)); len(of) != 1 || *of["First"] != (build.Recorded{There: 1, Since: of["First"].Since}) {
		t.Errorf("%+v", of["First"])
	}
	if got := f.entries(); !slices.Equal(got, []string{"first 1 mine"}) {
		t.Errorf("%q", got)
	}
	// Numbers of another stream are above those of this one, and say nothing about them.
	f.rates(7, 1, "live")
	other := f.recorded()
	recorded := other[len(other)-1]
	recorded.New = recorded.New.With(value.Attr{Name: "mood", Value: value.OfString("recorded")})
	recorded.Position = events.PositionOf(1 << 62)
	f.ok(x.PutChanges(t.Context(), []projections.Change{recorded}))
	if got := f.entries(); !slices.Contains(got, "first 7 recorded") {
		t.Errorf("%q", got)
	}
	f.catchUp()
	f.ok(x.PutChanges(t.Context(), []projections.Change{recorded}))
	if got := f.entries(); !slices.Contains(got, "first 7 live") {
		t.Errorf("%q", got)
	}
}
