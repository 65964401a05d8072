package replay_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/scratch"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// bulkWorld is a directory into which recordings are replayed.
type bulkWorld struct {
	t     testing.TB
	m     *model.Model
	dir   string
	sys   *system.System
	talk  []string // gaps and bad records
	bulks int      // replays that were done in bulk to their end
	lives int      // replays that went on live

	reduced *bool // whether a bulk must reduce; nil if it does not matter
}

func newBulkWorld(t testing.TB, m *model.Model) *bulkWorld {
	w := &bulkWorld{t: t, m: m, dir: t.TempDir()}
	w.open()
	t.Cleanup(func() { w.sys.Close() })
	return w
}

func (w *bulkWorld) open() {
	w.t.Helper()
	var err error
	w.sys, err = system.Open(context.Background(), w.dir, []*model.Model{w.m}, system.Options{NoSearch: true})
	failtest.On(w.t, err)
	failtest.On(w.t, w.sys.Start(context.Background()))
	failtest.On(w.t, w.sys.Reach(context.Background(), nil))
}

// again closes the directory and opens it.
func (w *bulkWorld) again() {
	w.t.Helper()
	failtest.On(w.t, w.sys.Close())
	w.open()
}

func (w *bulkWorld) replay() *replay.Replay {
	part := w.sys.Models[0]
	return &replay.Replay{
		Model: w.m, Store: w.sys.Store, Runner: part.Runner, Names: w.sys.Names,
		Gap: func(g replay.Gap) { w.talk = append(w.talk, fmt.Sprintf("gap %s %s %s", g.Where, g.Row, g.Reason)) },
		Bad: func(e events.Entry, err error) { w.talk = append(w.talk, fmt.Sprintf("bad %s %v", e.Location, err)) },
	}
}

// live replays batches as a followed store does.
func (w *bulkWorld) live(batches [][]events.Entry) replay.Summary {
	w.t.Helper()
	r := w.replay()
	w.rest(r, batches)
	return r.Summary
}

func (w *bulkWorld) rest(r *replay.Replay, batches [][]events.Entry) {
	w.t.Helper()
	w.lives++
	for i, b := range batches {
		failtest.On(w.t, r.Batch(context.Background(), b, ""))
		if i%3 == 0 {
			w.settle()
		}
	}
	w.settle()
}

func (w *bulkWorld) settle() {
	w.t.Helper()
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: w.sys.Models[0].Runner}
	failtest.On(w.t, f.CatchUp(context.Background(), done))
}

// sized is windows of so many bytes, which are sorted in many pieces.
func sized(most int) replay.Size {
	return replay.Size{Memory: min(most, 1<<20)/8 + 1, Disk: int64(most)}
}

// bulk replays batches in windows of so many bytes, and goes on live where it has to.
func (w *bulkWorld) bulk(batches [][]events.Entry, most int) replay.Summary {
	w.t.Helper()
	r := w.replay()
	b, why, err := replay.New(context.Background(), r, sized(most))
	failtest.On(w.t, err)
	if why != "" {
		w.t.Fatalf("not in bulk: %s", why)
	}
	if w.reduced != nil && b.Reduces() != *w.reduced {
		w.t.Fatalf("the changes of rows are reduced: %v", b.Reduces())
	}
	for _, batch := range batches {
		if err = b.Batch(context.Background(), slices.Clone(batch), ""); err != nil {
			break
		}
	}
	if err == nil {
		err = b.Land(context.Background())
	}
	failtest.On(w.t, b.Close())
	if errors.Is(err, replay.ErrLive) {
		w.t.Logf("after %d: %v", b.Landed(), err)
		w.rest(r, dropped(batches, b.Landed()))
		return r.Summary
	}
	failtest.On(w.t, err)
	w.bulks++
	return r.Summary
}

// dropped leaves out the first entries of batches.
func dropped(batches [][]events.Entry, n int) (out [][]events.Entry) {
	for _, b := range batches {
		k := min(n, len(b))
		n -= k
		if k < len(b) {
			out = append(out, b[k:])
		}
	}
	return out
}

// dump is everything in the directory, a line each, but for what also differs between two
// live replays: versions, positions in the store's own stream, moments of lists, times of keeping,
// how many rows a long set is spread over, where facts are skipped, and ledgers that say nothing and expire. Of positions
// and moments, dump has what they decide: which row is newer, and who follows.
func (w *bulkWorld) dump() []string {
	w.t.Helper()
	var out []string
	versions, sets := map[string]value.Value{}, map[string][]string{}
	for _, row := range w.scan(store.Query{Table: owntable.TableName}) {
		line, part := "", row.Get(owntable.Partition).Text()
		but := func(names ...string) string {
			return w.text(row, func(name string, _ value.Value) bool { return !slices.Contains(names, name) })
		}
		switch owntable.Kind(part) {
		case owntable.KindLedger:
			versions[part] = row.Get(owntable.Count)
			if !owntable.LedgerRow(row).Empty() {
				line = w.text(row, func(name string, v value.Value) bool {
					skip := strings.HasPrefix(name, "g:") || strings.HasPrefix(name, "h:") || strings.HasPrefix(name, "i:") // where no fact is looked for
					return name != owntable.Count && !skip && !strings.HasPrefix(name, "p:") && !(owntable.IsSum(name) && v.Sign() == 0)
				})
			}
		case owntable.KindDead:
			// Which states of a made row a later derivation meets depends on how changes are batched.
			if target := row.Get("target").Text(); !slices.ContainsFunc([]string{"City.second", "Town", "Size"}, func(of string) bool { return strings.HasPrefix(target, of) }) {
				line = "dead " + row.Get("kind").Text() + " " + target + " " + row.Get("reason").Text()
			}
		case "seen", "claim":
			line = but()
		case owntable.KindFact:
			if owntable.MemberFrom(row).Says != nil {
				line = but(owntable.Position)
			}
		case owntable.KindFollow: // what is written twice in two batches may be left on the list of the first
			if row.Get("a").IsMissing() || w.follows(row) {
				line = but(owntable.Position, owntable.Expiry, owntable.Count)
			}
		case owntable.KindSubscribers:
			if owntable.SubscriberFrom(row).Says != nil {
				line = but(owntable.Position, owntable.Count, "h")
			}
		case owntable.KindSet:
			n := owntable.NodeFrom("", row)
			for name, count := range n.Counts {
				sets[part] = append(sets[part], name+" "+count.Text())
			}
		case owntable.KindTombstone:
			// What is made again in the batch that removes it leaves none, and what a batch makes and
			// removes is never copied (rows of 2# are copies of copies).
			if of, ok := owntable.RowOf(strings.TrimPrefix(part, "tomb|")); ok && !w.exists(of) && !strings.HasPrefix(of.Key.Partition.Text(), "2#") {
				line = but(owntable.Position, owntable.Expiry)
			}
		case "jobs":
			line = but()
		}
		if line != "" {
			out = append(out, "own "+line)
		}
		if row.Has(owntable.PositionOf("0")) {
			w.t.Errorf("a row keeps how far nothing has counted: %s", w.text(row, nil))
		}
	}
	for _, table := range w.m.Tables {
		for _, row := range w.scan(store.Query{Table: table.Name}) {
			key, _ := table.KeyOf(row)
			ref, e := store.Ref{Table: table.Name, Key: key}, table.Classify(row)
			if e != nil && e.SetOf() != nil {
				root, _, _ := e.LeafPath(key)
				name, members := "row of "+owntable.RowText(store.Ref{Table: table.Name, Key: root}), row.Get(e.SetOf().Attr)
				for i := range members.Len() {
					sets[name] = append(sets[name], members.At(i).Text())
				}
				continue
			}
			version, ledger := row.Get(owntable.Version), versions[owntable.Ledgers(w.m.Name)+owntable.RowText(ref)]
			if ledger.IsMissing() && e != nil && len(e.Values) > 0 {
				ledger = value.OfInt(0) // nothing was counted; another replay may have taken all of it back
			}
			is := "as the ledger"
			switch {
			case version.Kind() == value.Binary:
				is = "made"
			case e == nil || len(e.Values) == 0 && !e.IsRecomputed():
				is = "not a target" // it may keep the version that it had when it was one
			case !value.Equal(version, ledger):
				is = "version " + version.Text() + ", its ledger " + ledger.Text()
			}
			line := w.text(row, func(name string, v value.Value) bool {
				return name != owntable.Version && !(strings.HasPrefix(name, "weir.") && v.Kind() == value.Binary)
			})
			out = append(out, "row "+table.Name+" "+is+" "+line)
		}
		for _, ix := range table.Indexes {
			for _, row := range w.scan(store.Query{Table: table.Name, Index: ix.Name}) {
				key, _ := table.KeyOf(row)
				if e := table.Classify(row); e == nil || e.SetOf() == nil {
					out = append(out, "entry "+table.Name+" "+ix.Name+" "+w.text(table.Item(key), nil))
				}
			}
		}
	}
	for name, members := range sets {
		slices.Sort(members)
		out = append(out, "set "+name+": "+strings.Join(members, ", "))
	}
	slices.Sort(out)
	return out
}

// follows reports whether the row of an entry on the list of a followed value follows that value.
func (w *bulkWorld) follows(entry value.Item) bool {
	key, _ := w.m.Table(entry.Get("t").Text()).KeyOf(entry.Get("key").Item())
	row, err := store.GetRow(context.Background(), w.sys.Store, store.Ref{Table: entry.Get("t").Text(), Key: key})
	failtest.On(w.t, err)
	return row.Get(owntable.FollowsAttr(entry.Get("a").Text())).Text() == owntable.Hash(entry.Get(owntable.Partition).Text())
}

func (w *bulkWorld) exists(ref store.Ref) bool {
	row, err := store.GetRow(context.Background(), w.sys.Store, ref)
	failtest.On(w.t, err)
	return row != nil
}

// digits is how many a $position has.
const digits = 40

// made is the rows that weir made of rows of the application, those of each source row in the order of
// their positions. Changes of different rows have no order: it depends on how records are batched.
func (w *bulkWorld) made() []string {
	type made struct {
		of, name string
		at       value.Value
	}
	var rows []made
	for _, table := range w.m.Tables {
		for _, row := range w.scan(store.Query{Table: table.Name}) {
			at, e := row.Get(owntable.Version), table.Classify(row)
			if at.Kind() != value.Binary || e == nil || slices.ContainsFunc(e.MadeBy, func(r *model.RowRule) bool {
				return len(r.Source.MadeBy)+len(r.Source.Values)+len(r.Source.Latest)+len(r.Source.Statuses) > 0
			}) {
				continue
			}
			key, _ := table.KeyOf(row)
			of := w.text(row.Filter(func(name string) bool { return name == "of" }), nil) // a history's $key
			if !row.Has("of") {
				sort := key.Sort.Text()
				at := strings.LastIndexByte(sort, '#')
				if at < 0 || len(sort)-at <= digits { // no $position: nothing in the key says of which row it is
					continue
				}
				of = sort[:at]
			}
			rows = append(rows, made{of, owntable.RowText(store.Ref{Table: table.Name, Key: key}), at})
		}
	}
	slices.SortFunc(rows, func(a, b made) int {
		return cmp.Or(strings.Compare(a.of, b.of), value.Compare(a.at, b.at), strings.Compare(a.name, b.name))
	})
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].name
	}
	return names
}

func (w *bulkWorld) text(row value.Item, keep func(string, value.Value) bool) string {
	if keep != nil {
		row = row.Filter(func(name string) bool { return keep(name, row.Get(name)) })
	}
	return string(value.AppendTypedItem(nil, row))
}

func (w *bulkWorld) scan(q store.Query) (rows []value.Item) {
	w.t.Helper()
	for row, err := range store.EachRow(context.Background(), w.sys.Store, q) {
		failtest.On(w.t, err)
		rows = append(rows, row)
	}
	return rows
}

// derivedLetters counts the dead letters of what could not be derived.
func (w *bulkWorld) derivedLetters() (n int) {
	err := w.sys.Models[0].Runner.EachDeadLetter(context.Background(), func(d deadletter.Letter) error {
		if d.Kind != deadletter.Record && d.Kind != deadletter.Gap {
			n++
		}
		return nil
	})
	failtest.On(w.t, err)
	return n
}

// verified recounts everything that is derived. The ledger of a row that is gone expires if it
// holds nothing.
func (w *bulkWorld) verified() {
	w.t.Helper()
	prefix := owntable.Ledgers(w.m.Name)
	for _, row := range w.scan(store.Query{Table: owntable.TableName}) {
		of, is := strings.CutPrefix(row.Get(owntable.Partition).Text(), prefix)
		if target, ok := owntable.RowOf(of); is && ok && owntable.LedgerRow(row).Empty() {
			there, err := store.GetRow(context.Background(), w.sys.Store, target)
			failtest.On(w.t, err)
			if expires := owntable.LedgerRow(row).Expires(); expires == (there != nil) {
				w.t.Errorf("the ledger of %s, which holds nothing: expires %v, the row is there %v", target, expires, there != nil)
			}
		}
	}
	v := scratch.Of(w.sys, w.sys.Models[0])
	v.InMemory = true
	err := v.Run(context.Background(), func(d scratch.Difference) { w.t.Errorf("verify: %v", d) })
	failtest.On(w.t, err)
}

// sameRows compares what two worlds have come to.
func sameRows(t testing.TB, what string, live, bulk *bulkWorld, one, other replay.Summary) bool {
	t.Helper()
	bulk.verified()
	ok := true
	reduced := bulk.reduced != nil && *bulk.reduced
	if !reduced { // a refused record that comes twice is skipped within a batch, and refused again in the next one
		one, other = skipped(one), skipped(other)
	}
	if one != other {
		t.Errorf("%s: live %+v, bulk %+v", what, one, other)
		ok = false
	}
	// What is bad in a batch is told first, and gaps of reduced rows in the order of these.
	said, says := slices.Compact(slices.Sorted(slices.Values(live.talk))), slices.Compact(slices.Sorted(slices.Values(bulk.talk)))
	if d := gocmp.Diff(said, says); d != "" {
		t.Errorf("%s: what is said: %s", what, head(d))
		ok = false
	}
	if d := gocmp.Diff(live.dump(), bulk.dump()); d != "" {
		t.Errorf("%s: -live +bulk %s", what, head(d))
		ok = false
	}
	if d := gocmp.Diff(live.made(), bulk.made()); d != "" {
		t.Errorf("%s: rows in the order of their positions: -live +bulk %s", what, head(d))
		ok = false
	}
	return ok
}

// skipped counts what cannot be used with what is skipped.
func skipped(s replay.Summary) replay.Summary {
	s.Skipped, s.Dead = s.Skipped+s.Dead, 0
	return s
}

func head(s string) string {
	lines := strings.SplitAfter(s, "\n")
	return strings.Join(lines[:min(30, len(lines))], "")
}

func read(t testing.TB, paths []string) (batches [][]events.Entry) {
	t.Helper()
	in, err := events.Open(paths...)
	failtest.On(t, err)
	for batch, err := range in.Batches(context.Background()) {
		failtest.On(t, err)
		batches = append(batches, batch)
	}
	return batches
}

// TestRecordings replays every recording both ways: whole, then again, in windows of one batch, and
// the last batch first.
func TestRecordings(t *testing.T) {
	soaktest.Calm(t)
	for i, dir := range systemtest.Recordings(t) {
		if testing.Short() && i%3 > 0 {
			continue
		}
		m, err := model.Load(systemtest.Model(dir))
		failtest.On(t, err)
		batches := read(t, systemtest.Files(t, dir))
		live, one := newBulkWorld(t, m), newBulkWorld(t, m)
		sum := live.live(batches)
		sameRows(t, m.Name+", whole", live, one, sum, one.bulk(batches, 1<<30))
		again := live.live(batches)
		sameRows(t, m.Name+", again", live, one, again, one.bulk(batches, 1<<30))
		if one.bulks != 2 {
			t.Errorf("%s: %d of 2 replays were in bulk to their end", m.Name, one.bulks)
		}
		if testing.Short() {
			continue
		}
		many := newBulkWorld(t, m)
		got := many.bulk(batches, 1)
		many.bulk(batches, 1)
		sameRows(t, m.Name+", in small windows", live, many, sum, got)
		backwards := copied(batches)
		slices.Reverse(backwards)
		live, one = newBulkWorld(t, m), newBulkWorld(t, m)
		sameRows(t, m.Name+", backwards", live, one, live.live(copied(backwards)), one.bulk(backwards, 1<<30))
	}
}
