package runner_test

import (
	"testing"

	"weir/internal/events"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// TestParkedBeforeBands says that a target opens that was parked before sums had bands:
// its queue holds amounts that no single accumulator can take up.
func TestParkedBeforeBands(t *testing.T) {
	m, err := loadText(t, `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {stars: number}}
derive:
  Movie.points: {sum: Rating.stars, to: {id: movie}}
`)
	must(t, err)
	h := newHarness(t, m)
	defer h.close()
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	must(t, h.write(`put films {"PK":"USER#a","SK":"RATING#1","type":"Rating","stars":4}`))
	must(t, h.settle(1))
	must(t, h.write(`ledger films {"PK":"MOVIE#1","SK":"METADATA"} {"q":2}`))
	movie := store.Ref{Table: "films", Key: store.Key{Partition: value.OfString("MOVIE#1"), Sort: value.OfString("METADATA")}}
	r, id := h.runner(nil), ""
	for i, amount := range []string{"1e125", "-1e125"} { // as the rating came and went
		id, err = r.KeepDead(t.Context(), runner.Dead{
			Kind: runner.DeadParked, Target: "films", Row: movie, Position: events.PositionOf(uint64(100 + i)),
			Adds: []projections.Add{{Target: movie, Field: "a:points", Amount: value.MustNumber(amount)}, {Target: movie, Field: "a:points", Amount: value.OfInt(1)}},
		})
		must(t, err)
	}
	if n, err := r.Retry(t.Context(), id); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if got := h.rows("films", "MOVIE#1"); got != `{"PK":"MOVIE#1","SK":"METADATA","points":6,"type":"Movie"}` {
		t.Error(got)
	}
}
