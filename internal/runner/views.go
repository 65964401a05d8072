package runner

import (
	"context"
	"errors"
	"slices"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
)

// Each batch is applied by a view: the model's catalog, read strongly after the batch was
// received (Admit). It says which ledgers are being built from existing rows, and
// which were built. Where shards have checkpoints, these are fenced for the view first
// (package contribution says why).

// View is by which builds a batch is applied.
type View struct {
	owntable.CatalogRow
	Fence contribution.Fence // of the batch's shard
	Cuts  bool               // shards are cut for builds that hand over, as by all that read a stream
}

// withView gives a view to a batch that has none.
func (r *Runner) withView(ctx context.Context, b Batch) (Batch, error) {
	if b.View != nil {
		return b, nil
	}
	row, err := r.Admit(ctx, nil)
	b.View = &View{CatalogRow: row}
	return b, err
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

// IsSettled reports whether a record of the batch was applied, or given up, before rows were built
// in place: a build that was announced afterwards has compared these with their sources, or
// will. Should the record come again, it must not write them: later changes may be missing for
// good.
func (w *Work) IsSettled(at events.Position) bool {
	return slices.ContainsFunc(w.View.Builds.Counting(), func(b owntable.Build) bool {
		return b.Entity == model.BuildInPlace && !w.View.Fence.Counts(b.Generation, at)
	})
}

// hidingPending returns a runner that shows no derivation which the catalog has as pending.
func (r *Runner) hidingPending(row *owntable.CatalogRow) *Runner {
	in := *r
	in.catalog = row
	return &in
}

// ShownTallies returns the tallies that rows of an entity show: those that are not pending. e may
// be nil.
func (r *Runner) ShownTallies(e *model.Entity) []*model.Tally {
	if r.hidden {
		return nil
	}
	if e == nil || r.catalog == nil || len(r.catalog.Builds) == 0 {
		return projections.TalliesOf(e)
	}
	return seq.Where(e.Values, func(t *model.Tally) bool { return !r.catalog.IsPending(t.Name) })
}

// IsPending reports whether a derivation is being built and its values in rows are older or missing.
func (r *Runner) IsPending(derivation string) bool {
	return r.catalog != nil && len(r.catalog.Builds) > 0 && r.catalog.IsPending(derivation)
}

// dropPending leaves out of the batch the amounts for tallies that are pending: these count
// in the ledgers of their build only.
func (w *Work) dropPending() {
	if len(w.View.Builds) == 0 {
		return
	}
	w.DropTargets(func(t *projections.Target) bool {
		if len(w.ShownTallies(t.Entity)) == len(projections.TalliesOf(t.Entity)) {
			return false
		}
		for i := range t.Steps {
			t.Steps[i].Adds = slices.DeleteFunc(t.Steps[i].Adds, func(a projections.Add) bool {
				return w.catalog.IsPending(projections.TallyOf(t.Entity, a.Field))
			})
		}
		t.Steps = slices.DeleteFunc(t.Steps, func(s projections.Step) bool { return len(s.Adds) == 0 })
		return len(t.Steps) == 0 && !t.Check && !t.Recompute
	})
}
