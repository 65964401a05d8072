package system_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// galleries are the gallery as it is, and with another definition of its search: albums are
// found by their descriptions too.
func galleries(t *testing.T) (one, two *model.Model) {
	t.Helper()
	text, err := os.ReadFile("../../models/gallery.yaml")
	if err != nil {
		t.Fatal(err)
	}
	load := func(text string) *model.Model {
		path := t.TempDir() + "/gallery.yaml"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := model.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	other := strings.Replace(string(text), "text: [title, tags]", "text: [title, createdBy]", 1)
	if other == string(text) {
		t.Fatal("the definition is as it was")
	}
	return load(string(text)), load(other)
}

// place is where programs with different models work side by side: one store, and one
// cluster or directory of indexes.
type place struct {
	db   store.Store
	dir  string
	url  string
	now  atomic.Int64 // how much later it is than by the clock
	open map[*model.Model]*system.System
}

// kept is a store that its systems do not close, and whose streams keep their records, as
// those of a service do.
type kept struct{ store.Store }

func (kept) Close() error { return nil }

func (kept) Trim(context.Context, string, string, events.Position) error { return nil }

func (p *place) clock() time.Time { return time.Now().Add(time.Duration(p.now.Load())) }

func (p *place) later(by time.Duration) { p.now.Add(int64(by)) }

// places runs a test on the embedded store and index, as if other programs used the store.
func embeddedPlace(t *testing.T, m *model.Model) *place {
	t.Helper()
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	return &place{db: kept{embeddedStore(t, tables)}, dir: t.TempDir(), open: map[*model.Model]*system.System{}}
}

// servicesPlace is on DynamoDB Local and OpenSearch.
func servicesPlace(t *testing.T, m *model.Model) *place {
	t.Helper()
	url := opensearchtest.URL(t)
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	systemtest.Made(t, db, m)
	return &place{db: kept{db}, url: url, open: map[*model.Model]*system.System{}}
}

// system is a program with a model. Two programs cannot have one embedded index open: there
// it is the one that is open already.
func (p *place) system(t *testing.T, m *model.Model) *system.System {
	t.Helper()
	if s := p.open[m]; s != nil && p.url == "" {
		return s
	}
	s, err := system.Over(t.Context(), p.db, p.dir, []*model.Model{m}, system.Options{OpenSearch: p.url, Shared: true, Now: p.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	p.open[m] = s
	return s
}

// closes ends a program.
func (p *place) closes(t *testing.T, s *system.System) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(p.open, func(_ *model.Model, o *system.System) bool { return o == s })
}

func (p *place) filled(t *testing.T, m *model.Model) *system.System {
	t.Helper()
	s := p.system(t, m)
	fillNow(t, s)
	return s
}

func fillNow(t *testing.T, s *system.System) {
	t.Helper()
	if err := s.Reach(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// both runs a test in both places.
func both(t *testing.T, run func(t *testing.T, p *place, one, two *model.Model)) {
	one, two := galleries(t)
	run(t, embeddedPlace(t, one), one, two)
}

func bothOnServices(t *testing.T, run func(t *testing.T, p *place, one, two *model.Model)) {
	one, two := galleries(t)
	run(t, servicesPlace(t, one), one, two)
}

// wants checks what a program finds, and that its indexes hold exactly the rows.
func wants(t *testing.T, s *system.System, q string, ids ...string) {
	t.Helper()
	if err := s.Show(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = s.Built(t.Context(), s.Models[0]) // the search says what it is not
	searches(t, s, q, ids...)
	verifyNothing(t, s)
}

// TestRollingDeploy: a program with a new definition starts beside one with the old, which
// applies the stream on. Each index has everything.
func TestRollingDeploy(t *testing.T)           { both(t, rollingDeploy) }
func TestRollingDeployOnServices(t *testing.T) { bothOnServices(t, rollingDeploy) }

func rollingDeploy(t *testing.T, p *place, one, two *model.Model) {
	old := p.filled(t, one)
	putAlbum(t, old, "a1", "sunrise")
	settle(t, old)
	next := p.filled(t, two)
	putAlbum(t, old, "a2", "sunset")
	settle(t, old) // the old program has the shards still
	settle(t, next)
	putAlbum(t, old, "a3", "moonset")
	settle(t, next) // the new one has them
	settle(t, old)
	for _, s := range []*system.System{old, next} {
		wants(t, s, "sunrise", "a1")
		wants(t, s, "sunset", "a2")
		wants(t, s, "moonset", "a3")
	}
}

// byFunction applies what the stream has behind the places as a function does: it has no
// checkpoints, and what it has applied does not come again.
type byFunction struct {
	s    *system.System
	gate *system.Gate
}

func (f *byFunction) invoke(t *testing.T, at map[string]events.Position) error {
	t.Helper()
	indexing, err := f.gate.Pass(t.Context())
	if err != nil {
		return err
	}
	m := f.s.Models[0].Model
	for _, mt := range m.Tables {
		shards, err := f.s.Store.Shards(t.Context(), mt.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sh := range shards {
			page, err := f.s.Store.Read(t.Context(), mt.Name, sh.ID, at[sh.ID], 1000)
			if err != nil {
				t.Fatal(err)
			}
			b := runner.Batch{ShardKey: owntable.ShardKey(mt.Name, sh.ID)}
			for i := range page.Records {
				if ch, ok := projections.NewChange(mt, &page.Records[i]); ok {
					b.Changes = append(b.Changes, ch)
				}
				at[sh.ID] = page.Records[i].Position
			}
			if _, err := f.s.Models[0].Runner.Rows(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if indexing == runner.Unindexed {
				continue
			}
			if _, err := f.s.Models[0].Runner.Documented(t.Context(), b, indexing == runner.Indexed); err != nil {
				t.Fatal(err)
			}
		}
	}
	return nil
}

func function(s *system.System) *byFunction {
	return &byFunction{s: s, gate: s.Gate(s.Models[0])}
}

// TestFilledBeforeFunction: an index is filled for a new definition while the function with
// the old one goes on. What that one acknowledged before the new function took over is missing, so searches wait for a build that
// follows the stream, and then nothing is.
func TestFilledBeforeFunction(t *testing.T)           { both(t, filledBeforeFunction) }
func TestFilledBeforeFunctionOnServices(t *testing.T) { bothOnServices(t, filledBeforeFunction) }

func filledBeforeFunction(t *testing.T, p *place, one, two *model.Model) {
	acknowledged := map[string]events.Position{}
	first := function(p.system(t, one))
	putAlbum(t, first.s, "a0", "dawn")
	if err := first.invoke(t, acknowledged); err != nil || len(acknowledged) == 0 {
		t.Fatalf("a function without an index: %v", err)
	}
	functionBegan(t, first.s)
	p.filled(t, one)
	if err := first.s.Built(t.Context(), first.s.Models[0]); err != nil {
		t.Errorf("a function was there before the index was begun: %v", err)
	}

	builds := p.filled(t, two) // before the function is updated
	putAlbum(t, first.s, "a1", "sunset")
	if err := first.invoke(t, acknowledged); err != nil {
		t.Fatal(err)
	}
	next := function(p.system(t, two))
	putAlbum(t, first.s, "a2", "moonset")
	if err := next.invoke(t, acknowledged); err != nil {
		t.Fatal(err)
	}
	if err := next.s.Built(t.Context(), next.s.Models[0]); !errors.Is(err, system.ErrNotBuilt) || !strings.Contains(err.Error(), "a function with another definition read the streams until") {
		t.Fatalf("what another function acknowledged is missing: %v", err)
	}
	steps, ended := make(chan system.Building, 9), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		ended <- builds.Build(ctx, builds.Models[0], time.Nanosecond, nil, func(b system.Building) { steps <- b })
	}()
	putAlbum(t, first.s, "a3", "rain")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := next.invoke(t, acknowledged); err != nil {
		t.Fatal(err)
	}
	if err := next.s.Built(t.Context(), next.s.Models[0]); err != nil {
		t.Fatal(err)
	}
	for q, id := range map[string]string{"dawn": "a0", "sunset": "a1", "moonset": "a2", "rain": "a3"} {
		wants(t, next.s, q, id)
	}
}

// functionBegan leaves what a function leaves that has read the stream.
func functionBegan(t *testing.T, s *system.System) {
	t.Helper()
	run := *s.Models[0].Runner
	run.Reader = catalog.Shard
	if _, err := run.Admit(t.Context(), []string{"gallery"}, runner.GroupRows); err != nil {
		t.Fatal(err)
	}
}

// TestFunctionNeverFills: a warm function reads no row of the model at an invocation, whether
// its index is filled, being filled or not there.
func TestFunctionNeverFills(t *testing.T)           { both(t, functionNeverFills) }
func TestFunctionNeverFillsOnServices(t *testing.T) { bothOnServices(t, functionNeverFills) }

func functionNeverFills(t *testing.T, p *place, one, _ *model.Model) {
	reads := &reading{Store: p.db}
	p.db = reads
	putAlbum(t, p.system(t, one), "a1", "sunset")
	f := p.system(t, one)
	gate := f.Gate(f.Models[0])
	for range 3 {
		if is, err := gate.Pass(t.Context()); err != nil || is != runner.Unindexed {
			t.Error(is, err)
		}
	}
	stop := errors.New("stop")
	filling, cancel := context.WithCancelCause(t.Context())
	err := p.system(t, one).Fill(filling, func(system.Filling) { cancel(stop) })
	if err == nil {
		t.Fatal("it was filled at once")
	}
	before := reads.queries
	for range 3 { // being filled elsewhere
		if is, err := gate.Pass(t.Context()); err != nil || is != runner.Indexed {
			t.Error(is, err)
		}
	}
	gets := reads.gets
	for range 10 {
		if _, err := gate.Pass(t.Context()); err != nil || reads.gets != gets {
			t.Errorf("a warm function reads %d times, %v", reads.gets-gets, err)
		}
	}
	if reads.queries != before {
		t.Errorf("a function reads %d pages of rows", reads.queries-before)
	}
}

// reading counts reads.
type reading struct {
	store.Store
	gets, queries int
}

func (r *reading) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if len(refs) > 0 && refs[0].Table == owntable.TableName && strings.HasPrefix(refs[0].Key.Partition.Text(), "search") {
		r.gets++
	}
	return r.Store.Get(ctx, refs)
}

func (r *reading) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Table != owntable.TableName {
		r.queries++
	}
	return r.Store.Query(ctx, q)
}

// TestFillGoesOn: filling is stopped after each page by turns, and goes on behind the page.
// What is deleted meanwhile stays deleted.
func TestFillGoesOn(t *testing.T)           { both(t, fillGoesOn) }
func TestFillGoesOnOnServices(t *testing.T) { bothOnServices(t, fillGoesOn) }

func fillGoesOn(t *testing.T, p *place, one, _ *model.Model) {
	p.db = &paged{p.db, 3}
	s := p.system(t, one)
	for i := range 30 {
		putAlbum(t, s, fmt.Sprintf("a%02d", i), "sunset")
	}
	var read []int
	for try := 0; ; try++ {
		if try > 60 {
			t.Fatalf("it does not end: rows read: %v", read)
		}
		p.later(5 * time.Minute) // the filler before is given up
		ctx, cancel := context.WithCancel(t.Context())
		pages := 0
		per := 1 + try%2 // each page is once the last
		s := p.system(t, one)
		err := s.Fill(ctx, func(f system.Filling) {
			read = append(read, f.Rows)
			if pages++; pages == per {
				cancel()
			}
		})
		cancel()
		if try == 0 {
			fills := func(want bool) {
				t.Helper()
				if gs, err := s.SearchGenerations(t.Context(), s.Models[0]); err != nil || len(gs) != 1 || gs[0].Rows == 0 || gs[0].Filling != want {
					t.Errorf("%+v %v, want filling %v", gs, err, want)
				}
			}
			fills(true) // that it has stopped is not known yet
			p.later(time.Minute)
			fills(false)
		}
		if try == 2 { // the scan has passed some, and what is not scanned goes too
			deleteAlbum(t, s, "a00")
			deleteAlbum(t, s, "a29")
			done := make(chan struct{})
			close(done) // the rows' group passes the deletions, which the search group must not
			f := runner.Follower{Runner: s.Models[0].Runner, Only: runner.GroupRows}
			if err := f.CatchUp(t.Context(), done); err != nil {
				t.Fatal(err)
			}
		}
		if err == nil {
			break
		}
	}
	if !slices.IsSorted(read) || len(slices.Compact(read)) < 8 {
		t.Errorf("rows read: %v", read)
	}
	done := p.filled(t, one)
	settle(t, done)
	if err := done.Show(t.Context()); err != nil {
		t.Fatal(err)
	}
	verifyNothing(t, done)
	if n := len(hits(t, done.Index, "gallery-albums")); n != 28 {
		t.Errorf("%d documents, want 28", n)
	}
}

// paged is a store whose pages are small.
type paged struct {
	store.Store
	rows int
}

func (p *paged) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Table != owntable.TableName && (q.Limit == 0 || q.Limit > p.rows) {
		q.Limit = p.rows
	}
	return p.Store.Query(ctx, q)
}

func deleteAlbum(t *testing.T, s *system.System, id string) {
	t.Helper()
	writeOne(t, s.Store, store.Write{
		Ref: store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString("ALBUM#" + id), Sort: value.OfString("METADATA")}}, Delete: true,
	})
}

// TestGoBack: a program with the earlier definition goes on from its checkpoints. After a
// time that streams do not cover, its index is made again.
func TestGoBack(t *testing.T)           { both(t, goBack) }
func TestGoBackOnServices(t *testing.T) { bothOnServices(t, goBack) }

func goBack(t *testing.T, p *place, one, two *model.Model) {
	first := p.filled(t, one)
	putAlbum(t, first, "a1", "sunrise")
	settle(t, first)
	instance := first.Index.Instance("gallery-albums")
	next := p.filled(t, two)
	putAlbum(t, next, "a2", "sunset")
	deleteAlbum(t, next, "a1")
	settle(t, next)
	p.closes(t, first)
	p.later(19 * time.Hour)
	back := p.filled(t, one)
	if back.Index.Instance("gallery-albums") != instance {
		t.Error("an index that the stream covers is made again")
	}
	settle(t, back)
	wants(t, back, "sunset", "a2")
	wants(t, back, "sunrise")
	p.closes(t, back)

	p.later(21 * time.Hour)
	putAlbum(t, next, "a3", "moonset")
	deleteAlbum(t, next, "a2")
	settle(t, next)
	late := p.filled(t, one)
	if late.Index.Instance("gallery-albums") == instance {
		t.Error("an index that has missed changes is used")
	}
	settle(t, late)
	wants(t, late, "moonset", "a3")
	wants(t, late, "sunset")
}

// TestPrune: what no program applies any more is removed: indexes, checkpoints and rows.
// What one applies stays, and so does the model's own.
func TestPrune(t *testing.T)           { both(t, prune) }
func TestPruneOnServices(t *testing.T) { bothOnServices(t, prune) }

func prune(t *testing.T, p *place, one, two *model.Model) {
	old := p.filled(t, one)
	putAlbum(t, old, "a1", "sunset")
	settle(t, old)
	hash := old.Models[0].Runner.Generation
	group := runner.SearchGroup(hash)
	for i := range 20 { // a function had them
		note := owntable.Pend("gallery", hash, "gallery-albums", fmt.Sprintf("S1:%dS1:b", i), events.PositionOf(1))
		if out, err := old.Store.Write(t.Context(), []store.Write{note}); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	p.closes(t, old)
	next := p.filled(t, two)
	settle(t, next)
	pruned := func() (out []system.Pruned) {
		t.Helper()
		if err := next.Prune(t.Context(), next.Models[0], func(x system.Pruned) { out = append(out, x) }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	left := func() (n int) {
		for _, partition := range append(owntable.Pending("gallery", hash), owntable.Checkpoints("gallery", group)) {
			n += len(scan(t, next.Store, store.Query{Table: owntable.TableName, Partition: value.OfString(partition)}))
		}
		return n
	}
	if got := pruned(); len(got) != 1 || got[0].Why == "" || len(got[0].Indexes) != 2 || left() == 0 {
		t.Errorf("one that was applied within the hour: %+v", got)
	}
	p.later(2 * time.Hour)
	got := pruned()
	if len(got) != 1 || got[0].Why != "" || left() != 0 || len(generationRows(t, next)) != 1 {
		t.Errorf("%+v, %d checkpoints and pending documents, %d rows", got, left(), len(generationRows(t, next)))
	}
	if got := pruned(); len(got) != 0 {
		t.Errorf("again: %+v", got)
	}
	wants(t, next, "sunset", "a1")
	back := p.system(t, one) // its index is gone
	if fresh := back.Index.Fresh(); len(fresh) != 2 {
		t.Errorf("fresh are %v", fresh)
	}
	if hs, err := back.Index.Search(t.Context(), search.Query{Index: "gallery-albums", Limit: 9}); err != nil || len(hs) > 0 {
		t.Errorf("%v, %v", hs, err)
	}
}
