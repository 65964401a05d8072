package runner_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// leased is a source all of whose shards a process has, by leases with this fence.
type leased struct {
	store.Store
	fence int64
	log   int64 // the number of the process's log, if that is not 1
	ends  bool  // whether shards have ended
}

func (l *leased) Fence(string, string) int64 { return l.fence }
func (l *leased) Log() int64                 { return max(l.log, 1) }
func (l *leased) Spooled(string, string, events.Position, events.Position) ([]events.Record, bool, error) {
	return nil, false, nil
}

var _ runner.Shared = (*leased)(nil)

func (l *leased) Beside(string, string) bool                                  { return false }
func (l *leased) Trim(context.Context, string, string, events.Position) error { return nil }

func (l *leased) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := l.Store.Read(ctx, table, shard, after, limit)
	page.End = l.ends && len(page.Records) < limit
	return page, err
}

// TestEndBesideAnotherLease: a process cannot record that a shard has ended, since another one
// took the shard. When it gets the shard back, it records the end, for which the shard's
// children wait.
func TestEndBesideAnotherLease(t *testing.T) {
	m, err := loadText(t, shelf)
	must(t, err)
	h := newHarness(t, m)
	t.Cleanup(h.close)
	must(t, h.write(`put shelf {"PK": "BOX#1", "SK": "THING#1", "type": "Thing", "name": "a"}`))
	r := h.runner(nil)
	shards, err := h.store.Shards(t.Context(), "shelf")
	must(t, err)
	from := &leased{Store: h.store, fence: 1}
	rows := (&runner.Follower{Runner: r, Source: from}).Stepper(runner.GroupRows)
	done := func(when string, want bool) {
		t.Helper()
		if _, _, err := rows.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		is, err := r.Place(t.Context(), runner.GroupRows, "shelf", shards[0].ID)
		must(t, err)
		if is.At.IsZero() || is.Done != want {
			t.Errorf("%s: %+v", when, is)
		}
	}
	done("before the end", false)
	must(t, r.Begin(t.Context(), "shelf", shards[0].ID, 2))
	from.ends = true
	done("under an earlier lease", false)
	from.fence = 3
	done("under a later lease", true)
}

// transactions counts the transactions of a store.
type transactions struct {
	store.Store
	n int
}

func (s *transactions) Transact(ctx context.Context, ws []store.Write) error {
	s.n++
	return s.Store.Transact(ctx, ws)
}

// TestManyShardsAreJoinedAtOnce: a process that has the leases of many shards moves them from
// another log into its own with few transactions, not with one for each.
func TestManyShardsAreJoinedAtOnce(t *testing.T) {
	const shards = 250
	m, err := loadText(t, shelf)
	must(t, err)
	table := m.Tables[0].Table
	table.Stream = true
	db, err := embedded.Open("store", []store.Table{owntable.Table(), table}, embedded.Options{FS: vfs.NewMem(), Shards: shards})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	counted := &transactions{Store: db}
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: counted, Now: time.Now}
	for log := int64(1); log <= 2; log++ {
		counted.n = 0
		rows := (&runner.Follower{Runner: r, Source: &leased{Store: db, fence: log, log: log}}).Stepper(runner.GroupRows)
		for range 2 {
			if _, _, err := rows.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		places, err := r.Places(t.Context(), runner.GroupRows)
		must(t, err)
		if len(places) != shards || slices.ContainsFunc(places, func(p runner.Place) bool { return p.Log != log }) {
			t.Fatalf("%d shards are known, of log %d: %+v", len(places), log, places)
		}
	}
	if most := (shards + store.MaxTransact - 2) / (store.MaxTransact - 1); counted.n != most {
		t.Errorf("%d shards were moved from one log to another in %d transactions, should be %d", shards, counted.n, most)
	}
}
