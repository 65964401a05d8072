package status

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/store"
)

// described counts how often tables are described, and fails if it is told to.
type described struct {
	store.Store
	times atomic.Int64
	fails error
}

func (d *described) Identity(ctx context.Context, table string) (store.Identity, error) {
	d.times.Add(1)
	if d.fails != nil {
		return store.Identity{}, d.fails
	}
	return d.Store.Identity(ctx, table)
}

// TestRecentStatus: a table is described once a second, however many ask, and an error answers
// only the call that met it.
func TestRecentStatus(t *testing.T) {
	c := openClocked(t, shop)
	d := &described{Store: c.Store}
	part := *c.Models[0]
	r := *part.Runner
	r.Catalog = catalog.New(part.Model, d, func() time.Time { return c.at }, catalog.Options{})
	part.Runner = &r
	recent := NewRecent(c.System, &part, func() time.Time { return c.at })
	d.fails = errors.New("throttled")
	if _, err := recent.Status(t.Context()); !errors.Is(err, d.fails) {
		t.Fatal(err)
	}
	d.fails = nil
	d.times.Store(0)
	for second := range int64(3) {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if is, err := recent.Status(t.Context()); err != nil || is.Model != "shop" || len(is.Derivations) != 1 {
					t.Error(is, err)
				}
			})
		}
		all.Wait()
		if n := d.times.Load(); n != second+1 {
			t.Errorf("after %d seconds, the table was described %d times", second, n)
		}
		c.at = c.at.Add(time.Second)
	}
	recent.status.turn <- struct{}{} // one reads, and the call does not wait for longer than its context
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := recent.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
