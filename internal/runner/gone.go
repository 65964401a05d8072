package runner

import (
	"context"
	"errors"
	"time"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A ledger outlives its target: counts for the row may stay, and the row may come back.
// An empty ledger of a row that is gone says only which records were counted, so TTL deletes
// it when no such record can come again. Its target is looked at in the transaction that sets
// this, and a row that comes back takes it back, so the ledger of a row that exists stays, with
// the version that the row shows.

// headLife is how long rows are kept that only say which records were counted: the empty ledger of
// a row that is gone, the empty root of a set, the counter of a list to which nothing is sent.
// No record that was counted there may come again later (MaxPending).
const headLife = MaxPending + 24*time.Hour

// MaxPending is how long after it was written a record may be applied that may have been
// applied in part before.
const MaxPending = 5 * 24 * time.Hour

// PositionsExpiry returns when a row of our own table may be deleted that says only which records were
// counted, if nothing is counted there until then.
func (r *Runner) PositionsExpiry() value.Value { return value.OfInt(r.Now().Add(headLife).Unix()) }

// ExpireLedgers makes the ledgers of those targets expire that are gone, where a ledger is empty and
// was not told to expire.
func (r *Runner) ExpireLedgers(ctx context.Context, targets []store.Ref, ledgers []value.Item) error {
	for i, target := range targets {
		if err := r.expireLedger(ctx, target, owntable.LedgerRow(ledgers[i])); err != nil {
			return err
		}
	}
	return nil
}

// expireLedger is ExpireLedgers for one target. Another worker that recomputes the target meanwhile raises the ledger's version, and may
// end before it comes here itself, so a ledger with another version is looked at again.
func (r *Runner) expireLedger(ctx context.Context, target store.Ref, ledger owntable.LedgerRow) error {
	at := owntable.Ledger(r.Model.Name, target)
	for range store.MaxRounds {
		if ledger.Version().IsMissing() || !ledger.Empty() || ledger.Expires() {
			return nil
		}
		done, err := r.writeWhile(ctx, target, r.absentCondition(target), ledger.Expire(at, r.PositionsExpiry()))
		if done || err != nil {
			return err
		}
		row, err := r.GetRow(ctx, at)
		now := owntable.LedgerRow(row)
		if err != nil || value.Equal(now.Version(), ledger.Version()) { // the same: the target is there again
			return err
		}
		ledger = now
	}
	return nil
}

// goneTries is how often while sends a write that meets other transactions.
const goneTries = 10

// writeWhile sends a write on condition that the row is as holds says. A row that is not so any more is no error; then done is false.
func (r *Runner) writeWhile(ctx context.Context, row store.Ref, holds []store.Test, w store.Write) (done bool, err error) {
	for range goneTries {
		err = r.Store.Transact(ctx, []store.Write{w, {Ref: row, Check: true, If: store.Cond{holds}}})
		if errors.Is(err, store.ErrCondition) {
			return false, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return err == nil, err
		}
	}
	return false, err
}

// absentCondition holds if there is no row: the partition key is in every row.
func (r *Runner) absentCondition(row store.Ref) []store.Test {
	return []store.Test{{Attr: r.Model.Table(row.Table).Key.Partition.Name, Is: store.Absent}}
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
		of := seq.Where(w.Gone, func(t *projections.Target) bool { return t.Entity == g.Entity })
		if err := g.expireAll(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// expireAll sets the TTL of ledgers that count nothing and whose target does not exist. A
// ledger that another writer changes meanwhile stays as it is; the next batch that touches it
// decides again.
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
	for i := range targets {
		if ledgers[i] == nil {
			continue
		}
		if ledgers[i], err = r.settleGone(ctx, rows[i], ledgers[i]); err != nil {
			return err
		}
	}
	return r.ExpireLedgers(ctx, rows, ledgers)
}

// WriteIf does one conditional write. It reports false if the condition failed, and returns
// an error if the store refused the write.
func (r *Runner) WriteIf(ctx context.Context, w store.Write) (bool, error) {
	if _, err := store.WriteRow(ctx, r.Store, w); !errors.Is(err, store.ErrCondition) {
		return err == nil, err
	}
	return false, nil
}
