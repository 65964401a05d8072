package status

import (
	"context"
	"errors"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// The reports of rows about statuses are kept in our own table as facts, one row for each.
// The newest position of a fact's source wins. After that, weir recomputes the target: it
// raises the version of the target's ledger, then reads everything that the status
// depends on with strong consistency, and then shows the result under the raised version.
// So the recompute with the highest version has read everything that any lower one had,
// and no lower version is shown over it. Streams may arrive in any order, and a batch any
// number of times. The target row's own value is part of the input, and the write
// fails if that has changed since it was read.

// keepFacts keeps the facts of the batch, before any status is recomputed, in all generations
// that count. The first one counts unless rows show a later one, or one that is pending.
func (w *work) keepFacts(ctx context.Context) error {
	gs, err := w.Generations()
	if err != nil {
		return err
	}
	var ws []store.Write
	var of []int
	keep := func(r *runner.Runner, i int) {
		f := &w.facts[i]
		ws, of = append(ws, r.WithSource(f.memberRow().Keep(owntable.Fact(r.Model.Name, f.List, f.Name), r.OwnRowExpiry()), f.Source)), append(of, i)
	}
	for i := range w.facts {
		first := true
		for _, g := range gs {
			if g.Entity != w.facts[i].Entity {
				continue
			}
			first = first && !g.Build.State.IsShown()
			if g.CountsChange(&w.Changes[w.factOf[i]]) && countsIn(g) {
				keep(g.Runner, i)
			}
		}
		if first && !isPending(w.Runner, w.facts[i].Entity) {
			keep(w.Runner, i)
		}
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return err
	}
	for n := range out {
		if !errors.Is(out[n].Err, store.ErrRefused) {
			continue
		}
		i := of[n]
		c := &w.Changes[w.factOf[i]]
		w.CountKept(w.factOf[i], w.facts[i].changedDerivations()...)
		if _, err := w.Letters().Keep(ctx, deadletter.Unusable(c, w.ShardKey, w.facts[i].List, out[n].Err.Error())); err != nil {
			return err
		}
	}
	return nil
}

// countsIn reports whether the values that rows of the entity show of facts count in a generation.
func countsIn(g *runner.Generation) bool {
	return !slices.ContainsFunc(g.Entity.Recomputes(), func(name string) bool { return !g.CountsDerivation(name) })
}

// isPending reports whether something that rows of an entity show of facts is being built and not
// shown yet. Then nothing of it is recomputed: rows keep their values.
func isPending(r *runner.Runner, e *model.Entity) bool {
	return slices.ContainsFunc(e.Recomputes(), r.IsPending)
}

// recomputeTargets recomputes the statuses of the batch's targets, and of all targets of groups that
// changed. A long list of targets becomes a job, so that other targets need not wait for
// it.
func (w *work) recomputeTargets(ctx context.Context) error {
	of := map[*model.Entity][]*projections.Target{}
	var entities []*model.Entity
	for _, t := range w.Targets {
		if !t.Recompute {
			continue
		}
		if of[t.Entity] == nil {
			entities = append(entities, t.Entity)
		}
		of[t.Entity] = append(of[t.Entity], t)
	}
	for _, e := range entities {
		by, err := w.ShownBy(ctx, e.Name, true)
		if err != nil {
			return err
		}
		if isPending(by.Runner, e) {
			if err := showLedgers(ctx, by, of[e]); err != nil {
				return err
			}
			continue
		}
		if err := recomputeSome(ctx, by, of[e], w.facts); err != nil {
			return err
		}
	}
	for _, g := range w.lists {
		by, err := w.ShownBy(ctx, g.entity.Name, true)
		if err != nil {
			return err
		}
		if isPending(by.Runner, g.entity) {
			continue
		}
		err = by.FanOut(ctx, []owntable.Job{owntable.TargetsJob(by.Model.Name, g.list)}, func(_ int, rows []value.Item, last bool) error {
			return Kind{}.Serve(ctx, by.Runner, nil, rows, last)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// showLedgers makes targets show their ledgers and leaves their statuses, of which one is
// pending.
func showLedgers(ctx context.Context, w *runner.Work, targets []*projections.Target) error {
	for _, t := range targets {
		if err := w.ShowLedger(ctx, t.Row); err != nil {
			return err
		}
	}
	return nil
}

// recomputeSome recomputes the values that targets show of facts, of which those of the batch are kept.
func recomputeSome(ctx context.Context, w *runner.Work, targets []*projections.Target, facts []Fact) error {
	var refs []store.Ref
	var put [][]owntable.PutFacts
	for _, t := range targets {
		refs, put = append(refs, t.Row), append(put, putFor(facts, t.Row))
	}
	refused, err := recomputeRows(ctx, w.Runner, refs, put)
	if err != nil {
		return err
	}
	for i, reason := range refused {
		if reason != nil {
			w.KeptBy(targets[i])
		}
	}
	return nil
}
