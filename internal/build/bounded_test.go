package build_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// rated is a store with a movie that has ratings.
func rated(t *testing.T) *fixture {
	f := open(t, load(t, films))
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	for nr := range 5 {
		f.rate(nr, nr, "m")
	}
	return f
}

func (f *fixture) rate(nr, stars int, mood string) {
	f.Helper()
	f.write("PK", "USER#1", "SK", fmt.Sprint("RATING#", nr), "type", "Rating", "movie", "1", "stars", stars, "mood", mood)
}

// count makes a ledger of a generation say how many rows its mean has, and returns how many it said. With hugeCount
// no row more can be added: the sum has more digits than a number.
func (f *fixture) count(generation int64, rows value.Value) (before value.Value) {
	f.Helper()
	name := owntable.Build{Generation: generation}.Ledgers(f.model.Name)
	movie := store.Ref{Table: f.table, Key: store.Key{Partition: value.OfString("MOVIE#1"), Sort: value.OfString("METADATA")}}
	at := owntable.Ledger(name, movie)
	is, err := f.Store.Get(f.Context(), []store.Ref{at})
	f.ok(err)
	out, err := f.Store.Write(f.Context(), []store.Write{{Ref: at, Ops: []store.Op{store.Assign(owntable.RowsAccumulator("rating"), rows)}}})
	f.ok(err)
	f.ok(out[0].Err)
	return is[0].Get(owntable.RowsAccumulator("rating"))
}

var hugeCount = value.MustNumber("1e100")

func (f *fixture) dead() (out []deadletter.Letter) {
	f.Helper()
	f.ok(f.runner().EachDeadLetter(f.Context(), func(d deadletter.Letter) error {
		out = append(out, d)
		return nil
	}))
	return out
}

// TestDeadLetters: what a ledger of a build refuses is a dead letter as any other: it is
// listed, and a retry applies it, and shows it only when rows show the build.
func TestDeadLetters(t *testing.T) {
	for name, state := range map[string]owntable.BuildState{
		"first": owntable.BuildBuilding, "again": owntable.BuildBuilding, "live": owntable.BuildLive,
	} {
		t.Run(name, func(t *testing.T) {
			f := rated(t)
			f.catchUp()
			if name == "first" {
				f.unbuilt()
			}
			f.announced("Movie")
			f.rate(1, 4, "m")
			f.catchUp()
			if state == owntable.BuildLive {
				f.build(state, "Movie")
			}
			row, err := f.runner().Catalog.Row(t.Context())
			f.ok(err)
			generation := row.Builds[0].Generation
			before := f.count(generation, hugeCount)
			f.rate(9, 5, "m")
			f.catchUp()
			letters := f.dead()
			if len(letters) != 1 || letters[0].Kind != deadletter.Parked {
				t.Fatalf("%+v", letters)
			}
			f.count(generation, before)
			if err := f.runner().RetryLetter(t.Context(), letters[0].ID); err != nil {
				t.Fatal(err)
			}
			if left := f.dead(); len(left) > 0 {
				t.Errorf("%+v", left)
			}
			if name == "again" {
				f.compare() // the ledgers that rows show have it
			}
			if name == "first" {
				for _, row := range f.rows(f.table) {
					if row.Get("type").Text() == "Movie" && row.Get("rows").Text() == "2" {
						t.Errorf("half a value is shown: %v", row)
					}
				}
			}
			f.build(owntable.BuildLive, "Movie")
			f.compare()
		})
	}
}

// TestReplacedLetters: a dead letter of ledgers that a build replaced is not listed, a retry
// of it shows nothing old, and pruning removes it.
func TestReplacedLetters(t *testing.T) {
	f := rated(t)
	f.catchUp()
	movie := store.Ref{Table: f.table, Key: store.Key{Partition: value.OfString("MOVIE#1"), Sort: value.OfString("METADATA")}}
	f.rate(8, 3, "m")
	f.catchUp()
	was := f.keepsRefusal(movie)
	f.build(owntable.BuildLive, "Movie")
	f.compare()
	if left := f.dead(); len(left) > 0 {
		t.Errorf("%+v", left)
	}
	if err := f.runner().RetryLetter(t.Context(), was[0].ID); err != nil {
		t.Error(err)
	}
	f.compare()
	f.prunesLetters()
	f.compare()
}

// TestReplacedLettersOfStatuses: so it is of rows that show statuses alone.
func TestReplacedLettersOfStatuses(t *testing.T) {
	f := open(t, load(t, strings.Replace(voted, "  Movie.ratings: {count: Rating, to: {id: movie}}\n", "", 1)))
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.write("PK", "USER#1", "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", 9, "at", "now")
	f.catchUp()
	f.keepsRefusal(f.theMovie())
	f.build(owntable.BuildLive, "Movie")
	if left := f.dead(); len(left) > 0 {
		t.Errorf("%+v", left)
	}
	f.prunesLetters()
	f.verified()
}

// keepsRefusal has the letter of a row that refused what its ledger says, and no other, and returns it.
func (f *fixture) keepsRefusal(row store.Ref) []deadletter.Letter {
	f.Helper()
	ledger, err := f.runner().GetRow(f.Context(), owntable.Ledger(f.model.Name, row))
	f.ok(err)
	_, err = f.runner().NoteShown(f.Context(), row, ledger, errors.New("as if the row had refused it"))
	f.ok(err)
	was := f.dead()
	if len(was) != 1 {
		f.Fatalf("%+v", was)
	}
	return was
}

// prunesLetters prunes, two hours later, and checks that no letter is left.
func (f *fixture) prunesLetters() {
	f.Helper()
	f.clock.Add(2)
	_, _, err := f.builder("Movie").Prune(f.Context())
	f.ok(err)
	for name := range f.rows(owntable.TableName) {
		if strings.Contains(name, `"dead|`) {
			f.Errorf("%s is left", name)
		}
	}
}

// before is a store that does something once, before its next transaction.
type before struct {
	store.Store
	do *func()
}

func (b before) Transact(ctx context.Context, ws []store.Write) error {
	if do := *b.do; do != nil {
		*b.do = nil
		do()
	}
	return b.Store.Transact(ctx, ws)
}

// beside returns a runner before whose next transaction something else happens.
func (f *fixture) beside(do func()) *runner.Runner {
	r := *f.runner()
	r.Store = before{f.Store, &do}
	r.Catalog = catalog.New(f.model, r.Store, f.now, catalog.Options{})
	return &r
}

// TestZombieBuilder: a builder that wakes up after its build was verified, and the marks of
// nothing were forgotten, puts nothing of the row that it had read.
func TestZombieBuilder(t *testing.T) {
	f := rated(t)
	f.unread()
	f.announced("Movie")
	zombie := f.builder("Movie")
	zombie.Segments = 1
	zombie.Runner = f.beside(func() {
		f.write("PK", "USER#1", "SK", "RATING#3")
		f.catchUp()
		f.build(owntable.BuildLive, "Movie")
		f.clock.Add(25)
		f.build(owntable.BuildVerified, "Movie")
		f.clock.Add(40 * 24)
		_, err := f.Sweep(t.Context())
		f.ok(err)
	})
	if _, err := zombie.Run(t.Context()); !errors.Is(err, runner.ErrLost) && !errors.Is(err, build.ErrOld) {
		t.Errorf("the zombie: %v", err)
	}
	f.compare()
}

// TestCountedBesideTheSwitch: a consumer that counts in a build after its target was shown
// shows the target.
func TestCountedBesideTheSwitch(t *testing.T) {
	f := rated(t)
	f.unread()
	f.unbuilt()
	ctx, kill := context.WithCancel(t.Context())
	b := f.builder("Movie")
	b.Report = func(p build.Progress) {
		if p.Puts == 5 { // all are put, and the scan is not over
			kill()
		}
	}
	if _, err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	f.rate(3, 0, "other") // the scan goes on, and the row has its mark
	done := make(chan struct{})
	close(done)
	follower := reader.Follower{Runner: f.beside(func() { f.build(owntable.BuildLive, "Movie") })}
	f.ok(follower.CatchUp(t.Context(), done))
	f.compare()
}

// TestStates: it is said how far builds are, and when there is something to do.
func TestStates(t *testing.T) {
	f := rated(t)
	f.unread()
	f.announced("Movie")
	all, err := f.builder("Movie").States(t.Context())
	f.ok(err)
	if len(all) != 1 || all[0].State != owntable.BuildBuilding || all[0].Held || all.Todo(f.now()) == nil {
		t.Errorf("%+v", all)
	}
	for silent, want := range map[time.Duration]time.Time{0: {}, time.Minute: all[0].Since} { // a process may look for builds once a minute
		if since := all[0].PausedSince(all[0].Since.Add(silent)); !since.Equal(want) {
			t.Errorf("%v after the announcement: paused since %v", silent, since)
		}
	}
	killed := func() *build.Builder {
		b := f.builder("Movie")
		ctx, kill := context.WithCancel(t.Context())
		b.Report = func(p build.Progress) {
			if p.Targets > 0 {
				kill()
			}
		}
		_, _ = b.Run(ctx)
		return b
	}
	held := func(after string, want bool) {
		t.Helper()
		if all, err = f.builder("Movie").States(t.Context()); err != nil || all[0].State != owntable.BuildShowing || all[0].Held != want {
			t.Errorf("after %s: %+v, %v", after, all, err)
		}
		for silent, paused := range map[time.Duration]bool{0: !want, build.Idle - time.Second: !want, build.Idle: true} {
			if since := all[0].PausedSince(f.now().Add(silent)); since.IsZero() == paused || paused && !since.Equal(all[0].Saved) {
				t.Errorf("%v after %s: paused since %v", silent, after, since)
			}
		}
	}
	first := killed()
	held("a kill", true)
	second := killed()
	f.ok(first.Release(t.Context()))
	held("the end of a builder whose segments another has", true)
	f.ok(second.Release(t.Context()))
	held("the end of the builder", false)
	f.build(owntable.BuildLive, "Movie")
	if all, err = first.States(t.Context()); err != nil || all[0].State != owntable.BuildLive || all.Todo(f.now()) != nil || all.NextIn(f.now()) != time.Minute {
		t.Errorf("%+v, %v", all, err)
	}
	if since := all[0].PausedSince(f.now().Add(25 * time.Hour)); !since.IsZero() {
		t.Errorf("a build that waits for its audit is paused since %v", since)
	}
	if s := (build.State{Pace: 10, Rows: 100, Of: 400}); s.TimeLeft() != 30*time.Second {
		t.Error(s.TimeLeft())
	}
	f.clock.Add(25)
	if all.Todo(f.now()) == nil {
		t.Error("there is no audit to do")
	}
}

// TestManyRows builds what rows count beside a builder that is killed ten times.
// WEIR_TEST_ROWS says how many rows instead.
func TestManyRows(t *testing.T) {
	soaktest.Calm(t)
	rows := soaktest.Count(5_000, 20_000)
	if n, err := strconv.Atoi(os.Getenv("WEIR_TEST_ROWS")); err == nil {
		rows = n
	}
	f := open(t, load(t, films))
	for nr := 0; nr < rows; nr += 500 {
		var ws []store.Write
		for i := range 500 {
			user, rating := fmt.Sprint("USER#", (nr+i)%1000), fmt.Sprint("RATING#", nr+i)
			key := store.Key{Partition: value.OfString(user), Sort: value.OfString(rating)}
			ws = append(ws, store.Write{Ref: store.Ref{Table: f.table, Key: key}, Put: value.NewItem(
				runner.Attr("PK", key.Partition), runner.Attr("SK", key.Sort), runner.Attr("type", value.OfString("Rating")), runner.Attr("mood", value.OfString("m")),
				runner.Attr("movie", value.OfString(fmt.Sprint((nr+i)%(rows/50)))), runner.Attr("stars", value.OfInt(int64(i%6))))})
		}
		_, err := f.Store.Write(t.Context(), ws)
		f.ok(err)
	}
	for nr := range rows / 50 {
		f.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie")
	}
	f.unread()
	f.unbuilt()
	f.announced("Movie")
	start, done := time.Now(), build.Progress{}
	for kills := 1; ; kills++ {
		ctx, kill := context.WithCancel(t.Context())
		b := f.builder("Movie")
		b.Report = func(p build.Progress) {
			if kills <= 10 && p.Puts > int64(rows/20) {
				kill()
			}
		}
		is, err := b.Run(ctx)
		kill()
		d := b.Done()
		done.Rows, done.Units = done.Rows+d.Rows, done.Units+d.Units
		if err == nil && is[0].State == owntable.BuildLive {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	took := time.Since(start)
	t.Logf("%d rows in %v, %.0f rows/s; %d rows read in all, %d write units", rows, took, float64(rows)/took.Seconds(), done.Rows, done.Units)
	f.catchUp()
	f.compare()
}

// TestRetiredTally: what a retired tally has left in ledgers is no difference, whether a build
// made them or not.
func TestRetiredTally(t *testing.T) {
	less := load(t, strings.Replace(films, "  Movie.stars: {sum: Rating.stars, to: {id: movie}}\n", "", 1))
	for _, built := range []bool{false, true} {
		f := rated(t)
		f.catchUp()
		if built {
			f.build(owntable.BuildLive, "Movie")
		}
		f.with(less)
		f.retired()
		f.rate(9, 4, "m")
		f.write("PK", "USER#1", "SK", "RATING#1")
		f.catchUp()
		f.verified()
	}
}

// TestRetiredTallyOfLongKey: what a retired tally has left in the ledger of a long key, for which no row counts any
// more, is no difference, though rows of another entity have a tally of that name.
func TestRetiredTallyOfLongKey(t *testing.T) {
	text := strings.Replace(films, "  Rating:\n", "  Show: {where: {type: Show}, key: {PK: \"SHOW#{id}\", SK: METADATA}}\n  Rating:\n", 1) +
		"  Show.rows: {count: Rating, to: {id: movie}}\n"
	f := open(t, load(t, text+"  Show.stars: {sum: Rating.stars, to: {id: movie}}\n"))
	id := strings.Repeat("m", 1000)
	f.write("PK", "USER#1", "SK", "RATING#1", "type", "Rating", "movie", id, "stars", 4)
	f.catchUp()
	f.with(load(t, text))
	f.retired()
	f.write("PK", "USER#1", "SK", "RATING#1")
	f.catchUp()
	f.verified()
}
