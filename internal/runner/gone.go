package runner

import (
	"context"
	"errors"
	"time"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A ledger outlives its target: what counts for the row may stay, and the row may come back.
// An empty ledger of a row that is gone says only which records were counted, so TTL deletes
// it when no such record can come again. Its target is looked at in the transaction that sets
// this, and a row that comes back takes it back, so the ledger of a row that exists stays, with
// the version that the row shows.

// headLife is how long is kept what says only which records were counted: the empty ledger of
// a row that is gone, the empty root of a set, the counter of a list to which nothing is sent.
// No record that was counted there may come again later (MaxPending).
const headLife = MaxPending + 24*time.Hour

// MaxPending is how long after it was written a record may be applied that may have been
// applied in part before.
const MaxPending = 5 * 24 * time.Hour

// Ends returns when a row of our own table may be deleted that says only which records were
// counted, if nothing is counted there until then.
func (r *Runner) Ends() value.Value { return value.OfInt(r.Now().Add(headLife).Unix()) }

// gone are targets that are probably gone, and their ledgers.
type gone struct {
	targets []store.Ref
	ledgers []value.Item
}

// add takes in a target whose ledger is empty and was not told to expire.
func (g *gone) add(target store.Ref, ledger value.Item) {
	if is := owntable.LedgerRow(ledger); ledger != nil && is.Empty() && !is.Expires() {
		g.targets, g.ledgers = append(g.targets, target), append(g.ledgers, ledger)
	}
}

// expire makes the ledgers expire of those targets that are gone.
func (r *Runner) expire(ctx context.Context, g gone) error {
	for i, target := range g.targets {
		ledger := owntable.LedgerRow(g.ledgers[i])
		if ledger.Version().IsMissing() {
			continue // it was never written
		}
		err := r.Store.Transact(ctx, []store.Write{
			ledger.Expire(owntable.Ledger(r.Model.Name, target), r.Ends()),
			{Ref: target, Check: true, If: store.Cond{r.absent(target)}},
		})
		// A worker that changes one of the two meanwhile looks at both.
		if err != nil && !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

func (r *Runner) absent(row store.Ref) []store.Test {
	return []store.Test{{Attr: r.Model.Table(row.Table).Key.Partition.Name, Is: store.Absent}}
}

// Expire makes the ledgers of missing targets expire, if they are empty.
func (r *Runner) Expire(ctx context.Context, targets []store.Ref, ledgers []value.Item) error {
	var g gone
	for i := range targets {
		g.add(targets[i], ledgers[i])
	}
	return r.expire(ctx, g)
}

// expireRemoved makes the ledgers of the rows expire that the batch removes.
func (w *Work) expireRemoved(ctx context.Context) error {
	if len(w.Gone) == 0 {
		return nil
	}
	gs, err := w.Generations()
	if err != nil {
		return err
	}
	if err := w.Runner.expireAll(ctx, w.Gone); err != nil {
		return err
	}
	for _, g := range gs {
		var of []*projections.Target
		for _, t := range w.Gone {
			if t.Entity == g.Entity {
				of = append(of, t)
			}
		}
		if err := g.expireAll(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) expireAll(ctx context.Context, targets []*projections.Target) error {
	rows := make([]store.Ref, len(targets))
	refs := make([]store.Ref, len(targets))
	for i, t := range targets {
		rows[i], refs[i] = t.Row, owntable.Ledger(r.Model.Name, t.Row)
	}
	ledgers, err := r.Get(ctx, refs)
	if err != nil {
		return err
	}
	return r.Expire(ctx, rows, ledgers)
}
