package runner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/runner"
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
	must(t, err)
	h := newHarness(t, m)
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	must(t, h.settle(1))
	return h
}

// each writes something of users from..to, and delivers it.
func (h *harness) each(from, to int, line func(i int) string) {
	h.t.Helper()
	first := len(h.records) + 1
	for i := from; i < to; i++ {
		must(h.t, h.write(line(i)))
	}
	must(h.t, h.settle(first))
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
	must(h.t, err)
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
	case about != "" && (len(got) != 1 || !strings.HasPrefix(got[0], string(runner.DeadNumber)) || !strings.Contains(got[0], about)):
		h.t.Errorf("%s: dead letters %q, want one about %s", when, got, about)
	}
}

// TestValuesLeave: a value that no row has any more leaves the ledger, in whatever order and
// however often it came. 20,000 values pass through a ledger that holds 100 at a time.
func TestValuesLeave(t *testing.T) {
	h := newTagged(t, 500)
	defer h.close()
	all := 20_000
	if testing.Short() {
		all = 2000
	}
	for i := 0; i < all; i += 400 {
		h.each(i, i+400, tagOf)
		h.each(i, i+400, gone)
	}
	h.each(0, 3, tagOf)
	h.shows("after all", 3, 3, 3)
	h.letterOf("after all", "")
	if size := h.theLedger().Size(); size > 1000 {
		t.Errorf("the ledger has %d bytes after %d values, of which 3 are left: %v", size, all, h.theLedger())
	}
	if out := h.audit(); out != "" {
		t.Error(out)
	}
}

// TestMaxOfDistinct: with more values than max, the distinct alone is not shown, and a dead
// letter says so; with fewer it is shown again, also if its values had been dropped meanwhile
// and a repair counted them.
func TestMaxOfDistinct(t *testing.T) {
	h := newTagged(t, 20)
	defer h.close()
	h.each(0, 20, tagOf)
	h.shows("at max", 20, 20, 3)
	h.letterOf("at max", "")
	h.each(20, 21, tagOf)
	h.shows("above", 21, -1, 3)
	h.letterOf("above", "Movie.tags")
	h.each(20, 21, gone)
	h.shows("at max again", 20, 20, 3)
	h.letterOf("at max again", "")
	h.each(20, 300, tagOf)
	h.shows("far above", 300, -1, 3)
	h.letterOf("far above", "Movie.tags")
	h.each(300, 310, tagOf)
	if l := owntable.LedgerRow(h.theLedger()); !value.Item(l).Has(owntable.Dropped("tags")) || value.Item(l).Size() > 1000 {
		t.Errorf("its values are not dropped: %d bytes", value.Item(l).Size())
	}
	for line := range strings.Lines(h.audit()) {
		if !strings.Contains(line, "Movie.tags") || !strings.Contains(line, "cannot be computed") {
			t.Errorf("far above: %s", line)
		}
	}
	h.set(owntable.Ledger("films", theMovie), owntable.Sum("points"), value.OfInt(7))
	h.set(theMovie, "points", value.OfInt(7))
	h.repair()
	h.shows("repaired far above", 310, -1, 3)
	if l := h.theLedger(); !l.Has(owntable.Dropped("tags")) || l.Size() > 1000 {
		t.Errorf("a repair brought its values back: %d bytes", l.Size())
	}
	h.each(5, 310, gone)
	h.shows("few again", 5, -1, 3)
	h.letterOf("few again", "Movie.tags")
	h.repair()
	h.shows("repaired", 5, 5, 3)
	h.letterOf("repaired", "")
	if out := h.audit(); out != "" {
		t.Error(out)
	}
}

// TestDroppedComesBack: a distinct whose values were dropped is right again when no row has a value
// any more, without a repair, whatever was counted meanwhile: values that moved, rows that came and
// went, more of them than one write removes.
func TestDroppedComesBack(t *testing.T) {
	h := newTagged(t, 20)
	defer h.close()
	moved := func(i int) string { return strings.Replace(tagOf(i), `"tag":"0`, `"tag":"1`, 1) }
	untagged := func(i int) string {
		return fmt.Sprintf(`put films {"PK":"USER#%d","SK":"RATING#1","type":"Rating","stars":2,"mood":"m%d"}`, i, i%3)
	}
	h.each(0, 60, tagOf)
	h.each(60, 300, tagOf)
	h.each(0, 150, moved)
	h.each(250, 300, untagged)
	rows := func(want int64) {
		t.Helper()
		if l := h.theLedger(); !value.Equal(l.Get(owntable.DroppedRows("tags")), value.OfInt(want)) || l.Size() > 1000 {
			t.Fatalf("the ledger says %v rows, want %d; it has %d bytes", l.Get(owntable.DroppedRows("tags")), want, l.Size())
		}
	}
	rows(250)
	h.each(1, 300, gone)
	h.shows("one is left", 1, -1, 1)
	h.letterOf("one is left", "Movie.tags")
	rows(1)
	h.each(0, 1, untagged)
	h.shows("none has a tag", 1, 0, 1)
	h.letterOf("none has a tag", "")
	h.each(0, 3, tagOf)
	h.shows("counted again", 3, 3, 3)
	h.each(0, 3, gone)
	if l := owntable.LedgerRow(h.theLedger()); !l.Empty() {
		t.Errorf("the ledger is not empty: %v", l)
	}
	if out := h.audit(); out != "" {
		t.Error(out)
	}
}

// TestDroppedByAnOlderWeir: a ledger that does not say how many rows have a value waits for a repair.
func TestDroppedByAnOlderWeir(t *testing.T) {
	h := newTagged(t, 20)
	defer h.close()
	h.each(0, 60, tagOf)
	out, err := h.store.Write(t.Context(), []store.Write{{
		Ref: owntable.Ledger("films", theMovie), Ops: []store.Op{store.Assign(owntable.DroppedRows("tags"), value.Value{})},
	}})
	must(t, err)
	must(t, out[0].Err)
	h.each(1, 60, gone)
	h.each(0, 1, gone)
	h.shows("none is left", 0, -1, 0)
	h.each(0, 60, tagOf)
	for line := range strings.Lines(h.audit()) {
		if !strings.Contains(line, "cannot be computed") {
			t.Errorf("far above: %s", line)
		}
	}
	h.repair()
	h.each(1, 60, gone)
	h.repair()
	h.shows("repaired", 1, 1, 1)
	h.letterOf("repaired", "")
}

// TestDistinctFillsLedger: a distinct whose values have no room in a row is dropped alone;
// everything else of the row goes on, and nothing is parked.
func TestDistinctFillsLedger(t *testing.T) {
	h := newTagged(t, 5000)
	defer h.close()
	for i := 0; i < 600; i += 100 {
		h.each(i, i+100, func(i int) string {
			return fmt.Sprintf(`put films {"PK":"USER#%d","SK":"RATING#1","type":"Rating","stars":2,"mood":"m%d","tag":"%0900d"}`, i, i%3, i)
		})
	}
	h.shows("full", 600, -1, 3)
	h.letterOf("full", "Movie.tags")
	h.each(100, 200, gone)
	h.shows("some gone", 500, -1, 3)
	if l := h.theLedger(); !l.Has(owntable.Dropped("tags")) || l.Size() > 100_000 {
		t.Errorf("its values are not dropped: %d bytes", l.Size())
	}
}

// TestDroppedMeanwhile: values are dropped only from a ledger that is as it was read.
func TestDroppedMeanwhile(t *testing.T) {
	h := newTagged(t, 20)
	defer h.close()
	h.each(0, 20, tagOf)
	was := owntable.LedgerRow(h.theLedger())
	w, err := was.DropValues(owntable.Ledger("films", theMovie), "tags", value.OfInt(1))
	must(t, err)
	zero, ok := was.ForgetValues(owntable.Ledger("films", theMovie), "tags")
	if ok {
		t.Errorf("it forgets values that rows have: %v", zero)
	}
	replaced := func(what string, w store.Write) {
		t.Helper()
		out, err := h.store.Write(t.Context(), []store.Write{w})
		must(t, err)
		if !errors.Is(out[0].Err, store.ErrCondition) {
			t.Errorf("a ledger is replaced although %s: %v", what, out[0].Err)
		}
	}
	h.each(20, 21, func(int) string {
		return strings.Replace(tagOf(0), "USER#0", "USER#20", 1)
	})
	replaced("something was counted", w)
	w, err = owntable.LedgerRow(h.theLedger()).DropValues(owntable.Ledger("films", theMovie), "tags", value.OfInt(1))
	must(t, err)
	h.set(owntable.Ledger("films", theMovie), owntable.Parked, value.OfInt(1))
	replaced("an effect was parked", w)
	h.set(owntable.Ledger("films", theMovie), owntable.Parked, value.OfInt(0))
	h.shows("after all", 21, 20, 3)
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
	must(t, err)
	h := newHarness(t, m)
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	must(t, h.settle(1))
	h.each(0, 6, func(i int) string {
		return fmt.Sprintf(`put films {"PK":"USER#%d","SK":"RATING#1","type":"Rating","tag":"y:%d","mood":"%d"}`, i, i%2, i%3)
	})
	movie, err := store.GetRow(t.Context(), h.store, theMovie)
	must(t, err)
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
