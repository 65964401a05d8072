package runner_test

import (
	"context"
	"testing"

	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// leased is a source all of whose shards a process has, by leases with this fence.
type leased struct {
	store.Store
	fence int64
	ends  bool // whether shards have ended
}

func (l *leased) Fence(string, string) int64 { return l.fence }
func (l *leased) Log() int64                 { return 1 }
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
