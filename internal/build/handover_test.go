package build_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
)

// approximate is a store whose streams are those of DynamoDB: shards split, the times of
// records are wrong by up to wrong, and no position says what was acknowledged.
type approximate struct {
	store.Store
	seed   uint64
	splits map[string][]events.Position // by shard of the store: the ends of the parts that are closed
}

// wrong is by how much a time may be: less than the time of a hand-over.
const wrong = 25 * time.Minute

// Horizon is zero, as of DynamoDB: what reads a shard begins at its oldest record.
func (a *approximate) Horizon(context.Context, string, string) (events.Position, error) {
	return events.Position{}, nil
}

func (a *approximate) Tip() store.Tip { return store.Tip{Lag: 1} }

func part(shard string, n int) string { return fmt.Sprint(shard, "/", n) }

func (a *approximate) Shards(ctx context.Context, table string) (out []store.Shard, err error) {
	all, err := a.Store.Shards(ctx, table)
	for _, s := range all {
		for n := range len(a.splits[s.ID]) + 1 {
			is := store.Shard{ID: part(s.ID, n), Closed: n < len(a.splits[s.ID])}
			if n > 0 {
				is.Parent = part(s.ID, n-1)
			}
			out = append(out, is)
		}
	}
	return out, err
}

// split closes the present part of a shard.
func (a *approximate) split(shard string) {
	a.splits[shard] = append(a.splits[shard], a.Store.Tip().Seen)
}

func (a *approximate) Read(ctx context.Context, table, shard string, after events.Position, limit int) (page store.Records, err error) {
	of, nr, _ := strings.Cut(shard, "/")
	var n int
	fmt.Sscan(nr, &n)
	if n > 0 && after.Compare(a.splits[of][n-1]) < 0 {
		after = a.splits[of][n-1]
	}
	page, err = a.Store.Read(ctx, table, of, after, limit)
	if err != nil {
		return page, err
	}
	if n < len(a.splits[of]) {
		all := page.Records
		for i := range all {
			if all[i].Position.Compare(a.splits[of][n]) > 0 {
				page.Records, page.End = all[:i], true
				break
			}
		}
		page.End = page.End || len(all) < limit
	}
	page.Records = append([]events.Record(nil), page.Records...)
	for i := range page.Records {
		r := &page.Records[i]
		d := rand.New(rand.NewPCG(a.seed, r.Position.Uint64()))
		r.Time = r.Time.Add(time.Duration(d.Int64N(int64(2*wrong))) - wrong).Truncate(time.Second)
	}
	return page, nil
}

// leased is a source all of whose shards a process has taken. Those that had them before go
// on until they notice.
type leased struct {
	store.Store
	fence int64
}

func (l leased) Fence() int64 { return l.fence }
func (l leased) Log() int64   { return l.fence }
func (leased) Spooled(string, string, events.Position, events.Position) ([]events.Record, bool, error) {
	return nil, false, nil
}

func (leased) Beside() bool                                                { return false }
func (leased) Trim(context.Context, string, string, events.Position) error { return nil }

// follower is that of a new process.
func (w *interleaved) follower(r *runner.Runner) *reader.Follower {
	f := &reader.Follower{Runner: r}
	if w.stream != nil {
		w.leases++
		f.Source = leased{r.Store, w.leases}
	}
	return f
}

// handsOver lets consumers, builders and the application go on while the verified builds go
// over to positions, until there are no marks.
func (w *interleaved) handsOver() {
	later := func(most int) { w.minutes.Add(int64(w.d.IntN(most))) }
	for range 8 + w.d.IntN(12) {
		switch n := w.d.IntN(8); {
		case n == 0 && w.stream == nil: // this machine's clock is set
			w.minutes.Add(int64(w.d.IntN(400) - 200))
		case n <= 1:
			later(50)
		case n == 2 && w.stream != nil:
			shards, err := w.stream.Store.Shards(w.Context(), w.table)
			w.ok(err)
			w.stream.split(shards[w.d.IntN(len(shards))].ID)
		case n == 3:
			w.goesOver(1 + w.d.IntN(40))
		default:
			w.act(0)
		}
	}
	for tries := 0; ; tries++ {
		later(120)
		for range 12 {
			w.scenario.edit(w)
		}
		w.catchUp()
		w.goesOver(0)
		if w.over() {
			break
		}
		if tries == 40 {
			w.Fatal("the builds do not go over to positions")
		}
		if w.d.IntN(2) == 0 {
			w.act(0)
		}
	}
	w.catchUp()
	w.scenario.compare(w.fixture)
	for range 6 {
		w.act(0)
	}
	w.catchUp()
	w.scenario.compare(w.fixture)
}

// goesOver does what a builder does for the hand-over, which is killed after so many calls.
func (w *interleaved) goesOver(calls int) {
	b := w.builder(w.names...)
	b.Runner = w.process(0, calls)
	err := b.HandOver(w.Context())
	if err == nil {
		_, err = b.RemoveMarks(w.Context())
	}
	w.expected(err)
}

// over reports whether all builds that have marks have handed over.
func (w *interleaved) over() bool {
	row, err := w.runner().Catalog.Row(w.Context())
	w.ok(err)
	for _, b := range row.Builds.Counting() {
		if w.runner().Catalog.Program().HasMarks(b.Entity) && b.HandOver.Over.IsZero() {
			return false
		}
	}
	if n := w.marked(); n > 0 {
		w.Fatalf("%d marks are left", n)
	}
	return true
}

// shifted is a source whose records have the time of the test's clock at which they were
// written.
type shifted struct {
	store.Store
	f *fixture
}

func (shifted) Trim(context.Context, string, string, events.Position) error { return nil }

func (s shifted) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := s.Store.Read(ctx, table, shard, after, limit)
	page.Records = append([]events.Record(nil), page.Records...)
	for i := range page.Records {
		r := &page.Records[i]
		for _, j := range s.f.jumps {
			if r.Position.Compare(j.after) > 0 {
				r.Time = r.Time.Add(j.by)
			}
		}
	}
	return page, err
}

// jump moves the clock of a store on, whose own cannot be moved.
type jump struct {
	after events.Position // of the last record before, in any shard of the lineage
	by    time.Duration
}

func (f *fixture) jump(hours int64) {
	places, err := reader.ReadPlaces(f.Context(), f.runner())
	f.ok(err)
	j := jump{by: time.Duration(hours) * time.Hour}
	for _, p := range places {
		if p.At.Compare(j.after) > 0 {
			j.after = p.At
		}
	}
	f.jumps = append(f.jumps, j)
	f.clock.Add(hours)
}

// metered counts write units by the documented rules, of rows up to 1 KB.
type metered struct {
	store.Store
	units *atomic.Int64
}

func (m metered) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	m.units.Add(int64(len(ws)))
	return m.Store.Write(ctx, ws)
}

func (m metered) Transact(ctx context.Context, ws []store.Write) error {
	m.units.Add(int64(2 * len(ws)))
	return m.Store.Transact(ctx, ws)
}

// handsOver builds, audits and hands over while an application writes, and compares what a
// record of a target of its own costs before and after.
func (f *fixture) handsOver() {
	const movies = 60
	movie := func(nr int) { f.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie") }
	rate := func(nr, stars int) {
		f.write("PK", fmt.Sprint("USER#", nr), "SK", fmt.Sprint("RATING#", nr), "type", "Rating", "movie", fmt.Sprint(nr), "stars", stars, "mood", "m")
	}
	for nr := range movies {
		movie(nr)
		rate(nr, 1)
	}
	f.unread()
	f.unbuilt()
	f.build(owntable.BuildLive, "Movie")
	var units atomic.Int64
	was := f.Models[0]
	costs := func(stars int) float64 {
		f.Helper()
		for nr := range movies {
			rate(nr, stars)
		}
		r := *was.Runner
		r.Store = metered{f.Store, &units}
		r.Catalog = catalog.New(f.model, f.Store, f.now, catalog.Options{})
		units.Store(0)
		done := make(chan struct{})
		close(done)
		follower := reader.Follower{Runner: &r, Source: shifted{f.Store, f}}
		f.ok(follower.CatchUp(f.Context(), done))
		f.compare()
		return float64(units.Load()) / movies
	}
	marked := costs(2)
	f.jump(25)
	rate(1, 5) // the audit reads it before a consumer does
	f.build(owntable.BuildVerified, "Movie")
	costs(3)
	f.jump(2)
	costs(4) // shards are cut before these
	b := f.builder("Movie")
	f.ok(b.HandOver(f.Context()))
	f.jump(2)
	removed, err := b.RemoveMarks(f.Context())
	f.ok(err)
	if row, err := b.Runner.Catalog.Row(f.Context()); err != nil || row.Builds[0].HandOver.Over.IsZero() || removed < movies {
		f.Fatalf("%d marks are removed: %+v %v", removed, row.Builds, err)
	}
	placed := costs(5)
	f.Logf("a record with a target of its own: %.2f write units by marks, %.2f by positions; removing a mark: %.2f",
		marked, placed, float64(b.Done().Units)/float64(removed))
	if placed > marked-2 {
		f.Errorf("%.2f units by marks, %.2f by positions", marked, placed)
	}
	f.build(owntable.BuildLive, "Movie") // again, from the beginning
	costs(2)
	f.compare()
}

// TestHandOver: a process builds, audits, hands over and goes on with writes.
func TestHandOver(t *testing.T) { open(t, load(t, films)).handsOver() }

// TestHandOverOnDynamoDB is the same on DynamoDB Local.
func TestHandOverOnDynamoDB(t *testing.T) { openOnDynamoDB(t, load(t, films)).handsOver() }

// TestFunctionWhileHandingOver: a function goes on while ledgers go over and when the marks are gone, also with records that come again.
func TestFunctionWhileHandingOver(t *testing.T) {
	f := rated(t)
	f.catchUp()
	f.build(owntable.BuildLive, "Movie")
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	done := map[string]events.Position{}
	applies := func() {
		t.Helper()
		r := *f.runner()
		r.Catalog = catalog.New(f.model, f.Store, f.now, catalog.Options{})
		h := lambda.New(&r, func(context.Context) error { return nil })
		shards, err := f.Store.Shards(t.Context(), f.table)
		f.ok(err)
		for _, s := range shards {
			page, err := f.Store.Read(t.Context(), f.table, s.ID, done[s.ID], 1<<20)
			f.ok(err)
			for range 2 {
				if ok, said := f.invokeFor(s.ID, h, f.asEvents(page.Records)...); !ok {
					t.Fatal(said)
				}
			}
			if n := len(page.Records); n > 0 {
				done[s.ID] = page.Records[n-1].Position
			}
		}
		f.compare()
	}
	f.rate(1, 4, "m")
	applies()
	f.clock.Add(2)
	for nr := range 60 { // in all shards
		f.write("PK", fmt.Sprint("USER#", nr), "SK", "RATING#x", "type", "Rating", "movie", "1", "stars", nr%6, "mood", "m")
	}
	applies()
	marks := f.marked()
	f.rate(2, 5, "other")
	applies()
	if n := f.marked(); n != marks {
		t.Fatalf("%d marks, and then %d: ledgers are not counted by positions", marks, n)
	}
	b := f.builder("Movie")
	f.ok(b.HandOver(t.Context()))
	f.clock.Add(2)
	_, err := b.RemoveMarks(t.Context())
	f.ok(err)
	if n := f.marked(); n > 0 {
		t.Fatalf("%d marks are left", n)
	}
	f.rate(1, 5, "m")
	applies()
	applies()
}

// handed is a store whose build has handed over, and whose marks are gone.
func handed(t *testing.T) *fixture {
	f := rated(t)
	f.catchUp()
	f.build(owntable.BuildLive, "Movie")
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	f.clock.Add(2)
	f.everywhere("")
	return f
}

// everywhere writes ratings in all shards, and applies them.
func (f *fixture) everywhere(mood string) {
	f.Helper()
	for nr := range 60 {
		f.write("PK", fmt.Sprint("USER#", nr), "SK", "RATING#x", "type", "Rating", "movie", "1", "stars", nr%6, "mood", "m"+mood)
	}
	f.catchUp()
}

// marked returns how many marks there are.
func (f *fixture) marked() (n int) {
	f.Helper()
	for name := range f.rows(owntable.TableName) {
		if strings.Contains(name, `"mark|`+f.model.Name+"#") {
			n++
		}
	}
	return n
}

// TestPruneAfterAHandOver: pruning removes the marks of a build that has handed over, once no
// batch is left that needs them, and leaves its ledgers.
func TestPruneAfterAHandOver(t *testing.T) {
	f := handed(t)
	b := f.builder("Movie")
	_, _, err := b.Prune(t.Context()) // which also notes that all shards went over
	f.ok(err)
	if f.marked() == 0 {
		t.Error("marks are removed at once")
	}
	f.clock.Add(2)
	had := f.marked()
	gone, removed, err := b.Prune(t.Context())
	f.ok(err)
	if len(gone) > 0 || removed != had || f.marked() > 0 {
		t.Errorf("of %d marks, %d rows are removed, with %+v; %d are left", had, removed, gone, f.marked())
	}
	f.compare()
	f.everywhere("2")
	f.compare()
	if _, again, err := b.Prune(t.Context()); err != nil || again > 0 {
		t.Error(again, err)
	}
}

// TestHandOverOfIdleShards: a function moves no shard without records, so time ends what waits for such a shard: a day later the stream has no
// record any more that was written before.
func TestHandOverOfIdleShards(t *testing.T) {
	f := open(t, load(t, films))
	var err error
	f.System, err = system.Over(t.Context(), &approximate{Store: f.Store}, "", []*model.Model{f.model}, system.Options{Now: f.now, NoSearch: true})
	f.ok(err)
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.rate(1, 4, "m")
	f.catchUp()
	f.build(owntable.BuildLive, "Movie")
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	passed := func() bool {
		b := f.builder("Movie")
		f.ok(b.HandOver(t.Context()))
		row, err := b.Runner.Catalog.Row(t.Context())
		f.ok(err)
		return !row.Builds[0].HandOver.Passed.IsZero()
	}
	for _, x := range []struct {
		hours int64
		want  bool
	}{{3, false}, {20, false}, {5, true}} {
		if f.clock.Add(x.hours); passed() != x.want {
			t.Errorf("after %d hours more: all is counted by positions: %v", x.hours, !x.want)
		}
	}
}
