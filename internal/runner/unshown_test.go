package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// films shows one tag and no more.
const films = `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {stars: number, tag: string}}
derive:
  Movie.points: {sum: Rating.stars, to: {id: movie}}
  Movie.tags: {distinct: Rating.tag, to: {id: movie}, max: 1}
`

var theMovie = store.Ref{Table: "films", Key: store.Key{Partition: value.OfString("MOVIE#1"), Sort: value.OfString("METADATA")}}

// newFilms is a harness with a movie that somebody rated 4.
func newFilms(t *testing.T) *harness {
	m, err := loadText(t, films)
	failtest.On(t, err)
	h := newHarness(t, m)
	failtest.On(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	h.rate("a", `"stars":4,"tag":"x"`)
	failtest.On(t, h.settle(1))
	return h
}

func (h *harness) rate(user, what string) {
	h.t.Helper()
	failtest.On(h.t, h.write(fmt.Sprintf(`put films {"PK":"USER#%s","SK":"RATING#1","type":"Rating",%s}`, user, what)))
}

func (h *harness) theLedger() value.Item {
	rows, err := h.store.Get(h.t.Context(), []store.Ref{owntable.Ledger("films", theMovie)})
	failtest.On(h.t, err)
	return rows[0]
}

// letters are the ids of the dead letters that stand, each with its reason.
func (h *harness) letters() map[string]string {
	out := map[string]string{}
	failtest.On(h.t, h.runner(nil).EachDeadLetter(h.t.Context(), func(d deadletter.Letter) error {
		out[d.ID] = string(d.Kind) + " " + d.Reason
		return nil
	}))
	return out
}

// says fails unless one letter says that the tags cannot be shown, or none does, and
// verify agrees.
func (h *harness) says(when string, cannot bool) {
	h.t.Helper()
	letters := h.letters()
	if len(letters) > 1 || (len(letters) == 1) != cannot {
		h.t.Fatalf("%s: letters %v", when, letters)
	}
	for line := range strings.Lines(h.audit()) {
		if !strings.HasPrefix(line, "Movie.tags of ") || !strings.Contains(line, "cannot be computed") {
			h.t.Errorf("%s: %s", when, line)
		}
	}
}

// TestUnshownUnderAnotherName says that a dead letter that was kept under another id,
// as when the model named the row otherwise, goes when another takes its place, and that
// a retry takes away one that was left behind.
func TestUnshownUnderAnotherName(t *testing.T) {
	h := newFilms(t)
	defer h.close()
	keep := func(source string) string {
		id, err := h.runner(nil).Letters().Keep(t.Context(), deadletter.Letter{Kind: deadletter.Number, Target: "as it was", Row: theMovie, Reason: "x", Source: source})
		failtest.On(t, err)
		return id
	}
	old := keep("of before")
	failtest.On(t, h.write(`ledger films {"PK":"MOVIE#1","SK":"METADATA"} {"u":"`+old+` cannot be computed: Movie.old"}`))
	from := len(h.records) + 1
	h.rate("b", `"stars":3,"tag":"y"`)
	failtest.On(t, h.settle(from))
	h.says("it gives another reason", true)
	left := keep("left behind")
	if err := h.runner(nil).RetryLetter(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	h.says("the one left behind is gone", true)
	from = len(h.records) + 1
	failtest.On(t, h.write(`delete films {"PK":"USER#b","SK":"RATING#1"}`))
	failtest.On(t, h.settle(from))
	h.says("all is well", false)
}
