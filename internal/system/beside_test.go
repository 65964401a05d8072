package system_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/live"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// unanswered checks that the system answers no search.
func unanswered(t *testing.T, s *system.System, when string) {
	t.Helper()
	res, err := s.Models[0].Query.Run(t.Context(), "search-albums", map[string]string{"q": "sunset"}, query.Page{})
	if !errors.Is(err, query.ErrBuilding) {
		t.Errorf("%s a search finds %v, %v", when, res.Items, err)
	}
}

// TestReach: searches are answered when the index has all rows, and every change up to the
// end of the streams after that; in a process that comes back later, when it has again.
func TestReach(t *testing.T)           { both(t, reach) }
func TestReachOnServices(t *testing.T) { bothOnServices(t, reach) }

func reach(t *testing.T, p *place, one, _ *model.Model) {
	p.db = &paged{p.db, 3}
	s := p.system(t, one)
	for i := range 8 {
		putAlbum(t, s, fmt.Sprint("a", i), "sunset")
	}
	unanswered(t, s, "before all")
	if err := s.Built(t.Context(), s.Models[0]); !errors.Is(err, system.ErrNotBuilt) {
		t.Errorf("before all it is built: %v", err)
	}
	pages := 0
	err := s.Fill(t.Context(), func(system.Filling) {
		unanswered(t, s, "while it is filled")
		if pages++; pages == 2 { // both rows are scanned already
			deleteAlbum(t, s, "a0")
			putAlbum(t, s, "a1", "moonset")
		}
	})
	if err != nil || pages < 3 {
		t.Fatal(pages, err)
	}
	unanswered(t, s, "when it is filled, and behind,")
	if err := s.Built(t.Context(), s.Models[0]); !errors.Is(err, system.ErrNotBuilt) {
		t.Errorf("it is behind, and built: %v", err)
	}
	fillNow(t, s)
	searches(t, s, "sunset", "a2", "a3", "a4", "a5", "a6", "a7")
	searches(t, s, "moonset", "a1")

	p.closes(t, s)
	soon := p.system(t, one)
	if err := soon.Built(t.Context(), soon.Models[0]); err != nil {
		t.Errorf("a moment later: %v", err)
	}
	p.closes(t, soon)
	p.later(2 * time.Hour)
	late := p.system(t, one)
	putAlbum(t, late, "b", "rain")
	unanswered(t, late, "when no program has applied the streams")
	if err := late.Built(t.Context(), late.Models[0]); !errors.Is(err, system.ErrNotBuilt) || !strings.Contains(err.Error(), "no program has applied the streams to it since") {
		t.Errorf("two hours later: %v", err)
	}
	fillNow(t, late)
	searches(t, late, "rain", "b")
}

// follows is a process of a system: it takes leases and applies the streams until stop.
func follows(t *testing.T, s *system.System) (stop func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	f := live.Open(s.Models[0].Runner, live.Options{Lease: 3 * time.Second, Poll: 50 * time.Millisecond, List: time.Second, Log: log})
	f.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f.Apply(ctx) })
	return sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		f.Close()
	})
}

// TestProcessesSideBySide: of two processes with different definitions the first has all
// leases. Both indexes keep up, while the rows are written, and after the first has ended.
func TestProcessesSideBySide(t *testing.T)           { both(t, processesSideBySide) }
func TestProcessesSideBySideOnServices(t *testing.T) { bothOnServices(t, processesSideBySide) }

func processesSideBySide(t *testing.T, p *place, one, two *model.Model) {
	old := p.filled(t, one)
	stop := follows(t, old)
	defer stop()
	putAlbum(t, old, "a0", "dawn")
	found(t, old, "dawn", "a0")
	next := p.filled(t, two)
	end := follows(t, next)
	defer end()
	for i := range 3 {
		title := fmt.Sprint("title", i)
		putAlbum(t, old, fmt.Sprint("b", i), title)
		deleteAlbum(t, old, fmt.Sprint("b", i-1))
		found(t, old, title, fmt.Sprint("b", i))
		found(t, next, title, fmt.Sprint("b", i))
	}
	if leases := scan(t, p.db, store.Query{Table: owntable.TableName, Partition: owntable.Lease("gallery").Key.Partition}); len(leases) == 0 {
		t.Error("no leases")
	} else {
		for _, row := range leases {
			if is, err := owntable.DecodeLease(row); err != nil || is.Generation != old.Models[0].Runner.Generation {
				t.Errorf("the second process has a lease: %+v, %v", is, err)
			}
		}
	}
	stop()
	putAlbum(t, next, "c", "rain")
	found(t, next, "rain", "c")
	end()
	settle(t, next)
	settle(t, old)
	wants(t, next, "rain", "c")
	wants(t, old, "rain", "c")
	wants(t, old, "title1")
}

// found waits until a search finds exactly this.
func found(t *testing.T, s *system.System, q, id string) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for {
		if err := s.Show(t.Context()); err != nil {
			t.Fatal(err)
		}
		res, err := s.Models[0].Query.Run(t.Context(), "search-albums", map[string]string{"q": q}, query.Page{})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Items) == 1 && res.Items[0].Get("id").Text() == id {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s finds %v, want %s", q, res.Items, id)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// overloaded is an index that is overloaded at times: it takes nothing, or refuses some documents
// for now.
type overloaded struct {
	search.Index
	calls, refused int
}

var errBusy = errors.New("429 Too Many Requests")

func (b *overloaded) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	b.calls++
	switch {
	case b.calls > 12:
		return b.Index.Apply(ctx, docs)
	case b.calls%3 > 0:
		b.refused += len(docs)
		return nil, errBusy
	}
	errs := make([]error, len(docs))
	var taken []search.Document
	for i := range docs {
		if i%2 == 0 {
			errs[i] = errBusy
			b.refused++
		} else {
			taken = append(taken, docs[i])
		}
	}
	_, err := b.Index.Apply(ctx, taken)
	return errs, err
}

// TestOverloadedWhileFilled: an index that is overloaded while it is filled, for whole calls
// and for single documents, has all of them in the end.
func TestOverloadedWhileFilled(t *testing.T) {
	one, _ := galleries(t)
	p := embeddedPlace(t, one)
	s := p.system(t, one)
	for i := range 20 {
		putAlbum(t, s, fmt.Sprint("a", i), "sunset")
	}
	b := &overloaded{Index: s.Index}
	s.Index = b
	if err := s.Fill(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if s.Index = b.Index; b.refused < 20 {
		t.Errorf("%d documents were refused", b.refused)
	}
	if n := len(hits(t, s.Index, "gallery-albums")); n != 20 {
		t.Errorf("%d documents", n)
	}
}

// forgetful is a store whose streams list no shard that is closed, once told.
type forgetful struct {
	store.Store
	forgets atomic.Bool
}

func (f *forgetful) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	shards, err := f.Store.Shards(ctx, table)
	if f.forgets.Load() {
		shards = slices.DeleteFunc(shards, func(s store.Shard) bool { return s.Closed })
	}
	return shards, err
}

// TestForgottenShards: where functions read the streams, each build removes the checkpoints
// of shards that are over, which no process does.
func TestForgottenShards(t *testing.T) {
	one, _ := galleries(t)
	p := embeddedPlace(t, one)
	db := p.db.(kept).Store.(*embedded.Store)
	f := &forgetful{Store: p.db}
	p.db = f
	s := p.filled(t, one)
	checkpoints := func() int {
		t.Helper()
		return len(scan(t, p.db, store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Checkpoints("gallery", runner.SearchGroup(s.Models[0].Runner.Generation)))}))
	}
	for i := range 5 {
		putAlbum(t, s, "a", fmt.Sprint("title", i))
		if err := s.Build(t.Context(), s.Models[0], 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		shards, err := db.Shards(t.Context(), "gallery")
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Split(t.Context(), "gallery", shards[len(shards)-1].ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := checkpoints(); n < 3 {
		t.Fatalf("%d checkpoints", n)
	}
	f.forgets.Store(true)
	putAlbum(t, s, "a", "last")
	for range 2 {
		if err := s.Build(t.Context(), s.Models[0], 0, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := checkpoints(); n > 2 {
		t.Errorf("%d checkpoints are left of a stream that lists one or two shards", n)
	}
	searches(t, s, "last", "a")
}
