package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// newSpread is newTagged with tags that are a distinct.
func newSpread(t *testing.T) *harness {
	m, err := loadText(t, strings.ReplaceAll(tagged, ", max: $max", ""))
	failtest.On(t, err)
	h := newHarness(t, m)
	failtest.On(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	failtest.On(t, h.settle(1))
	return h
}

// values returns the rows of our table that count values.
func (h *harness) values() (out []value.Item) {
	h.t.Helper()
	for _, row := range h.scan(owntable.TableName) {
		if owntable.Kind(row.Get(owntable.Partition).Text()) == owntable.KindValue {
			out = append(out, row)
		}
	}
	return out
}

// holds fails unless so many rows count values, without those of moods, and verify finds nothing.
func (h *harness) holds(when string, values int) {
	h.t.Helper()
	tags := slices.DeleteFunc(h.values(), func(row value.Item) bool {
		return strings.HasPrefix(row.Get(owntable.Sort).Text(), owntable.ValuesOf("moods"))
	})
	if n := len(tags); n != values {
		h.t.Errorf("%s: %d rows count values, want %d", when, n, values)
	}
	if out := h.audit(); out != "" {
		h.t.Errorf("%s: %s", when, out)
	}
}

// TestSpread: a distinct has a row for each of its values, and the ledger their number,
// in whatever pieces and however often records come. Values that no row has any more leave nothing.
func TestSpread(t *testing.T) {
	h := newSpread(t)
	defer h.close()
	moved := func(i int) string { return strings.Replace(tagOf(i), `"tag":"0`, `"tag":"1`, 1) }
	same := func(i int) string { return strings.Replace(tagOf(0), "USER#0", fmt.Sprint("USER#", i), 1) }
	h.each(0, 250, tagOf)
	h.shows("once", 250, 250, 3)
	h.holds("once", 250)
	if size := h.theLedger().Size(); size > 1000 {
		t.Errorf("the ledger has %d bytes: %v", size, h.theLedger())
	}
	failtest.On(t, h.settle(1))
	failtest.On(t, h.settle(100))
	h.shows("come again", 250, 250, 3)
	h.holds("come again", 250)
	h.each(0, 200, moved)
	h.shows("moved", 250, 250, 3)
	h.holds("moved", 250)
	h.each(10, 250, same)
	h.shows("one value", 250, 11, 3)
	h.holds("one value", 11)
	h.each(0, 250, gone)
	h.shows("gone", 0, 0, 0)
	h.holds("gone", 0)
	if l := owntable.LedgerRow(h.theLedger()); !l.Empty() {
		t.Errorf("the ledger is not empty: %v", l)
	}
	h.letterOf("after all", "")
}

// TestMaxOfDistinct: a distinct with a max is not shown while it has more values, and is shown again
// with fewer. A group has such values too.
func TestMaxOfDistinct(t *testing.T) {
	h := newTagged(t, 20)
	defer h.close()
	h.each(0, 20, tagOf)
	h.shows("at max", 20, 20, 3)
	h.letterOf("at max", "")
	h.each(20, 70, tagOf)
	h.shows("above", 70, -1, 3)
	h.letterOf("above", "Movie.tags")
	h.each(20, 70, gone)
	h.shows("at max again", 20, 20, 3)
	h.letterOf("at max again", "")
	h.holds("at max again", 20)
}

// overtaken has something happen before its next transaction.
type overtaken struct {
	store.Store
	then func()
}

func (s *overtaken) Transact(ctx context.Context, ws []store.Write) error {
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	return s.Store.Transact(ctx, ws)
}

// TestSpreadTogether: two workers count one value at the same time, each after it has read that no row has
// it; and two take it away.
func TestSpreadTogether(t *testing.T) {
	h := newSpread(t)
	defer h.close()
	one := func(r *runner.Runner, i int) {
		b := h.batch(i)
		b.ShardKey = fmt.Sprint(b.ShardKey, i)
		_, err := r.ApplyRows(t.Context(), b)
		failtest.On(t, err)
	}
	for _, line := range []func(i int) string{func(i int) string {
		return fmt.Sprintf(`put films {"PK":"USER#%d","SK":"RATING#1","type":"Rating","stars":2,"mood":"m","tag":"same"}`, i)
	}, gone} {
		first := len(h.records) + 1
		failtest.On(t, h.write(line(1)))
		failtest.On(t, h.write(line(2)))
		h.pull()
		r := h.runner(nil)
		r.Store = &overtaken{h.store, func() { one(h.runner(nil), first+1) }}
		one(r, first)
		one(h.runner(nil), first)
		failtest.On(t, h.settle(len(h.records)+1))
		if line(1) == gone(1) {
			h.shows("gone", 0, 0, 0)
			h.holds("gone", 0)
			continue
		}
		h.shows("two", 2, 1, 1)
		h.holds("two", 1)
	}
}

// valued is the row of a value that counts so many rows.
func valued(row value.Item, rows int64) store.Write {
	own := owntable.Table()
	key, _ := own.KeyOf(row)
	for _, a := range row {
		if a.Value.Kind() == value.Number {
			row = row.With(value.Attr{Name: a.Name, Value: value.OfInt(rows)})
		}
	}
	return store.Write{Ref: store.Ref{Table: own.Name, Key: key}, Put: row}
}

// TestSpreadVerified: verify finds values that are wrong, missing or too many, and a number that is wrong.
func TestSpreadVerified(t *testing.T) {
	h := newSpread(t)
	defer h.close()
	h.each(0, 300, tagOf)
	ledger := owntable.Ledger("films", theMovie)
	var ws []store.Write
	for i, row := range h.values() {
		switch {
		case i < 200:
			ws = append(ws, store.Write{Ref: valued(row, 0).Ref, Delete: true})
		case i < 205:
			ws = append(ws, valued(row, 7))
		}
	}
	out, err := h.store.Write(t.Context(), ws)
	failtest.On(t, err)
	for i := range out {
		failtest.On(t, out[i].Err)
	}
	h.set(ledger, owntable.SumAccumulator("tags"), value.OfInt(9))
	if n := strings.Count(h.audit(), "\n") + 1; n < 206 {
		t.Errorf("verify finds %d differences, want 206: %.300s", n, h.audit())
	}
}

const spreadRounds = `
model: rounds
tables: {rounds: {key: [PK, SK]}}
entities:
  Round: {where: {type: Round}, key: {PK: "ROUND#{round}", SK: ABOUT}}
  Pick: {where: {type: Pick}, key: {PK: "PICK#{pick}", SK: PICK}, attributes: {round: string, at: number}}
derive:
  Round.n: {distinct: Pick.at}
`

// TestSpreadUnits: what a batch of new values costs does not depend on how many values there are.
func TestSpreadUnits(t *testing.T) {
	for _, values := range []int{10, 1000, 100_000, 1_000_000} {
		if testing.Short() && values > 1000 {
			continue
		}
		q := newTasksOf(t, spreadRounds, "rounds", "Round", "ROUND#r")
		q.picks(values, false)
		for _, c := range []struct{ batch, wrote, read int }{{1, 5, 2}, {100, 205, 102}} {
			wrote, read := q.meter.wrote.Load(), q.meter.read.Load()
			var come, leave []projections.Change
			for i := range c.batch {
				come = append(come, q.change(nil, pick(5_000_000+i)))
			}
			q.apply(q.runner, come...)
			units, reads := int(q.meter.wrote.Load()-wrote), int(q.meter.read.Load()-read)
			t.Logf("%d values, a batch of %d new ones: %d write units, %d read units", values, c.batch, units, reads)
			if units > c.wrote || reads > c.read {
				t.Errorf("%d values, a batch of %d: %d write units and %d read units, at most %d and %d", values, c.batch, units, reads, c.wrote, c.read)
			}
			for i := range c.batch {
				leave = append(leave, q.change(pick(5_000_000+i), nil))
			}
			q.apply(q.runner, leave...)
		}
		row, err := q.runner.GetRow(t.Context(), q.about)
		if failtest.On(t, err); !value.Equal(row.Get("n"), value.OfInt(int64(values))) {
			t.Errorf("it shows %s of %d values", row.Get("n").Text(), values)
		}
	}
}

// TestSpreadRetriedTogether: a retry whose values change between its reading and its transaction is
// done all the same, once.
func TestSpreadRetriedTogether(t *testing.T) {
	h := newSpread(t)
	defer h.close()
	h.each(0, 3, tagOf)
	ledger := owntable.Ledger("films", theMovie)
	sum := owntable.SumAccumulator("ratings")
	set := func(v value.Value) (was value.Value) {
		rows, err := h.store.Get(t.Context(), []store.Ref{ledger})
		failtest.On(t, err)
		out, err := h.store.Write(t.Context(), []store.Write{{Ref: ledger, Ops: []store.Op{store.Assign(sum, v)}}})
		failtest.On(t, err)
		failtest.On(t, out[0].Err)
		return rows[0].Get(sum)
	}
	was := set(value.OfString("no number")) // something else wrote it
	h.each(3, 4, func(int) string { return strings.Replace(tagOf(0), "USER#0", "USER#3", 1) })
	set(was)
	value0 := owntable.DistinctAmount("tags", fmt.Sprintf("%036d", 0))
	r := h.runner(nil)
	r.Store = &overtaken{h.store, func() {
		rows, err := h.store.Get(t.Context(), []store.Ref{owntable.ValueAt(ledger, value0)})
		failtest.On(t, err)
		out, err := h.store.Write(t.Context(), []store.Write{valued(rows[0], 5)})
		failtest.On(t, err)
		failtest.On(t, out[0].Err)
	}}
	for id := range h.letters() {
		failtest.On(t, r.RetryLetter(t.Context(), id))
	}
	rows, err := h.store.Get(t.Context(), []store.Ref{owntable.ValueAt(ledger, value0)})
	failtest.On(t, err)
	if _, n := owntable.ValueIn(rows[0]); !value.Equal(n, value.OfInt(6)) {
		t.Errorf("6 rows have the value, and %s are counted", n.Text())
	}
	h.letterOf("retried", "")
}
