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
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/document"
	"weir/internal/reader"
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
	failtest.On(t, err)
	load := func(text string) *model.Model {
		path := t.TempDir() + "/gallery.yaml"
		failtest.On(t, os.WriteFile(path, []byte(text), 0o600))
		m, err := model.Load(path)
		failtest.On(t, err)
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
	failtest.On(t, err)
	return &place{db: kept{embeddedStore(t, tables)}, dir: t.TempDir(), open: map[*model.Model]*system.System{}}
}

// servicesPlace is on DynamoDB Local and OpenSearch.
func servicesPlace(t *testing.T, m *model.Model) *place {
	t.Helper()
	url := opensearchtest.URL(t)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
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
	failtest.On(t, err)
	t.Cleanup(func() { s.Close() })
	p.open[m] = s
	return s
}

// closes ends a program.
func (p *place) closes(t *testing.T, s *system.System) {
	t.Helper()
	failtest.On(t, s.Close())
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
	failtest.On(t, s.Reach(t.Context(), nil))
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
	failtest.On(t, s.Show(t.Context()))
	_ = s.Built(t.Context(), s.Models[0]) // the search says what it is not
	searches(t, s, q, ids...)
	verifyNothing(t, s)
}

// TestRollingDeploy: a program with a new definition starts beside one with the old. From when its index is begun, the old one is
// refused, and what that one applied before, or still applies, is in the new index. Going back is the same.
func TestRollingDeploy(t *testing.T)           { both(t, rollingDeploy) }
func TestRollingDeployOnServices(t *testing.T) { bothOnServices(t, rollingDeploy) }

func rollingDeploy(t *testing.T, p *place, one, two *model.Model) {
	old := p.filled(t, one)
	putAlbum(t, old, "a1", "sunrise")
	settle(t, old)
	instance := old.Index.Instance("gallery-albums")
	run := old.Models[0].Runner
	row, err := run.Admit(t.Context(), nil)
	failtest.On(t, err)
	putAlbum(t, old, "a2", "sunset")
	event := changesOf(t, old)
	next := p.filled(t, two)
	if indexed, err := document.IsIndexed(run, row); err != nil || !indexed { // by the catalog as it was read before
		t.Fatal(indexed, err)
	}
	if _, err := run.ApplyRows(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	if _, _, err := document.WriteDocuments(t.Context(), run, []runner.Batch{event}, t.Context()); err != nil {
		t.Fatal(err)
	}
	wants(t, next, "sunset", "a2")
	putAlbum(t, old, "a3", "moonset")
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: run}
	if err := f.CatchUp(t.Context(), done); !errors.Is(err, catalog.ErrDefinition) || !strings.Contains(err.Error(), "of another definition") {
		t.Fatalf("the old program goes on: %v", err)
	}
	if err := old.Built(t.Context(), old.Models[0]); !errors.Is(err, system.ErrNotBuilt) {
		t.Errorf("nothing keeps the index of the old program: %v", err)
	}
	if err := old.Fill(t.Context(), nil); !errors.Is(err, catalog.ErrDefinition) {
		t.Errorf("a program that runs takes its index back: %v", err)
	}
	settle(t, next)
	wants(t, next, "moonset", "a3")
	deleteAlbum(t, next, "a1")
	settle(t, next)
	p.closes(t, old)

	back := p.filled(t, one)
	if back.Index.Instance("gallery-albums") == instance {
		t.Error("an index that has missed changes is used")
	}
	settle(t, back)
	wants(t, back, "moonset", "a3")
	wants(t, back, "sunrise")
}

// changesOf returns what the streams have, as one batch.
func changesOf(t *testing.T, s *system.System) (b runner.Batch) {
	t.Helper()
	for _, mt := range s.Models[0].Model.Tables {
		shards, err := s.Store.Shards(t.Context(), mt.Name)
		failtest.On(t, err)
		for _, sh := range shards {
			page, err := s.Store.Read(t.Context(), mt.Name, sh.ID, events.Position{}, 1000)
			failtest.On(t, err)
			b.ShardKey = owntable.ShardKey(mt.Name, sh.ID)
			for i := range page.Records {
				if ch, ok := projections.NewChange(mt, &page.Records[i]); ok {
					b.Changes = append(b.Changes, ch)
				}
			}
		}
	}
	return b
}

// TestFunctionNeverFills: a function reads no row of the model to find out what becomes of documents, whether
// its index is filled, being filled or not there.
func TestFunctionNeverFills(t *testing.T)           { both(t, functionNeverFills) }
func TestFunctionNeverFillsOnServices(t *testing.T) { bothOnServices(t, functionNeverFills) }

func functionNeverFills(t *testing.T, p *place, one, _ *model.Model) {
	reads := &reading{Store: p.db}
	p.db = reads
	putAlbum(t, p.system(t, one), "a1", "sunset")
	run := p.system(t, one).Models[0].Runner
	indexed := func(want bool) {
		t.Helper()
		row, err := run.Admit(t.Context(), nil)
		failtest.On(t, err)
		if is, err := document.IsIndexed(run, row); err != nil || is != want {
			t.Error(is, err)
		}
	}
	indexed(false)
	stop := errors.New("stop")
	filling, cancel := context.WithCancelCause(t.Context())
	if err := p.system(t, one).Fill(filling, func(system.Filling) { cancel(stop) }); err == nil {
		t.Fatal("it was filled at once")
	}
	before := reads.queries
	indexed(true) // being filled elsewhere
	if reads.queries != before {
		t.Errorf("a function reads %d pages of rows", reads.queries-before)
	}
}

// reading counts reads.
type reading struct {
	store.Store
	queries int
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
			close(done)
			f := reader.Follower{Runner: s.Models[0].Runner}
			failtest.On(t, f.CatchUp(t.Context(), done))
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
	failtest.On(t, done.Show(t.Context()))
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

// TestPrune: what readers do not keep is removed: indexes, what is pending for them, and rows.
// What they keep stays, and so does the model's own.
func TestPrune(t *testing.T)           { both(t, prune) }
func TestPruneOnServices(t *testing.T) { bothOnServices(t, prune) }

func prune(t *testing.T, p *place, one, two *model.Model) {
	old := p.filled(t, one)
	putAlbum(t, old, "a1", "sunset")
	settle(t, old)
	hash := old.Models[0].Runner.Generation
	for i := range 20 {
		note := owntable.PendDocument("gallery", hash, "gallery-albums", fmt.Sprintf("S1:%dS1:b", i), events.PositionOf(1))
		if out, err := old.Store.Write(t.Context(), []store.Write{note}); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	next := p.filled(t, two)
	pruned := func(s *system.System) (out []system.Pruned) {
		t.Helper()
		failtest.On(t, s.Prune(t.Context(), s.Models[0], func(x system.Pruned) { out = append(out, x) }))
		return out
	}
	if got := pruned(old); len(got) != 1 || got[0].Why == "" || len(got[0].Indexes) != 2 {
		t.Errorf("what readers keep: %+v", got)
	}
	p.closes(t, old)
	settle(t, next)
	left := 0
	got := pruned(next)
	for _, partition := range owntable.Pending("gallery", hash) {
		left += len(scan(t, next.Store, store.Query{Table: owntable.TableName, Partition: value.OfString(partition)}))
	}
	if len(got) != 1 || got[0].Why != "" || left != 0 || len(generationRows(t, next)) != 1 {
		t.Errorf("%+v, %d pending documents, %d rows", got, left, len(generationRows(t, next)))
	}
	if got := pruned(next); len(got) != 0 {
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

// TestSearchRemoved: a program whose model has no searches any more begins beside one that keeps an index. That one is refused, in place
// of answering from an index that lacks what comes now.
func TestSearchRemoved(t *testing.T) {
	both(t, func(t *testing.T, p *place, one, _ *model.Model) {
		text, err := os.ReadFile("../../models/gallery.yaml")
		failtest.On(t, err)
		before, after, _ := strings.Cut(string(text), "\nsearch:")
		_, queries, _ := strings.Cut(after, "\nqueries:")
		kept, _, _ := strings.Cut(queries, "search-")
		path := t.TempDir() + "/gallery.yaml"
		failtest.On(t, os.WriteFile(path, []byte(before+"\nqueries:"+kept), 0o600))
		without, err := model.Load(path)
		failtest.On(t, err)
		old := p.filled(t, one)
		failtest.On(t, p.system(t, without).NameIndexes(t.Context()))
		if err := old.Reach(t.Context(), nil); !errors.Is(err, catalog.ErrDefinition) {
			t.Error(err)
		}
		done := make(chan struct{})
		close(done)
		putAlbum(t, old, "a1", "sunset")
		if err := (&reader.Follower{Runner: old.Models[0].Runner}).CatchUp(t.Context(), done); !errors.Is(err, catalog.ErrDefinition) {
			t.Errorf("the old program goes on: %v", err)
		}
		settle(t, p.system(t, without))
	})
}

// slowIndex is an index that takes a while.
type slowIndex struct{ search.Index }

func (s slowIndex) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	time.Sleep(50 * time.Millisecond)
	return s.Index.Apply(ctx, docs)
}

// TestCheckpointUnderLoad: the checkpoint of a shard that gets records all the time goes on moving when a build is announced, or another
// reader has moved it, although documents are being written then.
func TestCheckpointUnderLoad(t *testing.T) {
	one, _ := galleries(t)
	s := embeddedPlace(t, one).filled(t, one)
	r := *s.Models[0].Runner
	r.Index = slowIndex{s.Index}
	stop, ended := make(chan struct{}), make(chan error, 1)
	f := reader.Follower{Runner: &r, Stop: stop, Prompt: true}
	go func() { ended <- f.Run(t.Context()) }()
	wrote := 0
	write := func() {
		putAlbum(t, s, fmt.Sprint("a", wrote%2), fmt.Sprint("title", wrote))
		wrote++
		time.Sleep(time.Millisecond)
	}
	at := func() (last events.Position) {
		places, err := reader.ReadPlaces(t.Context(), &r)
		failtest.On(t, err)
		for _, p := range places {
			if p.At.Compare(last) > 0 {
				last = p.At
			}
		}
		return last
	}
	moves := func() {
		t.Helper()
		from := at()
		for deadline := time.Now().Add(20 * time.Second); at().Compare(from) <= 0; write() {
			if time.Now().After(deadline) {
				t.Fatal("no checkpoint moves")
			}
		}
	}
	moves()
	b := s.Models[0].Builder()
	b.Names, b.Again, b.Asked = b.Names[:1], true, s.Now()
	for range 3 {
		if _, err := b.Announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		moves()
		moves()
		failtest.On(t, b.Abort(t.Context()))
		shards, err := s.Store.Shards(t.Context(), "gallery")
		failtest.On(t, err)
		for _, is := range shards { // another reader moves it
			writeOne(t, s.Store, owntable.OvertakeCheckpoint(owntable.Checkpoint("gallery", "gallery", is.ID), s.Store.Tip().Given))
		}
		moves()
		moves()
	}
	close(stop)
	failtest.On(t, <-ended)
}
