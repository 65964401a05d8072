package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
)

// Each batch is applied by a view: the model's catalog, read strongly after the batch was
// received (Admit). It says which ledgers are being built from existing rows, and
// which were built. Where shards have checkpoints, these are fenced for the view first
// (package contribution says why).

// View is by which builds a batch is applied.
type View struct {
	owntable.CatalogRow
	Fence  contribution.Fence           // of the batch's shard
	Cuts   bool                         // shards are cut for builds that hand over, as by all that read a stream
	fences map[place]contribution.Fence // of several batches; see of
}

// of returns the view by which the batch of one shard is applied.
func (v *View) of(at place) *View {
	if v == nil {
		return nil
	}
	return &View{CatalogRow: v.CatalogRow, Fence: v.fences[at], Cuts: true}
}

// count is that of the view's catalog, 0 for none.
func (v *View) count() int64 {
	if v == nil {
		return 0
	}
	return v.Count
}

// viewed gives a view to a batch that has none.
func (r *Runner) viewed(ctx context.Context, b Batch) (Batch, error) {
	if b.View != nil {
		return b, nil
	}
	row, err := r.Admit(ctx, nil)
	b.View = &View{CatalogRow: row}
	return b, err
}

// admit admits pages and fences their checkpoints. It returns the view by which they are
// applied, nil where there is none, and whether their documents are to be written.
func (c *consumer) admit(ctx context.Context, pieces []piece) (*View, bool, error) {
	for range MaxRounds {
		row, err := c.Runner.Admit(ctx, tablesOf(pieces))
		if err != nil {
			return nil, false, err
		}
		documents, err := c.Runner.Indexed(row)
		if err != nil || c.Runner.Catalog == nil {
			return nil, documents, err
		}
		newer, v := false, View{CatalogRow: row, fences: map[place]contribution.Fence{}}
		for i := range pieces {
			f, err := c.fenced(ctx, &pieces[i], row)
			if err != nil {
				return nil, false, err
			}
			newer = newer || !f.Admits(row.Count)
			v.fences[pieces[i].place] = f
		}
		if !newer {
			return &v, documents, nil
		}
	}
	return nil, false, errors.New("the catalog of the model changes all the time, or was replaced by an older one")
}

// fenced returns the fence of a piece's checkpoint, which it takes first where that has not
// been done for the view, and cuts for builds that count something of the piece by position.
func (c *consumer) fenced(ctx context.Context, p *piece, row owntable.CatalogRow) (contribution.Fence, error) {
	if len(row.Builds) == 0 {
		return c.floors[p.place], nil
	}
	if f, known := c.floors[p.place]; known && f.View == row.Count && p.cut(row, f, events.Position{}).Same(f) {
		return f, nil
	}
	ref := c.checkpoint(p.place)
	for range MaxRounds {
		refs := []store.Ref{ref.Ref}
		for _, shard := range p.above {
			refs = append(refs, c.checkpoint(place{p.place.table, shard}).Ref)
		}
		rows, err := c.Runner.Get(ctx, refs)
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
		if next = p.cut(row, next, is.At); next.Same(was) {
			c.floors[p.place] = was
			return was, nil
		}
		done, err := c.Runner.Did(ctx, owntable.TakeFence(ref, was, next, is.At))
		if err != nil {
			return contribution.Fence{}, err
		}
		if done {
			c.floors[p.place] = next
			return next, nil
		}
	}
	return contribution.Fence{}, fmt.Errorf("the checkpoint of shard %s of %s changes all the time", p.shard, p.place.table)
}

// cut is Cut by the records of the piece.
func (p *piece) cut(row owntable.CatalogRow, f contribution.Fence, checkpoint events.Position) contribution.Fence {
	return Cut(row, f, checkpoint, false, func(yield func(*events.Record) bool) {
		for i := range p.page.Records {
			if !yield(&p.page.Records[i]) {
				return
			}
		}
	})
}

// Cut returns a fence that is cut for each build of the view before the first of some records of its shard that was written after the
// hand-over was announced. The checkpoint is at a position. Of a new shard nothing was applied, and who reads it does not know its parents.
func Cut(row owntable.CatalogRow, f contribution.Fence, checkpoint events.Position, isNew bool, records iter.Seq[*events.Record]) contribution.Fence {
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

// ErrSwitched says that rows show ledgers of another build than when a batch was admitted.
// The batch has to be applied again.
var ErrSwitched = errors.New("values were built meanwhile")

// StillShows returns ErrSwitched if rows of an entity show other ledgers than this runner's.
func (r *Runner) StillShows(ctx context.Context, e *model.Entity) error {
	if r.Catalog == nil {
		return nil
	}
	row, err := r.Catalog.Row(ctx)
	if err != nil {
		return err
	}
	if b, _ := row.Builds.Of(e.Name); b.Base != r.base {
		return ErrSwitched
	}
	return nil
}

// Settled reports whether a record of the batch was applied, or given up, before rows were built
// in place: a build that was announced afterwards has compared these with their sources, or
// will. Should the record come again, it must not write them: what followed may be missing for
// good.
func (w *Work) Settled(at events.Position) bool {
	return slices.ContainsFunc(w.View.Builds.Counting(), func(b owntable.Build) bool {
		return b.Entity == model.BuildInPlace && !w.View.Fence.Counts(b.Generation, at)
	})
}

// under adds to the write of a page's checkpoint that its fence must admit the batch.
func under(v *View, w store.Write) store.Write {
	if v == nil {
		return w
	}
	return owntable.Under(v.Count, w)
}

// seeing returns a runner that shows no derivation which the catalog has as pending.
func (r *Runner) seeing(row *owntable.CatalogRow) *Runner {
	in := *r
	in.catalog = row
	return &in
}

// Shows returns the tallies that rows of an entity show: those that are not pending. e may
// be nil.
func (r *Runner) Shows(e *model.Entity) []*model.Tally {
	if r.hidden {
		return nil
	}
	if e == nil || r.catalog == nil || len(r.catalog.Builds) == 0 {
		return projections.Tallies(e)
	}
	var out []*model.Tally
	for _, t := range e.Values {
		if !r.catalog.Pending(t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// Pending reports whether a derivation is being built and what rows show is older or nothing.
func (r *Runner) Pending(derivation string) bool {
	return r.catalog != nil && len(r.catalog.Builds) > 0 && r.catalog.Pending(derivation)
}

// dropPending leaves out of the batch what it adds to tallies that are pending: these count
// in the ledgers of their build only.
func (w *Work) dropPending() {
	if len(w.View.Builds) == 0 {
		return
	}
	w.DropTargets(func(t *projections.Target) bool {
		if len(w.Shows(t.Entity)) == len(projections.Tallies(t.Entity)) {
			return false
		}
		for i := range t.Steps {
			t.Steps[i].Adds = slices.DeleteFunc(t.Steps[i].Adds, func(a projections.Add) bool {
				return w.catalog.Pending(projections.TallyOf(t.Entity, a.Field))
			})
		}
		t.Steps = slices.DeleteFunc(t.Steps, func(s projections.Step) bool { return len(s.Adds) == 0 })
		return len(t.Steps) == 0 && !t.Check && !t.Recompute
	})
}
