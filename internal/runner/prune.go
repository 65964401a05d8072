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

// batchLife is how long after it was read a batch may be applied. A ledger may have
// pruned the position by which it would recognise an older batch as repeated. The age is
// measured by two clocks and the larger age counts: the monotonic clock may stand still
// while a machine sleeps.
const batchLife = 15 * time.Minute

// errOld says that a batch is too old and must be read again.
var errOld = errors.New("the batch was read too long ago")

// Fresh returns errOld if the batch was read too long ago to be applied.
func (w *Work) Fresh() error {
	now := w.Moment()
	if !w.Read.IsZero() && max(now.Sub(w.Read), now.Round(0).Sub(w.Read)) > batchLife {
		return errOld
	}
	return nil
}

// pruneAtOnce keeps the expressions of a write below their limits; the next batch prunes
// more.
const pruneAtOnce = 100

// prune removes the positions of finished shards from ledgers that the batch has read
// anyway. A stream always creates new shards, so a ledger that kept a position for each
// of them would grow, and its writes would cost more and more. The ledger of a parked
// target keeps them, because its queued effects refer to them.
func (w *Work) prune(ctx context.Context, ledgers map[*projections.Target]value.Item) error {
	var ws []store.Write
	for _, t := range w.Targets {
		row, have := ledgers[t]
		if !have || isParked(row) {
			continue
		}
		shardKeys, err := w.RetiredOf(ctx, owntable.ShardKeys(row))
		if err != nil {
			return err
		}
		if len(shardKeys) == 0 {
			continue
		}
		ws = append(ws, owntable.LedgerRow(row).Forget(owntable.Ledger(w.Model.Name, t.Row), shardKeys))
	}
	_, err := w.Write(ctx, ws)
	return err
}

// RetiredOf returns those of some shards that deliver no more records: as many as one write
// can remove from a row.
func (w *Work) RetiredOf(ctx context.Context, shardKeys []string) (out []string, err error) {
	for _, shardKey := range shardKeys {
		over, err := w.Over(ctx, shardKey)
		if err != nil {
			return nil, err
		}
		if over {
			out = append(out, shardKey)
		}
		if len(out) == pruneAtOnce {
			break
		}
	}
	return out, nil
}

// Over reports whether a shard delivers no more records. It is false for the shard of
// this batch, and for every merged log.
func (w *Work) Over(ctx context.Context, shardKey string) (bool, error) {
	if w.Retired == nil || shardKey == w.ShardKey || owntable.IsLogKey(shardKey) {
		return false, nil
	}
	return w.Retired(ctx, shardKey)
}
