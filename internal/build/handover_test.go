package build_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// approximate is a store whose streams are those of DynamoDB: shards split, the times of
// records are wrong by up to wrong, and no position says what was acknowledged.
type approximate struct {
	store.Store
	seed   uint64
	splits map[string][]events.Position // by shard of the store: the ends of the parts that are closed
}

// wrong is by how much a time may be: less than catalog.HandOverAfter.
const wrong = 25 * time.Minute

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

func (l leased) Fence(string, string) int64                                { return l.fence }
func (leased) Beside(string, string) bool                                  { return false }
func (leased) Trim(context.Context, string, string, events.Position) error { return nil }

// follower is that of a new process.
func (w *interleaved) follower(r *runner.Runner) *runner.Follower {
	f := &runner.Follower{Runner: r}
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
		_, err = b.Unmark(w.Context())
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
	for name, row := range w.rows(owntable.TableName) {
		if strings.Contains(name, `"mark|`+w.model.Name+"#") {
			w.Fatalf("a mark is left: %s %v", name, row)
		}
	}
	return true
}
