package build_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// meddled is a store before whose calls others do something: all that consumers, builders
// and the application do happens between any two calls of another of them.
type meddled struct {
	store.Store
	w     *interleaved
	depth int
	left  *int // calls until the process is killed; nil for never
}

var errKilled = errors.New("killed")

func (m *meddled) meddle() error {
	if m.left != nil {
		if *m.left--; *m.left < 0 {
			return errKilled
		}
	}
	if m.depth < 3 && m.w.d.IntN(7) == 0 {
		m.w.act(m.depth + 1)
	}
	return nil
}

func (m *meddled) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if err := m.meddle(); err != nil {
		return nil, err
	}
	return m.Store.Get(ctx, refs)
}

func (m *meddled) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := m.meddle(); err != nil {
		return store.Page{}, err
	}
	return m.Store.Query(ctx, q)
}

func (m *meddled) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if err := m.meddle(); err != nil {
		return nil, err
	}
	out, err := m.Store.Write(ctx, ws)
	return out, errors.Join(err, m.after())
}

func (m *meddled) Transact(ctx context.Context, ws []store.Write) error {
	if err := m.meddle(); err != nil {
		return err
	}
	return errors.Join(m.Store.Transact(ctx, ws), m.after())
}

// after kills a process that has written and does not know it yet.
func (m *meddled) after() error {
	if m.left != nil && *m.left == 0 {
		return errKilled
	}
	return nil
}

func (m *meddled) Trim(context.Context, string, string, events.Position) error { return nil }

// interleaved is one schedule.
type interleaved struct {
	*fixture
	*scenario
	d     *rand.Rand
	begun bool
	late  []*reader.Stepper // consumers that go on now and then
}

// scenario is what is derived in a schedule, what the application does, and what must come of
// it.
type scenario struct {
	text    string // of the model
	names   []string
	edit    func(*interleaved)
	compare func(*fixture)
}

// runner is that of a new process, killed after so many calls.
func (w *interleaved) process(depth, calls int) *runner.Runner {
	m := &meddled{Store: w.Store, w: w, depth: depth}
	if calls > 0 {
		m.left = &calls
	}
	return &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: m, Now: w.now, Mono: w.now, Alone: true,
		Catalog: catalog.New(w.model, m, w.now, catalog.Options{})}
}

// act does one thing of one of those who take part.
func (w *interleaved) act(depth int) {
	switch n := w.d.IntN(10); {
	case n < 5:
		w.scenario.edit(w)
	case n < 8:
		w.follow(depth)
	case w.begun:
		b := w.builder(w.names[w.d.IntN(len(w.names)):]...)
		b.Runner = w.process(depth, 1+w.d.IntN(80))
		_, err := b.Run(w.Context())
		w.expected(err)
	}
}

// follow lets a consumer, a new one or one that has waited, do some steps.
func (w *interleaved) follow(depth int) {
	var step *reader.Stepper
	if n := len(w.late); n > 0 && w.d.IntN(3) == 0 {
		i := w.d.IntN(n)
		step = w.late[i]
		w.late = slices.Delete(w.late, i, i+1)
	} else {
		step = w.follower(w.process(depth, w.d.IntN(60))).NewStepper()
	}
	for range 1 + w.d.IntN(2) {
		if _, _, err := step.Step(w.Context()); err != nil {
			w.expected(err)
			return
		}
	}
	w.late = append(w.late, step)
}

// expected fails the test for an error that none of those who take part may meet.
func (w *interleaved) expected(err error) {
	if err != nil && !errors.Is(err, errKilled) && !errors.Is(err, runner.ErrLost) && !errors.Is(err, store.ErrCondition) {
		w.Errorf("%v", err)
	}
}

func editFilms(w *interleaved) {
	if nr := w.d.IntN(4); w.d.IntN(6) == 0 {
		w.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA")
		w.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie")
		return
	}
	nr := w.d.IntN(6)
	row := []any{"PK", fmt.Sprint("USER#", nr%3), "SK", fmt.Sprint("RATING#", nr)}
	if w.d.IntN(3) > 0 {
		row = append(row, "type", "Rating", "movie", fmt.Sprint(w.d.IntN(4)), "stars", w.d.IntN(6), "mood", fmt.Sprint("m", w.d.IntN(2)))
	}
	w.write(row...)
}

// TestInterleaved runs the real consumers and builders against each other: before any call of
// one of them, others may write, apply, build, and be killed.
func TestInterleaved(t *testing.T) {
	soaktest.Calm(t)
	interleave(t, &scenario{films, []string{"Movie"}, editFilms, func(f *fixture) { f.movies(); f.compare() }})
}

func interleave(t *testing.T, sc *scenario) {
	m := load(t, sc.text)
	usual := uint64(60)
	if testing.Short() {
		usual = 8
	}
	for seed := range schedules(usual) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { sc.run(t, m, seed) })
	}
}

func (sc *scenario) run(t *testing.T, m *model.Model, seed uint64) {
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{TB: t, model: m, table: m.Tables[0].Name}
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: f.now, Shards: 2})
	f.ok(err)
	var over store.Store = db
	if seed%8 > 2 {
		f.stream = &approximate{Store: db, seed: seed, splits: map[string][]events.Position{}}
		over = f.stream
	}
	f.System, err = system.Over(t.Context(), over, "", []*model.Model{m}, system.Options{Now: f.now, NoSearch: true})
	f.ok(err)
	defer f.Close()
	w := &interleaved{fixture: f, scenario: sc, d: rand.New(rand.NewPCG(seed, 5))}
	for range 12 {
		sc.edit(w)
	}
	if seed%2 == 1 { // a gap: what was derived, and then records that are lost
		f.catchUp()
		for range 12 {
			sc.edit(w)
		}
	}
	f.unread()
	if seed%4 < 2 {
		f.unbuilt()
		f.announced(sc.names...)
	}
	for range 3 {
		w.act(0)
	}
	w.begun = true
	for range 12 {
		w.act(0)
	}
	for tries := 0; ; tries++ {
		b := f.builder(sc.names...)
		b.Runner = w.process(0, 0)
		is, err := b.Run(t.Context())
		w.expected(err)
		if err == nil && is[0].State == owntable.BuildLive {
			break
		}
		if tries == 50 || t.Failed() {
			t.Fatal("the build does not end: ", err)
		}
	}
	for range 3 {
		w.act(0)
	}
	f.catchUp()
	sc.compare(f)
	for range w.d.IntN(6) { // the audit reads what consumers have not
		sc.edit(w)
	}
	f.clock.Add(25)
	f.build(owntable.BuildVerified, sc.names...)
	w.begun = false // a new build would not be shown everywhere yet
	w.act(0)
	f.catchUp()
	sc.compare(f)
	w.handsOver()
}

// movies makes sure that there is one.
func (f *fixture) movies() {
	f.write("PK", "MOVIE#9", "SK", "METADATA", "type", "Movie")
	f.catchUp()
}

// schedules is how many schedules a test runs; WEIR_TEST_SCHEDULES says how many instead.
func schedules(usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("WEIR_TEST_SCHEDULES"), 10, 64); err == nil {
		return n
	}
	return usual
}
