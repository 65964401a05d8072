package build

import (
	"context"
	"sync"
	"time"

	"weir/internal/parallel"
	"weir/internal/store"
	"weir/internal/value"
)

// meter counts what a builder does, and holds it to its budget.
type meter struct {
	mu   sync.Mutex
	done Progress
	told Progress  // what of done the rows of segments have
	free time.Time // until when the budget is spent
	on   sync.Once // the builder's store counts what it reads
}

// counts makes the builder count what it reads from now on, each read that its runner does: what
// a kind reads to put something, and what is read again after a conflict, is known only here. It
// replaces the builder's runner, so all that may be called side by side calls it first.
func (b *Builder) counts() {
	b.meter.on.Do(func() {
		r := *b.Runner
		r.Store = &counted{b.Runner.Store, b}
		b.Runner = &r
	})
}

// counted is a store that counts what is read for a builder.
type counted struct {
	store.Store
	b *Builder
}

// Get counts each row by itself, as DynamoDB does, also those that there are not.
func (c *counted) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := c.Store.Get(ctx, refs)
	n := int64(0)
	for _, row := range rows {
		n += int64(store.ReadUnits(row.Size()))
	}
	c.b.add(Progress{Reads: n})
	return rows, err
}

// Query counts a page as a whole.
func (c *counted) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := c.Store.Query(ctx, q)
	if err == nil {
		c.b.add(Progress{Reads: int64(store.ReadUnits(sizeOf(page.Rows)))})
	}
	return page, err
}

// add counts work, and reports it.
// Report is called with mu held, so it must not call the builder.
func (b *Builder) add(p Progress) {
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	d := &b.meter.done
	d.addUp(p)
	if b.Report != nil {
		b.Report(*d)
	}
}

// untold returns the write and read units that were used since it was last called: the row of the segment
// that is saved next keeps them. Segments run side by side, so only their sum says something.
func (b *Builder) untold() (units, reads int64) {
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	is, was := b.meter.done, b.meter.told
	b.meter.told = is
	return is.Units - was.Units, is.Reads - was.Reads
}

// spend waits until the budget has so many write units, and takes them.
// Several segments share the budget; each waits for its own turn. Units count as done when they are
// asked for, also if the context ends before they are spent.
func (b *Builder) spend(ctx context.Context, units int) error {
	b.add(Progress{Units: int64(units)})
	if b.Budget <= 0 {
		return ctx.Err()
	}
	b.meter.mu.Lock()
	now := b.Runner.Moment()
	from := b.meter.free
	if from.Before(now) {
		from = now
	}
	b.meter.free = from.Add(time.Duration(float64(units) / float64(b.Budget) * float64(time.Second)))
	b.meter.mu.Unlock()
	if wait := from.Sub(now); wait > 0 {
		return b.wait(ctx, wait)
	}
	return ctx.Err()
}

// wait pauses for d by the builder's clock, which is the simulator's in a simulation. It
// returns early, with an error, when ctx ends.
func (b *Builder) wait(ctx context.Context, d time.Duration) error {
	if b.Wait != nil {
		return b.Wait(ctx, d)
	}
	return parallel.Sleep(ctx, d)
}

// Done returns what the builder has done since it began.
func (b *Builder) Done() Progress {
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	return b.meter.done
}
