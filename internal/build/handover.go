package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/contribution"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// passUnmark is the pass that removes the marks of a build that has handed over.
const passUnmark = "unmark"

// presentMoment is the present time by the store's clock, with all that has a position by now.
func (b *Builder) presentMoment() catalog.Moment {
	return catalog.Moment{Time: b.Runner.Now(), Given: b.Runner.Store.Tip().Given}
}

// streamKeeps is how long a stream of DynamoDB has a record.
const streamKeeps = 24 * time.Hour

// HandOver announces that verified builds go over from marks to positions, where that was
// not done, and notes those of which all records up to the cuts are counted. For an hour after lists of subscribers
// are live, and after their audit, it also sends the notifications that waited for them. It is cheap: call it now and then.
func (b *Builder) HandOver(ctx context.Context) error {
	of := b.Runner.Catalog
	row, err := of.Row(ctx)
	if err != nil {
		return err
	}
	waits := map[int64]int{}
	for _, is := range row.Builds.Counting() {
		if slices.Contains(b.Names, is.Entity) && is.State.IsShown() && b.Runner.Now().Sub(is.Since) <= InUse {
			if err := b.sendWaiting(ctx, is.Entity); err != nil {
				return err
			}
		}
		if h := is.HandOver; slices.Contains(b.Names, is.Entity) && h.Announced() && h.Passed.IsZero() {
			if h.After.IsZero() && b.Runner.Now().Sub(h.At) > streamKeeps+InUse { // also where functions read, which move no shard without records
				waits[is.Generation] = 0
			} else if waits[is.Generation], err = b.waitingShards(ctx, is); err != nil {
				return err
			}
		}
	}
	_, err = of.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		return of.Program().HandOver(was, waits, b.presentMoment()), nil
	})
	return err
}

// waitingShards returns how many shards may have records that a build is to count by mark.
// contribution.Waits says why shards are listed before checkpoints are read. 0 says that no record
// is left to count by mark, except in batches that have begun;
// the hour after that is for these.
func (b *Builder) waitingShards(ctx context.Context, is owntable.Build) (n int, err error) {
	for _, t := range b.sourceTables(is.Entity) {
		all := map[string]contribution.Shard{}
		shards, err := b.Runner.Store.Shards(ctx, t.Name) // before the checkpoints: see contribution.Waits
		if err != nil {
			return 0, err
		}
		for _, s := range shards {
			all[s.ID] = contribution.Shard{Parent: s.Parent, Listed: true}
		}
		q := owntable.RowsOf(owntable.Checkpoints(b.Runner.Model.Name))
		err = b.writeEach(ctx, q, func(row value.Item) ([]store.Write, error) {
			checkpoint, err := owntable.DecodeCheckpoint(row)
			if err != nil || checkpoint.Table != t.Name {
				return nil, err
			}
			s := all[checkpoint.Shard]
			s.At, s.Done, s.Moved = checkpoint.At, checkpoint.Done, checkpoint.Expires
			s.Fence, err = owntable.FenceOf(row)
			all[checkpoint.Shard] = s
			return nil, err
		})
		if err != nil {
			return 0, err
		}
		for name, s := range all {
			if s.At.IsZero() && s.Listed {
				if s.Done, err = b.isEndedShard(ctx, t.Name, name); err != nil {
					return 0, err
				}
				all[name] = s
			}
		}
		n += contribution.Waits(is.Generation, all)
	}
	return n, nil
}

// isEndedShard reports whether a shard that no row tells of is closed and has no record any more.
func (b *Builder) isEndedShard(ctx context.Context, table, shard string) (bool, error) {
	from, err := b.Runner.Store.Horizon(ctx, table, shard)
	if err != nil {
		return false, err
	}
	page, err := b.Runner.Store.Read(ctx, table, shard, from, 1)
	if errors.Is(err, store.ErrTrimmed) { // it is trimmed just now
		return false, nil
	}
	return page.End && len(page.Records) == 0, err
}

// canUnmark reports whether the marks of a build can be removed: no batch is left that may
// still count by them.
func canUnmark(is owntable.Build, now time.Time) bool {
	h := is.HandOver
	return !h.Passed.IsZero() && h.Over.IsZero() && now.Sub(h.Passed) >= InUse
}

// RemoveMarks removes the marks of builds that have handed over. After an interruption, call it
// again.
func (b *Builder) RemoveMarks(ctx context.Context) (removed int64, err error) {
	row, err := b.Runner.Catalog.Row(ctx)
	if err != nil {
		return 0, err
	}
	for _, is := range row.Builds.Counting() {
		if !slices.Contains(b.Names, is.Entity) || !canUnmark(is, b.Runner.Now()) {
			continue
		}
		p := b.unmarkPass(is, &removed)
		if err := b.runPasses(ctx, p); err != nil {
			return removed, err
		}
		if lost := p.lost.Load(); lost != nil {
			return removed, fmt.Errorf("building %s: %w", is.Entity, *lost)
		}
		_, err := b.Runner.Catalog.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
			return catalog.WithoutMarks(was, is.Generation, b.Runner.Now()), nil
		})
		if err != nil {
			return removed, err
		}
		b.letGo(is)
	}
	return removed, nil
}

// unmarkPass is the pass that removes marks.
// It scans the whole own table, since marks are spread over partitions. Deleting is repeatable, so
// a crash leaves marks that the next pass finds. Units are counted by the size of a mark, one for
// each KB begun.
func (b *Builder) unmarkPass(is owntable.Build, removed *int64) *pass {
	own := owntable.Table()
	p := &pass{Builder: b, build: is, name: passUnmark, tables: []*store.Table{&own}}
	marks := owntable.Marks(is.Ledgers(b.Runner.Model.Name))
	p.take = func(_ context.Context, s *segment, _ *store.Table, c *projections.Change) error {
		if row := c.New; strings.HasPrefix(row.Get(owntable.Partition).Text(), marks) {
			s.gone = append(s.gone, row)
			s.held++
		}
		return nil
	}
	p.done = func(ctx context.Context, s *segment) error {
		for some := range slices.Chunk(s.gone, unmarkAtOnce) {
			units, ws := 0, make([]store.Write, len(some))
			for i, row := range some {
				units += store.WriteUnits(row.Size())
				ws[i] = store.Write{Ref: rowRef(row), Delete: true}
			}
			if err := s.spendUnits(ctx, units); err != nil {
				return err
			}
			if _, err := s.Runner.Write(ctx, ws); err != nil {
				return err
			}
			s.row.Puts += int64(len(some))
			s.countUnmarked(removed, len(some))
		}
		return nil
	}
	return p
}

// unmarkAtOnce is how many marks are removed by one call.
const unmarkAtOnce = 100

// countUnmarked counts marks that were removed.
func (b *Builder) countUnmarked(removed *int64, n int) {
	b.meter.mu.Lock()
	*removed += int64(n)
	b.meter.mu.Unlock()
	b.addProgress(Progress{Puts: int64(n)})
}
