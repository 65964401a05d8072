package reader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// A stream makes new shards for ever, some six a day for each partition. weir's state of
// a shard is its checkpoint, and a position in each ledger (`ledger` in the
// code) that counted records of it. All of it is removed when the shard is over. A shard is
// over when it is applied to its end, two listings have not shown it, and a
// note in its checkpoint has said so for as long as Options.Retire. The note outlives the
// process that made it. A stream lists a shard for a day after its end, so this happens
// more than a day later.
//
// One transaction removes the checkpoint and keeps its counts. After it the shard's position
// may be removed from ledgers, as a process that applies a shard first writes its
// checkpoint.
//
// A process that is later than the removal finds nothing that it may do. A batch is dropped
// after 15 minutes, a listing after 15, a lease after its time, each by the clock
// that shows more time. So a process that was suspended for a day has none of them when it
// resumes, and the shard is neither listed nor begun.

// listLife is how long a process may act on a listing of shards.
const listLife = 15 * time.Minute

// survey is the shards that the streams list and those that were begun, at one time.
// It is one look at streams and checkpoints. Shards are listed before checkpoints are read, so one
// that is begun in between is seen as begun, not as unknown.
type survey struct {
	at     time.Time
	listed map[string][]store.Shard
	there  map[shardName]bool
	begun  map[shardName]state
	failed map[string]error // of tables whose stream could not be listed; listed has their last list
	unread error            // of unreadable checkpoints, whose shards are begun and not done
}

// state is how far a shard is applied.
type state struct {
	done    bool // it is applied to its end
	read    bool // some of it is applied
	missing time.Time
}

// surveyShards lists the shards of all tables, and after that the checkpoints: in this order it
// sees a shard that another process begins although it was not listed yet.
func (r *Leased) surveyShards(ctx context.Context) (survey, error) {
	v := survey{at: r.monotonicNow(), listed: map[string][]store.Shard{}, there: map[shardName]bool{}, begun: map[shardName]state{}, failed: map[string]error{}}
	tables, err := r.run.FollowedTables(ctx)
	if err != nil {
		return v, err
	}
	for _, t := range tables {
		err := r.sameStream(ctx, t.Name) // the shards of all that can be read are listed
		var shards []store.Shard
		if err == nil {
			shards, err = r.run.Store.Shards(ctx, t.Name)
		}
		if err != nil {
			v.addFailure(t.Name, fmt.Errorf("stream of %s: %w", t.Name, err), r.listedShards(t.Name))
			continue
		}
		v.addListing(t.Name, shards)
	}
	if err := cmp.Or(ctx.Err(), v.allFailed()); err != nil {
		return v, err
	}
	places, err := ReadPlaces(ctx, r.run)
	if err != nil && !errors.Is(err, owntable.ErrRow) {
		return v, err
	}
	v.unread = err
	for _, p := range places {
		at := shardName{p.Table, p.Shard}
		if p.Expires && !v.there[at] { // a function read it, and its mapping knows how far
			continue
		}
		v.begun[at] = state{done: p.Done, read: p.Done || !p.At.IsZero(), missing: p.Missing}
	}
	return v, nil
}

// addListing takes in the shards of a table.
func (v *survey) addListing(table string, shards []store.Shard) {
	v.listed[table] = shards
	for _, s := range shards {
		v.there[shardName{table, s.ID}] = true
	}
}

// addFailure takes in that a table's stream could not be listed, and its last list.
func (v *survey) addFailure(table string, err error, before []store.Shard) {
	v.failed[table] = err
	v.addListing(table, before)
}

// allFailed is the error of a survey that could list nothing.
func (v *survey) allFailed() error {
	if len(v.failed) == 0 || len(v.failed) < len(v.listed) {
		return nil
	}
	return errors.Join(slices.Collect(maps.Values(v.failed))...)
}

// listedShards is the last list of a table's shards.
func (r *Leased) listedShards(table string) []store.Shard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listed[table]
}

// retireShards notes which finished shards are not listed, and removes those that have not been
// listed for as long as Options.Retire. If several processes do this at once, it happens
// once.
func (r *Leased) retireShards(ctx context.Context, v survey) error {
	errs := []error{v.unread}
	for _, p := range slices.SortedFunc(maps.Keys(v.begun), shardName.compare) {
		s := v.begun[p]
		if v.failed[p.table] != nil {
			continue
		}
		noted, there := !s.missing.IsZero(), v.there[p]
		switch {
		case !s.done || there && !noted:
		case there || !noted:
			errs = append(errs, r.noteMissing(ctx, p, !there))
		case r.missedTwice(p) && r.run.Now().Sub(s.missing) >= r.opts.Retire:
			errs = append(errs, r.forgetShard(ctx, p))
		}
	}
	return errors.Join(errs...)
}

// missedTwice reports whether a finished shard was missing from two listings.
func (r *Leased) missedTwice(p shardName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing[p] > 1
}

// forgetShard removes all that is kept of a shard that is over. It does nothing if another
// process changes the shard's rows at the same time or has removed them before.
func (r *Leased) forgetShard(ctx context.Context, p shardName) error {
	done, err := runner.TransactionOutcome(ForgetShard(ctx, r.run, p.table, p.shard))
	if done {
		r.opts.Log.Info("a shard is over", "table", p.table, "shard", p.shard)
	}
	return err
}

// noteMissing records that the stream no longer lists a finished shard or, if missing is false,
// that it lists the shard again. The record survives this process, for the one that
// continues.
func (r *Leased) noteMissing(ctx context.Context, p shardName, missing bool) error {
	at := owntable.Checkpoint(r.run.Model.Name, p.table, p.shard)
	w := owntable.FindCheckpoint(at)
	if missing {
		w = owntable.MissCheckpoint(at, r.run.Now())
	}
	_, err := r.run.Write(ctx, []store.Write{w})
	return err
}

// ForgetShard deletes the checkpoint of a shard that is over, if it has not changed meanwhile. From then on the shard is unknown,
// and its positions are removed from each ledger at the ledger's next write.
func ForgetShard(ctx context.Context, r *runner.Runner, table, shard string) error {
	at := owntable.Checkpoint(r.Model.Name, table, shard).Ref
	is, known, err := readCheckpoint(ctx, r, at)
	if err != nil || !known {
		return err
	}
	_, err = store.WriteRow(ctx, r.Store, is.Drop(at))
	return err
}
