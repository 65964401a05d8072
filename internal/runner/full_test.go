package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/internal/book"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// films has a ledger that grows with what it counts.
const films = `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {stars: number, tag: string}}
derive:
  Movie.points: {sum: Rating.stars, to: {id: movie}}
  Movie.tags: {distinct: Rating.tag, to: {id: movie}, max: 1000}
`

var theMovie = store.Ref{Table: "films", Key: store.Key{Partition: value.OfString("MOVIE#1"), Sort: value.OfString("METADATA")}}

// newFilms is a harness with a movie that somebody rated 4.
func newFilms(t *testing.T, byItem bool) *harness {
	m, err := loadText(t, films)
	must(t, err)
	h := newHarness(t, m)
	h.byItem = byItem
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	h.rate("a", `"stars":4`)
	must(t, h.settle(1))
	return h
}

func (h *harness) rate(user, what string) {
	h.t.Helper()
	must(h.t, h.write(fmt.Sprintf(`put films {"PK":"USER#%s","SK":"RATING#1","type":"Rating",%s}`, user, what)))
}

func (h *harness) theLedger() value.Item {
	rows, err := h.store.Get(h.t.Context(), []store.Ref{book.Of("films", theMovie)})
	must(h.t, err)
	return rows[0]
}

// room fills the movie's ledger up to so many bytes; it empties one with as much room as
// a row has.
func (h *harness) room(bytes int) {
	h.t.Helper()
	w := store.Write{Ref: book.Of("films", theMovie), Ops: []store.Op{{Kind: store.Remove, Attr: "z"}}}
	if pad := store.MaxItemBytes - h.theLedger().With(value.Attr{Name: "z"}).Size() - len("z") - bytes; pad > 0 {
		w.Ops = []store.Op{{Kind: store.Set, Attr: "z", Value: value.OfString(strings.Repeat("x", pad))}}
	}
	out, err := h.store.Write(h.t.Context(), []store.Write{w})
	must(h.t, errors.Join(err, out[0].Err))
}

// bounded is a store that does so many writes.
type bounded struct {
	store.Store
	left int
}

var errTooOften = errors.New("it writes without end")

func (b *bounded) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if b.left--; b.left < 0 {
		return nil, errTooOften
	}
	return b.Store.Write(ctx, ws)
}

func (b *bounded) Transact(ctx context.Context, ws []store.Write) error {
	if b.left--; b.left < 0 {
		return errTooOften
	}
	return b.Store.Transact(ctx, ws)
}

// TestFullLedgerParks says that a change whose amounts a full ledger has no room for is
// parked, even where the ledger's digits belong in bands that there is no room for
// either, and that a retry of it ends.
func TestFullLedgerParks(t *testing.T) {
	for _, byItem := range []bool{false, true} {
		h := newFilms(t, byItem)
		defer h.close()
		must(t, h.write(`ledger films {"PK":"MOVIE#1","SK":"METADATA"} {"a:points":4.123456789}`)) // of before there were bands
		h.room(10)
		h.rate("b", `"stars":1,"tag":"one that is new"`)
		h.pull()
		few := &runner.Runner{Model: h.model, Store: &bounded{h.store, 30}, Now: h.now}
		b := h.batch(len(h.records))
		b.ByItem = byItem
		n, err := few.Rows(t.Context(), b)
		if err != nil || n.Kept != 1 {
			t.Fatal(byItem, n, err)
		}
		id := ""
		must(t, few.Dead(t.Context(), func(d runner.Dead) error { id = d.ID; return nil }))
		if _, err := few.Retry(t.Context(), id); !errors.Is(err, store.ErrRefused) {
			t.Fatal(byItem, err)
		}
		h.room(1000)
		if n, err := few.Retry(t.Context(), id); err != nil || n < 1 {
			t.Fatal(byItem, n, err)
		}
		if l := h.theLedger(); !l.Has("d:tags:one that is new") {
			t.Error(byItem, l)
		}
	}
}
