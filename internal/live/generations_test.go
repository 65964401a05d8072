package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/search"
)

// sink is the index of a search generation: it remembers the newest of each document.
type sink struct {
	search.Index
	generation string

	mu   sync.Mutex
	docs map[string]search.Document
}

func newSink(generation string) *sink {
	return &sink{generation: generation, docs: map[string]search.Document{}}
}

func (s *sink) Apply(_ context.Context, docs []search.Document) ([]error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range docs {
		if is, ok := s.docs[d.ID]; !ok || is.Position.Compare(d.Position) <= 0 {
			s.docs[d.ID] = d
		}
	}
	return make([]error, len(docs)), nil
}

// Trim does nothing where processes have different generations: a stream that they share
// keeps its records for a day.
func (p *process) Trim(ctx context.Context, table, shard string, upTo events.Position) error {
	if p.world.searches[0] != nil {
		return nil
	}
	return p.Store.Trim(ctx, table, shard, upTo)
}

// same waits until two indexes have the same documents, and some.
func (w *world) same(a, b *sink) {
	w.Helper()
	state := func(s *sink) (out map[string]string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		out = map[string]string{}
		for id, d := range s.docs {
			out[id] = fmt.Sprint(d.Position, d.Deleted, d.Text)
		}
		return out
	}
	deadline := time.Now().Add(time.Minute)
	for {
		x, y := state(a), state(b)
		if len(x) > 5 && fmt.Sprint(x) == fmt.Sprint(y) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("one index has %v, the other %v", x, y)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestGenerationsSideBySide: two processes apply different search generations. Both indexes
// keep up, over splits of shards and a process that is killed, and nothing is kept of the
// shards that are over, whichever process removes them first.
func TestGenerationsSideBySide(t *testing.T) {
	if testing.Short() {
		t.Skip("checkpoints have to stand still")
	}
	w := newWorld(t)
	w.searches = []*sink{newSink("one"), newSink("two")}
	rng := rand.New(rand.NewPCG(17, 17))
	stop := w.application(4)
	w.start(0)
	w.start(1)
	for range 4 {
		time.Sleep(lease)
		w.split(rng)
	}
	stop()
	w.settles()
	w.same(w.searches[0], w.searches[1])
	w.kill(0)
	stop = w.application(5)
	time.Sleep(4 * lease)
	w.start(0)
	w.split(rng)
	stop()
	w.settles()
	w.same(w.searches[0], w.searches[1])
	kept := w.keptOfShards()
	w.forgetful.Store(true)
	stop = w.application(6)
	for _, silent := range []int{0, 1} { // who reads removes what is kept for its own generation
		w.kill(silent)
		for deadline := time.Now().Add(20 * lease); w.keptOfShards() > 0 && time.Now().Before(deadline); {
			time.Sleep(lease / 5)
		}
		w.start(silent)
	}
	stop()
	w.settles()
	w.same(w.searches[0], w.searches[1])
	if after := w.keptOfShards(); kept == 0 || after > 0 {
		t.Errorf("of closed shards there were %d rows and directories, then %d", kept, after)
	}
	if n := w.notes.Load(); n > 0 {
		t.Errorf("%d gaps", n)
	}
	for i := range w.procs {
		w.procs[i].stop()
		must(t, <-w.procs[i].ended)
	}
}
