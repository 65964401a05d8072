package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/repair"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/verify"
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
func newFilms(t *testing.T) *harness {
	m, err := loadText(t, films)
	must(t, err)
	h := newHarness(t, m)
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
	rows, err := h.store.Get(h.t.Context(), []store.Ref{owntable.Ledger("films", theMovie)})
	must(h.t, err)
	return rows[0]
}

// room fills the movie's ledger up to so many bytes; it empties one with as much room as
// a row has.
func (h *harness) room(bytes int) {
	h.t.Helper()
	w := store.Write{Ref: owntable.Ledger("films", theMovie), Ops: []store.Op{{Kind: store.Remove, Attr: "z"}}}
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
	h := newFilms(t)
	defer h.close()
	must(t, h.write(`ledger films {"PK":"MOVIE#1","SK":"METADATA"} {"a:points":4.123456789}`)) // of before there were bands
	h.room(10)
	h.rate("b", `"stars":1,"tag":"one that is new"`)
	h.pull()
	few := &runner.Runner{Kinds: kinds.All(), Model: h.model, Store: &bounded{h.store, 30}, Now: h.now}
	b := h.batch(len(h.records))
	n, err := few.Rows(t.Context(), b)
	if err != nil || n.Dead != 1 {
		t.Fatal(n, err)
	}
	id := ""
	must(t, few.Dead(t.Context(), func(d runner.Dead) error { id = d.ID; return nil }))
	if _, err := few.Retry(t.Context(), id); !errors.Is(err, store.ErrRefused) {
		t.Fatal(err)
	}
	h.room(1000)
	if n, err := few.Retry(t.Context(), id); err != nil || n < 1 {
		t.Fatal(n, err)
	}
	if l := h.theLedger(); !l.Has("d:tags:one that is new") {
		t.Error(l)
	}
}

// brim fills the movie's ledger to the last byte: a fifth with what it counts, so that no
// distinct is dropped for it.
func (h *harness) brim() {
	h.t.Helper()
	h.room(store.MaxItemBytes / 5)
	n := 0
	tag := func(size int) {
		h.rate(fmt.Sprintf("brim%d", n), fmt.Sprintf(`"tag":"%04d%s"`, n, strings.Repeat("t", size-4)))
		n++
	}
	const most, name = 1024, len("d:tags:") + 2 // of a tag, and what stands beside it
	for room := store.MaxItemBytes - h.theLedger().Size(); room > 0; room = store.MaxItemBytes - h.theLedger().Size() {
		from := len(h.records) + 1
		for ; room > 2*(most+name); room -= most + name {
			tag(most)
		}
		tag(min(room-name, most-100))
		must(h.t, h.settle(from))
		if n > 500 {
			h.t.Fatal(room, h.letters())
		}
	}
}

// TestLedgerFullToTheBrim says that parking needs no room in a ledger: of one that has
// none, of whichever shard the changes are and however often they come, they are parked,
// and ledger and queue together hold what there is. A retry makes all right once there is
// room, also if that comes from rows that were deleted since. So do discards and a repair.
func TestLedgerFullToTheBrim(t *testing.T) {
	for _, then := range []string{"room", "deletions", "discards"} {
		t.Run(then, func(t *testing.T) {
			h := newFilms(t)
			defer h.close()
			if then == "room" {
				from := len(h.records) + 1
				for i := range 30 {
					h.rate(fmt.Sprintf("before%d", i), fmt.Sprintf(`"tag":"%d %s"`, i, strings.Repeat("t", 500)))
				}
				must(t, h.settle(from))
				h.room(0)
			} else {
				h.brim()
			}
			shown, r := h.rows("films", "MOVIE#1"), h.runner(nil)
			h.parkMany(r, 60)
			if now := h.rows("films", "MOVIE#1"); now != shown {
				t.Error("the row shows another value while its target is parked")
			}
			switch then {
			case "room":
				h.room(store.MaxItemBytes)
				h.retryOne(r, 60)
			case "deletions":
				h.retryNothing(r, shown)
				// Of values that the ledger has, behind 150 more effects.
				from := len(h.records) + 1
				for i := range 150 {
					h.rate(fmt.Sprintf("last%d", i), fmt.Sprintf(`"stars":2,"tag":"last %d"`, i))
				}
				for i := 55; i < 75; i++ {
					must(t, h.write(fmt.Sprintf(`delete films {"PK":"USER#brim%d","SK":"RATING#1"}`, i)))
				}
				must(t, h.settle(from))
				h.retryOne(r, 160)
			case "discards":
				for i := range 20 {
					must(t, h.write(fmt.Sprintf(`delete films {"PK":"USER#brim%d","SK":"RATING#1"}`, i)))
				}
				must(t, h.settle(len(h.records)+1))
				h.discardAll(r, shown)
				h.repair()
			}
			if left := h.letters(); len(left) > 0 {
				t.Error(left)
			}
			if out := h.audit(); out != "" {
				t.Error(out)
			}
		})
	}
}

// retryOne retries one of the letters, which settles at least so many.
func (h *harness) retryOne(r *runner.Runner, least int) {
	h.t.Helper()
	for id := range h.letters() {
		if n, err := r.Retry(h.t.Context(), id); err != nil || n < least {
			h.t.Fatal(n, err)
		}
		return
	}
}

// retryNothing retries a letter where nothing has made room: it says what helps, loses
// nothing, and the movie's row stays as shown.
func (h *harness) retryNothing(r *runner.Runner, shown string) {
	h.t.Helper()
	for id := range h.letters() {
		_, err := r.Retry(h.t.Context(), id)
		if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "delete rows that it counts") {
			h.t.Fatal(err)
		}
		break
	}
	if now := h.rows("films", "MOVIE#1"); now != shown {
		h.t.Error("the row shows a part of its queue")
	}
	if len(h.letters()) == 0 {
		h.t.Fatal("nothing waits")
	}
}

// TestEmptiedValuesGiveWay says that values that no row has any more stop nothing: a full
// ledger loses them before anything is parked.
func TestEmptiedValuesGiveWay(t *testing.T) {
	h := newFilms(t)
	defer h.close()
	for round := range 3 {
		from := len(h.records) + 1
		for i := range 380 {
			h.rate(fmt.Sprintf("of%d", i), fmt.Sprintf(`"tag":"%d %d %s"`, round, i, strings.Repeat("t", 1000)))
		}
		must(t, h.settle(from))
		if out := h.audit(); out != "" || len(h.letters()) > 0 || !strings.Contains(h.rows("films", "MOVIE#1"), `"tags":380`) {
			t.Fatal(round, out, h.letters(), h.rows("films", "MOVIE#1"))
		}
		from = len(h.records) + 1
		for i := range 380 {
			must(t, h.write(fmt.Sprintf(`delete films {"PK":"USER#of%d","SK":"RATING#1"}`, i)))
		}
		must(t, h.settle(from))
	}
}

// parkMany has changes parked, each twice and from a shard of its own, behind amounts that
// left the ledger.
func (h *harness) parkMany(r *runner.Runner, changes int) {
	h.t.Helper()
	for i := range changes {
		h.rate(fmt.Sprintf("more%d", i), fmt.Sprintf(`"stars":1,"tag":"new %d"`, i))
		h.pull()
		b := h.batch(len(h.records))
		h.done[len(h.records)] = true
		b.ShardKey = fmt.Sprintf("a shard with a name that is not short %d", i)
		for range 2 {
			if n, err := r.Rows(h.t.Context(), b); err != nil || n.Dead != 1 {
				h.t.Fatal(i, n, err)
			}
		}
	}
	moved, letters := 0, h.letters()
	for _, l := range letters {
		if strings.HasPrefix(l, "parked the ledger was full") {
			moved++
		}
	}
	if moved == 0 || len(letters) != changes+moved {
		h.t.Fatal(moved, letters)
	}
}

// discardAll discards every letter; until the last, the movie's row stays as shown.
func (h *harness) discardAll(r *runner.Runner, shown string) {
	h.t.Helper()
	letters := h.letters()
	for id := range letters {
		must(h.t, r.Discard(h.t.Context(), id))
		if delete(letters, id); len(letters) > 0 && h.rows("films", "MOVIE#1") != shown {
			h.t.Fatal("a discard shows a ledger of which amounts wait")
		}
	}
}

func (h *harness) repair() {
	h.t.Helper()
	r := repair.Repair{
		Verify: &verify.Verify{Model: h.model, Store: h.store}, Runner: h.runner(nil),
		Passed: func(context.Context) error { return h.settle(len(h.records) + 1) }, Yield: func(verify.Difference) {},
	}
	left, _, err := r.Run(h.t.Context())
	if err != nil || len(left) > 0 {
		h.t.Fatal(left, err)
	}
}

// TestPublishParksInAFullLedger says that a row that refuses to show a value is parked
// though the ledger has no room to note it.
func TestPublishParksInAFullLedger(t *testing.T) {
	h := newFilms(t)
	defer h.close()
	from := len(h.records) + 1
	for i := range 4 {
		h.rate(fmt.Sprintf("before%d", i), fmt.Sprintf(`"tag":"%d %s"`, i, strings.Repeat("t", 500)))
	}
	must(t, h.settle(from))
	h.room(0)
	from = len(h.records) + 1
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie","blob":"`+strings.Repeat("b", store.MaxItemBytes-len("PKMOVIE#1SKMETADATAtypeMovieblob"))+`"}`))
	must(t, h.settle(from))
	kinds := map[string]int{}
	for _, l := range h.letters() {
		kind, _, _ := strings.Cut(l, " ")
		kinds[kind]++
	}
	if kinds["publish"] != 1 || kinds["parked"] == 0 {
		t.Fatal(kinds)
	}
	from = len(h.records) + 1
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie"}`))
	must(t, h.settle(from))
	shown, letters := h.rows("films", "MOVIE#1"), h.letters()
	for id := range letters {
		if _, err := h.runner(nil).Retry(t.Context(), id); !errors.Is(err, store.ErrRefused) {
			t.Fatal(err)
		}
	}
	if now := h.rows("films", "MOVIE#1"); now != shown || len(h.letters()) != len(letters) {
		t.Errorf("a retry that has no room for the amounts shows a ledger without them: %s", now)
	}
	h.room(store.MaxItemBytes)
	for id := range h.letters() {
		_, err := h.runner(nil).Retry(t.Context(), id)
		must(t, err)
		break
	}
	if out := h.audit(); out != "" || len(h.letters()) > 0 {
		t.Error(out, h.letters())
	}
}

// letters are the ids of the dead letters that stand, each with its reason.
func (h *harness) letters() map[string]string {
	out := map[string]string{}
	must(h.t, h.runner(nil).Dead(h.t.Context(), func(d runner.Dead) error {
		out[d.ID] = string(d.Kind) + " " + d.Reason
		return nil
	}))
	return out
}

// says fails unless one letter says that the points cannot be shown, or none does, and
// verify agrees.
func (h *harness) says(when string, cannot bool) {
	h.t.Helper()
	letters := h.letters()
	if len(letters) > 1 || (len(letters) == 1) != cannot {
		h.t.Fatalf("%s: letters %v", when, letters)
	}
	for line := range strings.Lines(h.audit()) {
		if !strings.HasPrefix(line, "Movie.points of ") || !strings.Contains(line, "cannot be computed") {
			h.t.Errorf("%s: %s", when, line)
		}
	}
}

// TestFullLedgerSays says that a ledger with no room to name the dead letter of a sum
// stops nothing: the letter stands without, once, for as long as the sum cannot be shown.
func TestFullLedgerSays(t *testing.T) {
	h := newFilms(t)
	defer h.close()
	step := func(when string, cannot bool, do func()) {
		t.Helper()
		from := len(h.records) + 1
		do()
		must(t, h.settle(from))
		h.says(when, cannot)
	}
	lose := func(user string) {
		must(t, h.write(`delete films {"PK":"USER#`+user+`","SK":"RATING#1"}`))
	}
	step("a huge rating", true, func() { h.rate("b", `"stars":1e125`) })
	step("it is gone", false, func() { lose("b") }) // its band stays
	h.room(40)
	step("again, in a full ledger", true, func() { h.rate("b", `"stars":1e125`) })
	if h.theLedger().Has(owntable.Unshown) {
		t.Fatal("there was room")
	}
	step("one more", true, func() { h.rate("a", `"stars":5`) })
	for id := range h.letters() {
		if _, err := h.runner(nil).Retry(t.Context(), id); !errors.Is(err, runner.ErrStands) {
			t.Fatal(err)
		}
	}
	step("all is well", false, func() { lose("b") })
	step("full once more", true, func() { h.rate("b", `"stars":1e125`) })
	h.room(store.MaxItemBytes)
	step("with room", true, func() { h.rate("a", `"stars":4`) })
	if !h.theLedger().Has(owntable.Unshown) {
		t.Error("the ledger does not name it")
	}
	step("all is well with room", false, func() { lose("b") })
}

// TestUnshownUnderAnotherName says that a dead letter that was kept under another id,
// as when the model named the row otherwise, goes when another takes its place, and that
// a retry takes away one that was left behind.
func TestUnshownUnderAnotherName(t *testing.T) {
	h := newFilms(t)
	defer h.close()
	keep := func(source string) string {
		id, err := h.runner(nil).KeepDead(t.Context(), runner.Dead{Kind: runner.DeadNumber, Target: "as it was", Row: theMovie, Reason: "x", Source: source})
		must(t, err)
		return id
	}
	old := keep("of before")
	must(t, h.write(`ledger films {"PK":"MOVIE#1","SK":"METADATA"} {"u":"`+old+` cannot be computed: Movie.old"}`))
	from := len(h.records) + 1
	h.rate("b", `"stars":1e125`)
	must(t, h.settle(from))
	h.says("it gives another reason", true)
	left := keep("left behind")
	if n, err := h.runner(nil).Retry(t.Context(), left); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	h.says("the one left behind is gone", true)
	from = len(h.records) + 1
	must(t, h.write(`delete films {"PK":"USER#b","SK":"RATING#1"}`))
	must(t, h.settle(from))
	h.says("all is well", false)
}

// parksBefore is a store in which another worker parks a target right before the first
// write to its row.
type parksBefore struct {
	store.Store
	park func()
}

func (s *parksBefore) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if park := s.park; park != nil && ws[0].Ref.Table == theMovie.Table {
		s.park = nil
		park()
	}
	return s.Store.Write(ctx, ws)
}

// TestReclaimLeavesParkedTarget says that a row with a version that weir never gave is
// not made to show a ledger that another worker parked meanwhile, and that amounts left.
// The end of the queue shows it.
func TestReclaimLeavesParkedTarget(t *testing.T) {
	h := newFilms(t)
	defer h.close()
	from := len(h.records) + 1
	for i := range 30 {
		h.rate(fmt.Sprintf("before%d", i), fmt.Sprintf(`"tag":"%d %s"`, i, strings.Repeat("t", 500)))
	}
	must(t, h.settle(from))
	h.room(0)
	must(t, h.write(`put films {"PK":"MOVIE#1","SK":"METADATA","type":"Movie","note":"a copy","points":7,"tags":7,"weir":1999999999999999}`))
	h.pull()
	b := h.batch(len(h.records))
	h.done[len(h.records)] = true
	shown := h.rows("films", "MOVIE#1")
	w := &runner.Runner{Kinds: kinds.All(), Model: h.model, Now: h.now, Store: &parksBefore{h.store, func() { h.parkMany(h.runner(nil), 1) }}}
	_, err := w.Rows(t.Context(), b)
	must(t, err)
	if now := h.rows("films", "MOVIE#1"); now != shown {
		t.Errorf("the row shows a ledger of which amounts wait: %s", now)
	}
	h.room(store.MaxItemBytes)
	for id := range h.letters() {
		_, err := h.runner(nil).Retry(t.Context(), id)
		must(t, err)
		break
	}
	if out := h.audit(); out != "" || len(h.letters()) > 0 {
		t.Error(out, h.letters())
	}
}
