package reader

import (
	"context"
	"errors"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// shared is a Source that several processes have, of which one reads at a time. One Follower reads all shards of any
// other Source.
type shared interface {
	store.Source
	// Fence returns the fence of our present lease, or 0 if we have none. Each lease has a greater number than every
	// earlier one, whichever process holds it.
	Fence() int64
}

// errShard marks an error of Read on a shared source that is only this shard's.
var errShard = errors.New("the shard stands still")

// errElsewhere is the error of Read on a shared source of which we have no lease, or none any longer.
var errElsewhere = errors.New("another process reads this shard")

// sourceOf is the Source that the Follower was given, or all shards of the store's own streams.
func (f *Follower) sourceOf() store.Source {
	if f.Source != nil {
		return f.Source
	}
	return f.Runner.Store
}

// isOurs reports whether the shard is ours to apply. At the beginning of a lease it forgets the
// checkpoint, which another process may have moved. A process that stands by reads no checkpoint.
func (c *consumer) isOurs(at shardName) bool {
	source, ok := c.sourceOf().(shared)
	if !ok || c.ended[at] {
		return true
	}
	now := source.Fence()
	if now == 0 {
		delete(c.held, at)
		c.dropShard(at)
		return false
	}
	if c.held[at] != now {
		c.dropShard(at)
		c.held[at] = now
	}
	return true
}

// loadCheckpoints reads the saved checkpoints of shards into memory. The error wraps owntable.ErrRow if one cannot be read; then the others
// are read all the same.
func (c *consumer) loadCheckpoints(ctx context.Context, all ...shardName) error {
	rows, err := c.checkpointRows(ctx, all)
	if err != nil {
		return err
	}
	for i, at := range all {
		is, bad := owntable.DecodeCheckpoint(rows[i])
		if bad != nil {
			err = bad
			continue
		}
		c.at[at], c.ended[at], c.seen[at] = is.At, is.Done, is
		delete(c.floors, at)
	}
	return err
}

// checkpointRows reads the saved checkpoints of shards, and makes those that are missing: from then on a
// ledger may lack the shard's position.
func (c *consumer) checkpointRows(ctx context.Context, all []shardName) ([]value.Item, error) {
	refs := make([]store.Ref, len(all))
	for i, at := range all {
		refs[i] = c.checkpointRef(at).Ref
	}
	rows, err := c.Runner.Get(ctx, refs)
	if err != nil {
		return rows, err
	}
	var ws []store.Write
	var made []int
	for i, at := range all {
		if rows[i] == nil {
			ws, made = append(ws, owntable.BeginCheckpoint(c.checkpointRef(at))), append(made, i)
		}
	}
	out, err := c.Runner.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i, n := range made {
		rows[n] = out[i].Row
	}
	return rows, nil
}

// resumeAll does the same for many shards as resume for each, with few calls: a process that starts, or
// takes over from another one, resumes all of its shards at once. A checkpoint that cannot be
// read is left to resume. A child is left until its parent is listed no more.
func (c *consumer) resumeAll(ctx context.Context, tables []*model.Table) error {
	var all []shardName
	for _, t := range tables {
		shards, err := c.sourceOf().Shards(ctx, t.Name)
		if err != nil {
			return nil // the pass says so
		}
		listed := map[string]bool{}
		for _, s := range shards {
			at := shardName{t.Name, s.ID}
			_, known := c.at[at]
			if source, ok := c.sourceOf().(shared); ok {
				fence := source.Fence()
				known = known && c.held[at] == fence || fence == 0
			}
			if !known && !c.ended[at] && !listed[s.Parent] {
				all = append(all, at)
			}
			listed[s.ID] = true
		}
	}
	if len(all) < 2 {
		return nil
	}
	for _, at := range all {
		if !c.isOurs(at) {
			return nil
		}
	}
	if err := c.loadCheckpoints(ctx, all...); !errors.Is(err, owntable.ErrRow) {
		return err
	}
	return nil
}

// readCheckpoint reads a checkpoint, and reports whether the checkpoint exists.
func readCheckpoint(ctx context.Context, r *runner.Runner, at store.Ref) (owntable.CheckpointRow, bool, error) {
	row, err := r.GetRow(ctx, at)
	if err != nil {
		return owntable.CheckpointRow{}, false, err
	}
	is, err := owntable.DecodeCheckpoint(row)
	return is, row != nil, err
}

// awaitsParent reports whether a shard must wait for a parent that the stream no longer lists,
// because another process may still be applying the parent's records.
func (c *consumer) awaitsParent(ctx context.Context, table, parent string, listed map[string]bool) (bool, error) {
	if _, is := c.sourceOf().(shared); !is || parent == "" || listed[parent] {
		return false, nil
	}
	at := shardName{table, parent}
	if c.ended[at] {
		return false, nil
	}
	is, known, err := readCheckpoint(ctx, c.Runner, c.checkpointRef(at).Ref)
	if err != nil {
		return true, err
	}
	c.ended[at] = !known || is.Done || is.Expires // a mapping reads parents before children
	return !c.ended[at], nil
}

// finishShard records that the shard is applied to its end, for its children, which another
// process may read.
func (c *consumer) finishShard(ctx context.Context, at shardName) error {
	if c.at[at].IsZero() {
		if _, is := c.sourceOf().(shared); !is {
			return nil
		}
	}
	out, err := c.Runner.Write(ctx, []store.Write{owntable.EndCheckpoint(c.checkpointRef(at), c.at[at])})
	if err == nil {
		c.ended[at] = out[0].Err == nil // else another process has moved it
	}
	return err
}

// checkpointRef is the row that says how far the model has come in a shard.
func (c *consumer) checkpointRef(at shardName) owntable.ShardRef {
	return owntable.Checkpoint(c.Runner.Model.Name, at.table, at.shard)
}

// Place is a checkpoint: how far a model has come in a shard.
type Place struct {
	Table, Shard string
	At           events.Position
	Done         bool
	// Since when the stream does not list the shard; zero if it does, or if that was not
	// recorded yet.
	Missing time.Time
	Expires bool // a function moved it last
}

// ReadPlace returns how far the model has come in one shard.
func ReadPlace(ctx context.Context, r *runner.Runner, table, shard string) (Place, error) {
	is, _, err := readCheckpoint(ctx, r, owntable.Checkpoint(r.Model.Name, table, shard).Ref)
	return Place{table, shard, is.At, is.Done, is.Missing, is.Expires}, err
}

// ReadPlaces returns all shards that were read from, except those that were forgotten.
// Shards with unreadable checkpoints are included, without a position, and for each of
// them err contains an error that wraps owntable.ErrRow.
func ReadPlaces(ctx context.Context, r *runner.Runner) (out []Place, err error) {
	var bad []error
	for row, err := range store.EachRow(ctx, r.Store, owntable.RowsOf(owntable.Checkpoints(r.Model.Name))) {
		if err != nil {
			return out, err
		}
		is, err := owntable.DecodeCheckpoint(row)
		bad = append(bad, err)
		out = append(out, Place{is.Table, is.Shard, is.At, is.Done, is.Missing, is.Expires})
	}
	return out, errors.Join(bad...)
}

// ReadStream reads which streams of a table are known, and when their shards were last seen.
func ReadStream(ctx context.Context, r *runner.Runner, table string) (at store.Ref, is owntable.StreamRow, err error) {
	at = owntable.Stream(r.Model.Name, table)
	row, err := r.GetRow(ctx, at)
	if err == nil {
		is, err = owntable.DecodeStream(row)
	}
	return at, is, err
}

// OldestRecord returns the time of the oldest record of the model's streams that is not
// applied, zero if all are applied. It reads a record of each shard, so it is for a
// store that answers at once.
func OldestRecord(ctx context.Context, r *runner.Runner) (at time.Time, err error) {
	for _, t := range r.Model.Tables {
		shards, err := r.Store.Shards(ctx, t.Name)
		if err != nil {
			return at, err
		}
		for _, shard := range shards {
			place, err := ReadPlace(ctx, r, t.Name, shard.ID)
			if err != nil {
				return at, err
			}
			next, err := r.Store.Read(ctx, t.Name, shard.ID, place.At, 1)
			if err != nil {
				return at, err
			}
			if len(next.Records) > 0 && (at.IsZero() || next.Records[0].Time.Before(at)) {
				at = next.Records[0].Time
			}
		}
	}
	return at, nil
}
