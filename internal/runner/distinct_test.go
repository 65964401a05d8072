package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// tagged has a distinct with a small bound beside other tallies.
const tagged = `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {stars: number, tag: string, mood: string}}
derive:
  Movie.points: {sum: Rating.stars, to: {id: movie}}
  Movie.ratings: {count: Rating, to: {id: movie}}
  Movie.tags: {distinct: Rating.tag, to: {id: movie}, max: $max}
  Movie.moods: {distinct: Rating.mood, to: {id: movie}, max: 5000}
`

func newTagged(t *testing.T, most int) *harness {
	m, err := loadText(t, strings.ReplaceAll(tagged, "$max", fmt.Sprint(most)))
	failtest.On(t, err)
	h := newHarness(t, m)
	failtest.On(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	failtest.On(t, h.settle(1))
	return h
}

// each writes something of users from..to, and delivers it.
func (h *harness) each(from, to int, line func(i int) string) {
	h.t.Helper()
	first := len(h.records) + 1
	for i := from; i < to; i++ {
		failtest.On(h.t, h.write(line(i)))
	}
	failtest.On(h.t, h.settle(first))
}

func tagOf(i int) string {
	return fmt.Sprintf(`put films {"PK":"USER#%d","SK":"RATING#1","type":"Rating","stars":2,"mood":"m%d","tag":"%036d"}`, i, i%3, i)
}

func gone(i int) string {
	return fmt.Sprintf(`delete films {"PK":"USER#%d","SK":"RATING#1"}`, i)
}

// shows fails unless the movie shows these values; tags < 0 stands for none.
func (h *harness) shows(when string, ratings, tags, moods int) {
	h.t.Helper()
	rows, err := h.store.Get(h.t.Context(), []store.Ref{theMovie})
	failtest.On(h.t, err)
	is := func(name string, want int) {
		h.t.Helper()
		v := value.OfInt(int64(want))
		if want < 0 {
			v = value.Value{}
		}
		if got := rows[0].Get(name); !value.Equal(got, v) {
			h.t.Errorf("%s: %s is %v, want %v", when, name, got, v)
		}
	}
	is("points", 2*ratings)
	is("ratings", ratings)
	is("tags", tags)
	is("moods", moods)
}

// letterOf fails unless there is one dead letter, or none.
func (h *harness) letterOf(when string, about string) {
	h.t.Helper()
	var got []string
	for _, l := range h.letters() {
		got = append(got, l)
	}
	switch {
	case about == "" && len(got) > 0:
		h.t.Errorf("%s: dead letters %q", when, got)
	case about != "" && (len(got) != 1 || !strings.HasPrefix(got[0], string(deadletter.Number)) || !strings.Contains(got[0], about)):
		h.t.Errorf("%s: dead letters %q, want one about %s", when, got, about)
	}
}

// colons has distincts of which one name begins with another and a colon, as does a value of theirs.
const colons = `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {tag: string, mood: string}}
derive:
  Movie.x: {distinct: Rating.tag, to: {id: movie}, max: 10}
  "Movie.x:y": {distinct: Rating.mood, to: {id: movie}, max: 10}
  "Movie.x%3Ay": {distinct: Rating.tag, to: {id: movie}, max: 10}
`

// TestDistinctsOfLikeNames: the values of an attribute are not taken for those of another whose name begins with its name.
func TestDistinctsOfLikeNames(t *testing.T) {
	m, err := loadText(t, colons)
	failtest.On(t, err)
	h := newHarness(t, m)
	failtest.On(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	failtest.On(t, h.settle(1))
	h.each(0, 6, func(i int) string {
		return fmt.Sprintf(`put films {"PK":"USER#%d","SK":"RATING#1","type":"Rating","tag":"y:%d","mood":"%d"}`, i, i%2, i%3)
	})
	movie, err := store.GetRow(t.Context(), h.store, theMovie)
	failtest.On(t, err)
	if x, y, z := movie.Get("x").Text(), movie.Get("x:y").Text(), movie.Get("x%3Ay").Text(); x != "2" || y != "3" || z != "2" {
		t.Errorf("it shows %s, %s and %s, not 2, 3 and 2", x, y, z)
	}
	if out := h.audit(); out != "" {
		t.Error(out)
	}
	h.each(0, 6, func(i int) string { return gone(i) })
	if movie, err = store.GetRow(t.Context(), h.store, theMovie); err != nil || movie.Get("x").Text() != "0" || movie.Get("x:y").Text() != "0" || movie.Get("x%3Ay").Text() != "0" {
		t.Errorf("without ratings it shows %v, %v", movie, err)
	}
	h.close()
}
