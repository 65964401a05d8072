package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// leased is a source whose shards a process has, by a lease with this fence.
type leased struct {
	store.Store
	fence int64
}

func (l *leased) Fence() int64 { return l.fence }

func (l *leased) Beside() bool                                                { return false }
func (l *leased) Trim(context.Context, string, string, events.Position) error { return nil }

// asked counts the reads of a store.
type asked struct {
	store.Store
	n int
}

func (s *asked) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	s.n++
	return s.Store.Get(ctx, refs)
}

// TestManyShardsAreResumedAtOnce: a process that takes the lease of a model with many shards reads their checkpoints with
// few calls.
func TestManyShardsAreResumedAtOnce(t *testing.T) {
	const shards = 250
	m, err := loadText(t, shelf)
	failtest.On(t, err)
	table := m.Tables[0].Table
	table.Stream = true
	db, err := embedded.Open("store", []store.Table{owntable.Table(), table}, embedded.Options{FS: vfs.NewMem(), Shards: shards})
	failtest.On(t, err)
	t.Cleanup(func() { db.Close() })
	counted := &asked{Store: db}
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: counted, Now: time.Now}
	for fence := int64(1); fence <= 2; fence++ {
		counted.n = 0
		rows := (&reader.Follower{Runner: r, Source: &leased{Store: db, fence: fence}}).NewStepper()
		if _, _, err := rows.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		places, err := reader.ReadPlaces(t.Context(), r)
		failtest.On(t, err)
		if len(places) != shards {
			t.Fatalf("%d shards are known", len(places))
		}
	}
	if counted.n > 3 {
		t.Errorf("%d shards are resumed with %d reads", shards, counted.n)
	}
}
