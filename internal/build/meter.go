package build

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// meter counts the work of a builder, and holds it to its budget.
type meter struct {
	mu   sync.Mutex
	done Progress
	told Progress  // the part of done that the rows of segments have
	free time.Time // until when the budget is spent
	on   sync.Once // the builder's store counts its reads

	grown growth // of a dry run
}

// countReads makes the builder count its reads from now on, each read that its runner does: a read by which
// a kind puts something, and one that is repeated after a conflict, are known only here. It
// replaces the builder's runner, so all that may be called side by side calls it first.
func (b *Builder) countReads() {
	b.meter.on.Do(func() {
		r := *b.Runner
		r.Store = &counted{b.Runner.Store, b}
		b.Runner = &r
	})
}

// counted is a store that counts the reads of a builder.
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
	c.b.addProgress(Progress{Reads: n})
	return rows, err
}

// Query counts a page as a whole.
func (c *counted) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := c.Store.Query(ctx, q)
	if err == nil {
		c.b.addProgress(Progress{Reads: int64(store.ReadUnits(sizeOf(page.Rows)))})
	}
	return page, err
}

// addProgress counts work, and reports it.
// Report is called with mu held, so it must not call the builder.
func (b *Builder) addProgress(p Progress) {
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	d := &b.meter.done
	d.addUp(p)
	if b.Report != nil {
		b.Report(*d)
	}
}

// takeUntold returns the write and read units that were used since it was last called: the row of the segment
// that is saved next keeps them. Segments run side by side, so only their sum says something.
func (b *Builder) takeUntold() (units, reads int64) {
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	is, was := b.meter.done, b.meter.told
	b.meter.told = is
	return is.Units - was.Units, is.Reads - was.Reads
}

// spendUnits waits until the budget has so many write units, and takes them.
// Several segments share the budget; each waits for its own turn. Units count as done when they are
// asked for, also if the context ends before they are spent.
func (b *Builder) spendUnits(ctx context.Context, units int) error {
	b.addProgress(Progress{Units: int64(units)})
	if b.Budget <= 0 {
		return ctx.Err()
	}
	b.meter.mu.Lock()
	now := b.Runner.MonotonicNow()
	from := b.meter.free
	if from.Before(now) {
		from = now
	}
	b.meter.free = from.Add(time.Duration(float64(units) / float64(b.Budget) * float64(time.Second)))
	b.meter.mu.Unlock()
	if wait := from.Sub(now); wait > 0 {
		return b.waitFor(ctx, wait)
	}
	return ctx.Err()
}

// waitFor pauses for d by the builder's clock, which is the simulator's in a simulation. It
// returns early, with an error, when ctx ends.
func (b *Builder) waitFor(ctx context.Context, d time.Duration) error {
	if b.Wait != nil {
		return b.Wait(ctx, d)
	}
	return parallel.Sleep(ctx, d)
}

// Done returns the work that the builder has done since it began.
func (b *Builder) Done() Progress {
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	return b.meter.done
}

// metered is a store that spends the units of a segment's writes through it. Of a dry run, it writes nothing, and keeps the
// rows as they would be for later reads.
type metered struct {
	store.Store
	s      *segment
	fences bool                  // each write is in a transaction with the segment's fence
	read   map[string]value.Item // the rows that were read, by owntable.RowText: a write costs as much as these
	made   map[string]value.Item // the rows as a dry run has written them
}

// meteredRunner returns a runner over a metered store, which one goroutine uses.
func (s *segment) meteredRunner(fences bool) (*runner.Runner, *metered) {
	r, m := *s.Runner, &metered{Store: s.Runner.Store, s: s, fences: fences, read: map[string]value.Item{}, made: map[string]value.Item{}}
	r.Store = m
	return &r, m
}

// Get remembers the rows that it returns.
func (m *metered) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := m.Store.Get(ctx, refs)
	for i := range rows {
		name := owntable.RowText(refs[i])
		if row, is := m.made[name]; is {
			rows[i] = row
		}
		m.read[name] = rows[i]
	}
	return rows, err
}

// Write does writes one by one: the condition of each fails by itself. With fences, there is an outcome for each write, and one
// that met a conflict too often is an error of the whole call.
func (m *metered) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(ws))
	if !m.fences {
		if err := m.spendUnits(ctx, ws, 1); err != nil || m.s.dry {
			return out, err
		}
		return m.Store.Write(ctx, ws)
	}
	for i, w := range ws {
		w.Return = false
		err := m.Transact(ctx, []store.Write{w})
		for tries := 0; errors.Is(err, store.ErrConflict) && tries < fixTries; tries++ { // nothing was written, whatever the row is
			err = m.Transact(ctx, []store.Write{w})
		}
		if err != nil && !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrRefused) {
			return nil, err
		}
		out[i].Err = err
	}
	return out, nil
}

// Transact spends two units for each KB begun of each row, and two for the fence, before it sends anything. With fences, the
// error wraps runner.ErrLost if another builder has taken over; a condition that fails for another reason than the fence is
// returned as it is.
func (m *metered) Transact(ctx context.Context, ws []store.Write) error {
	fence := m.s.row.HeldCheck(m.s.at)
	if m.fences {
		ws = append(slices.Clip(ws), fence)
	}
	if err := m.spendUnits(ctx, ws, 2); err != nil || m.s.dry {
		return err
	}
	err := m.Store.Transact(ctx, ws)
	if m.fences && errors.Is(err, store.ErrCondition) {
		if lost := m.s.Runner.CheckGuard(ctx, []store.Write{fence}); lost != nil {
			return lost
		}
	}
	return err
}

// spendUnits spends the units of writes, so many for each KB. A dry run counts them.
func (m *metered) spendUnits(ctx context.Context, ws []store.Write, each int) error {
	units := 0
	for i := range ws {
		units += m.writeUnits(&ws[i], each)
	}
	if m.s.dry {
		m.s.addProgress(Progress{Units: int64(units)})
		return ctx.Err()
	}
	return m.s.spendUnits(ctx, units)
}

// writeUnits returns about the write units of a write: so many for each KB of the row as it was read, or as
// it becomes, and those of the row's entries in indexes. A row that was not read is taken for one that there is not yet.
func (m *metered) writeUnits(w *store.Write, each int) int {
	t := owntable.Table()
	if of := m.s.Runner.Model.Table(w.Table); of != nil {
		t = of.Table
	}
	name := owntable.RowText(w.Ref)
	was, made := m.made[name]
	if !made {
		was = m.read[name]
	}
	row, err := t.Apply(w, was)
	if err != nil { // the store refuses it, and charges one for that
		return each
	}
	if m.s.dry && !w.Check {
		m.s.noteGrowth(w.Table, was, row)
		m.made[name] = row
	}
	return each*store.WriteUnits(max(was.Size(), row.Size())) + t.EntryUnits(was, row)
}
