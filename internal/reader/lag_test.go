package reader_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
)

// sparse is a store that, as DynamoDB, gives empty pages of a shard before its records.
type sparse struct {
	store.Store
	mu    sync.Mutex
	empty map[string]int // pages of each shard
}

func (s *sparse) Tip() store.Tip { return store.Tip{Lag: time.Second} }

func (s *sparse) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	s.mu.Lock()
	s.empty[shard]--
	left := s.empty[shard]
	s.mu.Unlock()
	if left >= 0 {
		return store.Records{}, nil
	}
	return s.Store.Read(ctx, table, shard, after, limit)
}

// TestEmptyPages: empty pages prove nothing. Of an open shard of which nothing was read, only what is older than a shard lives is
// taken for applied; a closed one is read to its end, or is not known.
func TestEmptyPages(t *testing.T) {
	w := worldOf(t, 1, 1)
	rng := rand.New(rand.NewPCG(3, 3))
	w.deed(rng)
	w.start(0)
	w.settles()
	w.seenAt(time.Now().Add(-time.Minute))
	w.procs[0].stop()
	failtest.On(t, <-w.procs[0].ended)
	shards := func() []store.Shard {
		all, err := w.db.Shards(t.Context(), "gallery")
		failtest.On(t, err)
		return all
	}
	failtest.On(t, w.db.Split(t.Context(), "gallery", shards()[0].ID))
	for range 20 { // so that each child has records
		w.deed(rng)
	}
	now := time.Now().Add(20 * time.Hour)
	at := &sparse{Store: w.db}
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: at, Now: func() time.Time { return now }}
	look := func(empty int) (s reader.Sight) {
		at.empty = map[string]int{}
		for _, sh := range shards() {
			at.empty[sh.ID] = empty
		}
		places, err := reader.ReadPlaces(t.Context(), run)
		failtest.On(t, err)
		s, err = reader.LookAt(t.Context(), run, "gallery", places)
		failtest.On(t, err)
		return s
	}
	if s := look(5); s.Seconds == nil || s.Behind != 0 {
		t.Errorf("open: %+v", s)
	}
	for id := range at.empty {
		at.empty[id] = 5
	}
	_, err := reader.WatchStreams(t.Context(), run, slog.New(slog.DiscardHandler))
	failtest.On(t, err)
	row, err := store.GetRow(t.Context(), w.db, owntable.Stream("gallery", "gallery"))
	failtest.On(t, err)
	if is, err := owntable.DecodeStream(row); err != nil || is.Seen.Sub(now.Add(-6*time.Hour)).Abs() > time.Minute {
		t.Errorf("seen until %v, %v, want six hours before %v", is.Seen, err, now)
	}
	for _, sh := range shards()[1:] {
		failtest.On(t, w.db.Split(t.Context(), "gallery", sh.ID))
	}
	if s := look(5); s.Seconds == nil || s.Behind == 0 {
		t.Errorf("closed: %+v", s)
	}
	if s := look(50); s.Seconds != nil || !strings.Contains(s.Unknown, "did not reach its end") {
		t.Errorf("not read to its end: %+v", s)
	}
}
