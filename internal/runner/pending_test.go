package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/document"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// meddled is a store between whose calls other things happen.
type meddled struct {
	store.Store
	between func()
}

func (m meddled) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	m.between()
	return m.Store.Get(ctx, refs)
}

func (m meddled) Query(ctx context.Context, q store.Query) (store.Page, error) {
	m.between()
	return m.Store.Query(ctx, q)
}

func (m meddled) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	m.between()
	return m.Store.Write(ctx, ws)
}

// flaky is an index that fails now and then, when it has taken a part of the documents, or none.
type flaky struct {
	search.Index
	rng  *rand.Rand
	well bool
}

func (f *flaky) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	if f.well || f.rng.IntN(2) == 0 {
		return f.Index.Apply(ctx, docs)
	}
	if _, err := f.Index.Apply(ctx, docs[:f.rng.IntN(len(docs)+1)]); err != nil {
		return nil, err
	}
	return nil, errors.New("it does not answer")
}

// TestPendingDocuments: whatever order rows change, events come and come again, and what is pending is written in, between any two
// calls of each other, the index ends with each document as its row is.
func TestPendingDocuments(t *testing.T) {
	soaktest.Calm(t)
	m, err := model.Load("gallery")
	failtest.On(t, err)
	const albums = 2
	pending, caught := 0, 0
	for seed := range uint64(soaktest.Count(100, 4000)) {
		s := newSearching(t)
		rng := rand.New(rand.NewPCG(seed, 3))
		ix := &flaky{Index: s.mood.Index, rng: rng}
		r := s.runner(nil)
		r.Index = ix
		deep, at := 0, 0
		var step func()
		between := func() {
			for deep < 2 && rng.IntN(3) > 0 {
				deep++
				step()
				deep--
			}
		}
		r.Store = meddled{s.store, between}
		invoke := func(from, to int) {
			var b runner.Batch
			for i := from; i < to; i++ {
				if c, ok := projections.NewChange(m.Tables[0], &s.records[i].rec); ok {
					b.Changes = append(b.Changes, c)
				}
			}
			writing := context.Background()
			if rng.IntN(4) == 0 {
				writing = nil
			}
			_, n, err := document.WriteDocuments(context.Background(), r, []runner.Batch{b}, writing)
			failtest.On(t, err)
			pending += n
		}
		step = func() {
			for s.pull() > 0 {
			}
			switch n := rng.IntN(albums); rng.IntN(6) {
			case 0, 1:
				s.album(n, fmt.Sprint("title ", rng.IntN(3)))
			case 2:
				failtest.On(t, s.write(fmt.Sprintf(`delete gallery {"PK":"ALBUM#%d","SK":"METADATA"}`, n)))
			case 3:
				if to := min(len(s.records), at+1+rng.IntN(8)); to > at {
					from := at
					invoke(from, to)
					at = max(at, to)
				}
			case 4:
				if at > 0 { // again
					from := rng.IntN(at)
					invoke(from, from+1+rng.IntN(at-from))
				}
			default:
				n, err := document.CatchUp(context.Background(), r)
				if caught += n; err != nil && err.Error() != "documents are pending: it does not answer" {
					t.Fatal(err)
				}
			}
		}
		for range 16 {
			step()
		}
		deep, ix.well = 2, true
		for s.pull() > 0 {
		}
		invoke(at, len(s.records))
		if _, err := document.CatchUp(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		for _, of := range m.Searches {
			for n := range albums {
				key := store.Key{Partition: value.OfString(fmt.Sprint("ALBUM#", n)), Sort: value.OfString("METADATA")}
				row, err := r.GetRow(context.Background(), store.Ref{Table: "gallery", Key: key})
				failtest.On(t, err)
				want, there := document.DocumentOf(m, of, m.Tables[0].Classify(row), key, row)
				if row == nil || !there {
					want = search.Document{Index: document.IndexName(m, of), ID: search.ID(key)}
					if hits, err := ix.Search(context.Background(), search.Query{Index: want.Index, Limit: 100}); err != nil || contains(hits, want.ID) {
						t.Errorf("seed %d: %s is found, and its row is gone: %v", seed, want.ID, err)
					}
					continue
				}
				if held, err := ix.Holds(context.Background(), []search.Document{want}); err != nil || !held[0] {
					t.Errorf("seed %d: %s is not as its row: %v", seed, want.ID, err)
				}
			}
		}
		s.close()
	}
	if pending < 100 || caught < 50 {
		t.Errorf("%d documents were pending, %d written", pending, caught)
	}
}

// TestPendingWhileWritten: a document that becomes pending again while it is written stays so.
func TestPendingWhileWritten(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	s := newSearching(t)
	defer s.close()
	r := s.runner(nil)
	changes := func(title string) {
		s.album(1, title)
		for s.pull() > 0 {
		}
		c, _ := projections.NewChange(m.Tables[0], &s.records[len(s.records)-1].rec)
		if _, n, err := document.WriteDocuments(t.Context(), r, []runner.Batch{{Changes: []projections.Change{c}}}, nil); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	changes("one")
	deep := false
	r.Store = onWrite{s.store, func() {
		if !deep {
			deep = true
			changes("two")
		}
	}}
	for i := range 2 {
		if n, err := document.CatchUp(t.Context(), r); err != nil || n != i {
			t.Errorf("the %d. time, %d are written: %v", i+1, n, err)
		}
	}
}

// TestPendingNever: a document that no index can take is a dead letter, also while the index is down.
func TestPendingNever(t *testing.T) {
	s := newSearching(t)
	defer s.close()
	key := value.NewItem(value.Attr{Name: "PK", Value: value.OfString("ALBUM#" + strings.Repeat("x", 600))}, value.Attr{Name: "SK", Value: value.OfString("METADATA")})
	row := key.With(value.Attr{Name: "EntityType", Value: value.OfString("Album")}).With(value.Attr{Name: "title", Value: value.OfString("sea")}).With(value.Attr{Name: "isPublic", Value: value.OfString("true")})
	c, ok := projections.NewChange(s.model.Tables[0], &events.Record{Position: events.PositionOf(1), Keys: key, New: row})
	_, n, err := document.WriteDocuments(t.Context(), s.runner(nil), []runner.Batch{{ShardKey: "s", Changes: []projections.Change{c}}}, nil)
	letters := 0
	failtest.On(t, s.runner(nil).EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
		if letters++; d.Kind != deadletter.Document {
			t.Errorf("%+v", d)
		}
		return nil
	}))
	if !ok || err != nil || n != 0 || letters != 1 {
		t.Errorf("%d are pending, and %d letters: %v", n, letters, err)
	}
}

// TestPendingOfAnother: a document of an index that the model does not have stays pending.
func TestPendingOfAnother(t *testing.T) {
	s := newSearching(t)
	defer s.close()
	r := s.runner(nil)
	out, err := s.store.Write(t.Context(), []store.Write{owntable.PendDocument(r.Model.Name, r.Generation, r.Model.Name+"-others", "S1:aS1:b", events.PositionOf(7))})
	failtest.On(t, err)
	failtest.On(t, out[0].Err)
	if done, err := document.CatchUp(t.Context(), r); done != 0 || err != nil {
		t.Errorf("%d done, %v", done, err)
	}
	if n, err := document.CountPending(t.Context(), r, 10); n != 1 || err != nil {
		t.Errorf("%d pending, %v", n, err)
	}
}

// onWrite is a store before whose writes something happens.
type onWrite struct {
	store.Store
	first func()
}

func (w onWrite) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	w.first()
	return w.Store.Write(ctx, ws)
}

func contains(hits []search.Hit, id string) bool {
	return slices.ContainsFunc(hits, func(h search.Hit) bool { return h.ID == id })
}
