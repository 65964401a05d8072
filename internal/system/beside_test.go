package system_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/search"
	"weir/internal/store"
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

// TestReach: searches are answered when the index has all rows, and what was pending is written; in a process that comes back later
// too.
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
	run := s.Models[0].Runner
	note := owntable.PendDocument("gallery", run.Generation, "gallery-albums", search.ID(store.Key{Partition: value.OfString("ALBUM#a2"), Sort: value.OfString("METADATA")}), events.PositionOf(1))
	writeOne(t, s.Store, note)
	unanswered(t, s, "when it is filled, and documents are pending,")
	if err := s.Built(t.Context(), s.Models[0]); !errors.Is(err, system.ErrNotBuilt) {
		t.Errorf("documents are pending, and it is built: %v", err)
	}
	fillNow(t, s)
	if n, err := document.CountPending(t.Context(), run, 9); n > 0 || err != nil {
		t.Error(n, err)
	}
	settle(t, s)
	searches(t, s, "sunset", "a2", "a3", "a4", "a5", "a6", "a7")
	searches(t, s, "moonset", "a1")

	p.closes(t, s)
	soon := p.system(t, one)
	if err := soon.Built(t.Context(), soon.Models[0]); err != nil {
		t.Errorf("a moment later: %v", err)
	}
}

// follows is a process of a system: it takes leases and applies the streams until stop. ended receives why it ended.
func follows(s *system.System) (stop func(), ended <-chan error) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	f := reader.NewLeased(s.Models[0].Runner, reader.Options{Lease: 3 * time.Second, Poll: 50 * time.Millisecond, List: time.Second, Log: log})
	f.Start()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { over <- f.Apply(ctx) })
	return func() {
		cancel()
		wg.Wait()
		f.Close()
	}, over
}

// TestProcessesSideBySide: a process with another definition begins beside one that reads. That one ends, and says why; the
// index of the new one has all that was written before, and meanwhile.
func TestProcessesSideBySide(t *testing.T)           { both(t, processesSideBySide) }
func TestProcessesSideBySideOnServices(t *testing.T) { bothOnServices(t, processesSideBySide) }

func processesSideBySide(t *testing.T, p *place, one, two *model.Model) {
	old := p.filled(t, one)
	stop, ended := follows(old)
	putAlbum(t, old, "a0", "dawn")
	found(t, old, "dawn", "a0")
	next := p.filled(t, two)
	putAlbum(t, old, "b", "title")
	deleteAlbum(t, old, "a0")
	if err := <-ended; !errors.Is(err, catalog.ErrDefinition) {
		t.Errorf("the old process ends with %v", err)
	}
	stop()
	end, over := follows(next)
	found(t, next, "title", "b")
	found(t, next, "dawn", "")
	end()
	if err := <-over; err != nil {
		t.Error(err)
	}
	settle(t, next)
	wants(t, next, "title", "b")
}

// found waits until a search finds exactly this, nothing if it is "".
func found(t *testing.T, s *system.System, q, id string) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for {
		failtest.On(t, s.Show(t.Context()))
		res, err := s.Models[0].Query.Run(t.Context(), "search-albums", map[string]string{"q": q}, query.Page{})
		failtest.On(t, err)
		if len(res.Items) == 0 && id == "" || len(res.Items) == 1 && res.Items[0].Get("id").Text() == id {
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
	failtest.On(t, s.Fill(t.Context(), nil))
	if s.Index = b.Index; b.refused < 20 {
		t.Errorf("%d documents were refused", b.refused)
	}
	if n := len(hits(t, s.Index, "gallery-albums")); n != 20 {
		t.Errorf("%d documents", n)
	}
}
