package runner

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/store"
)

// A stream always creates new shards. So what weir keeps for a shard is deleted when the
// shard is over: it is applied to its end, and the stream no longer lists
// it. The counts of its checkpoint stay, added up in one row.

// Miss records that the stream no longer lists a finished shard or, if missing is false,
// that it lists the shard again. The record survives this process, for the one that
// continues.
func (r *Runner) Miss(ctx context.Context, table, shard string, missing bool) error {
	at := owntable.Checkpoint(r.Model.Name, table, shard)
	w := owntable.FindCheckpoint(at)
	if missing {
		w = owntable.MissCheckpoint(at, r.Now())
	}
	_, err := r.Write(ctx, []store.Write{w})
	return err
}

// ForgetShard deletes the checkpoint of a shard that is over, does the writes in also,
// and adds the checkpoint's counts to the past counts. All of this is one transaction,
// which fails if the checkpoint has changed meanwhile. From then on the shard is unknown,
// and its positions are removed from each ledger at the ledger's next write.
func (r *Runner) ForgetShard(ctx context.Context, table, shard string, also ...store.Write) error {
	at := owntable.Checkpoint(r.Model.Name, table, shard).Ref
	is, known, err := r.saved(ctx, at)
	if err != nil {
		return err
	}
	if known {
		also = append(also, is.Drop(at), owntable.AddPast(owntable.Past(r.Model.Name), is.Counts))
	}
	if len(also) == 0 {
		return nil
	}
	return r.Store.Transact(ctx, also)
}
