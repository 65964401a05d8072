package reader

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
)

// admitted is by which builds the batches of several shards are applied: the catalog, read strongly after the pages were, and the
// fence of each shard's checkpoint.
type admitted struct {
	owntable.CatalogRow
	fences map[shardName]contribution.Fence
}

// viewOf returns the view by which the batch of one shard is applied.
func (v *admitted) viewOf(at shardName) *runner.View {
	if v == nil {
		return nil
	}
	return &runner.View{CatalogRow: v.CatalogRow, Fence: v.fences[at], Cuts: true}
}

// countOf is that of a view's catalog, 0 for none.
func countOf(v *runner.View) int64 {
	if v == nil {
		return 0
	}
	return v.Count
}

// admitPages admits pages and fences their checkpoints. It returns the view by which they are
// applied, nil where there is none, and whether their documents are to be written.
func (c *consumer) admitPages(ctx context.Context, pieces []shardPage) (*admitted, bool, error) {
	for range store.MaxRounds {
		row, err := c.Runner.Admit(ctx, tablesOf(pieces))
		if err != nil {
			return nil, false, err
		}
		indexed, err := document.IsIndexed(c.Runner, row)
		if err != nil || c.Runner.Catalog == nil {
			return nil, indexed, err
		}
		newer, v := false, admitted{CatalogRow: row, fences: map[shardName]contribution.Fence{}}
		for i := range pieces {
			f, err := c.takeFence(ctx, &pieces[i], row)
			if err != nil {
				return nil, false, err
			}
			newer = newer || !f.Admits(row.Count)
			v.fences[pieces[i].shardName] = f
		}
		if !newer {
			return &v, indexed, nil
		}
	}
	return nil, false, errors.New("the catalog of the model changes all the time, or was replaced by an older one")
}

// takeFence returns the fence of a page's checkpoint, which it takes first where that has not
// been done for the view, and cuts for builds that count something of the page by position.
func (c *consumer) takeFence(ctx context.Context, p *shardPage, row owntable.CatalogRow) (contribution.Fence, error) {
	if len(row.Builds) == 0 {
		return c.floors[p.shardName], nil
	}
	if f, known := c.floors[p.shardName]; known && f.View == row.Count && p.cutFence(row, f, events.Position{}).Same(f) {
		return f, nil
	}
	ref := c.checkpointRef(p.shardName)
	for range store.MaxRounds {
		above := seq.Map(p.above, func(shard string) store.Ref { return c.checkpointRef(shardName{p.shardName.table, shard}).Ref })
		rows, err := c.Runner.Get(ctx, append([]store.Ref{ref.Ref}, above...))
		if err != nil {
			return contribution.Fence{}, err
		}
		is, err := owntable.DecodeCheckpoint(rows[0])
		if err != nil {
			return contribution.Fence{}, err
		}
		was, err := owntable.FenceOf(rows[0])
		if err != nil {
			return contribution.Fence{}, err
		}
		next, changed := was.Take(row.Count, row.Builds.Generations(), is.At)
		for _, row := range rows[1:] {
			above, err := owntable.FenceOf(row)
			if err != nil {
				return contribution.Fence{}, err
			}
			if changed {
				next = next.Inherit(above, is.At)
			}
		}
		if next = p.cutFence(row, next, is.At); next.Same(was) {
			c.floors[p.shardName] = was
			return was, nil
		}
		done, err := c.Runner.WriteIf(ctx, owntable.TakeFence(ref, was, next, is.At))
		if err != nil {
			return contribution.Fence{}, err
		}
		if done {
			c.floors[p.shardName] = next
			return next, nil
		}
	}
	return contribution.Fence{}, fmt.Errorf("the checkpoint of shard %s of %s changes all the time", p.shard, p.shardName.table)
}

// cutFence is CutFence by the records of the page.
func (p *shardPage) cutFence(row owntable.CatalogRow, f contribution.Fence, checkpoint events.Position) contribution.Fence {
	return CutFence(row, f, checkpoint, false, func(yield func(*events.Record) bool) {
		for i := range p.page.Records {
			if !yield(&p.page.Records[i]) {
				return
			}
		}
	})
}

// CutFence returns a fence that is cut for each build of the view before the first of some records of its shard that was written after the
// hand-over was announced. The checkpoint is at a position. Of a new shard nothing was applied, and who reads it does not know its parents.
func CutFence(row owntable.CatalogRow, f contribution.Fence, checkpoint events.Position, isNew bool, records iter.Seq[*events.Record]) contribution.Fence {
	for _, b := range row.Builds.Counting() {
		if _, taken := f.Cuts[b.Generation]; taken || !b.HandOver.Announced() || f.View != row.Count {
			continue
		}
		before := events.Position{}
		for r := range records {
			late := b.HandOver.Late(r.Time, r.Position) || isNew && before.IsZero() && b.HandOver.Begins(r.Time, r.Position)
			if r.Origin.IsZero() && late { // others may have the time of a recording
				f = f.Cut(b.Generation, checkpoint, before)
				break
			}
			before = r.Position
		}
	}
	return f
}

// underView adds to the write of a page's checkpoint that its fence must admit the batch.
func underView(v *runner.View, w store.Write) store.Write {
	if v == nil {
		return w
	}
	return owntable.UnderView(v.Count, w)
}
