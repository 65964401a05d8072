package runner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Shared is a Source whose shards are divided among processes: each shard belongs to one
// process at a time. One Follower reads all shards of any other Source.
type Shared interface {
	store.Source
	// Fence returns the fence of our present lease on a shard, or 0 if the shard is not
	// ours. Each lease has a greater number than every earlier one, whichever process
	// holds it.
	Fence(table, shard string) int64
	// Spooled returns the records behind a position and up to another one that the disk of this
	// process has of a shard, whichever process holds it. all says that the disk has records at
	// least up to there.
	Spooled(table, shard string, after, to events.Position) (out []events.Record, all bool, err error)
	// Log is the number of the merged log of this process, 0 while it has none.
	Log() int64
	// Beside reports whether another process reads a shard and leaves our search
	// generation alone, since it applies another one. It may be out of date.
	Beside(table, shard string) bool
}

// ErrShard marks an error of Read on a Shared source that is only this shard's: what was read
// of it cannot be read from the disk.
var ErrShard = errors.New("the shard stands still")

// ErrElsewhere is the error of Read on a Shared source for a shard that is not ours, or
// no longer.
var ErrElsewhere = errors.New("another process reads this shard")

// source is the Source that the Follower was given, or all shards of the store's own streams.
func (f *Follower) source() store.Source {
	if f.Source != nil {
		return f.Source
	}
	return f.Runner.Store
}

// fences is what a consumer knows about its leases and their fences.
type fences struct {
	held   map[place]int64
	looked map[place]time.Time // when the checkpoint of another process's shard was last read
}

// lookEvery is how often the checkpoint of another process's shard is read. The shard's
// children wait for it.
const lookEvery = time.Second

// hold reports whether the shard is ours to apply. At the beginning of a lease it fences
// the checkpoint: the process that held the shard before can no longer move it.
func (c *consumer) hold(ctx context.Context, at place) (bool, error) {
	shared, ok := c.source().(Shared)
	if !ok || c.ended[at] {
		return true, nil
	}
	now := shared.Fence(at.table, at.shard)
	switch {
	case now == 0:
		delete(c.at, at)
		delete(c.held, at)
		if err := c.look(ctx, shared, at); err != nil {
			return false, err
		}
		return c.asides[at].reads(), nil
	case c.held[at] == now:
		return true, nil
	}
	delete(c.asides, at)
	out, err := c.Runner.Write(ctx, []store.Write{owntable.BeginCheckpoint(c.checkpoint(at), now)})
	if err != nil {
		return false, err
	}
	if out[0].Err != nil {
		return false, nil // a later lease has the checkpoint; the source will notice
	}
	was, err := owntable.DecodeCheckpoint(out[0].Row)
	if err != nil {
		return false, err
	}
	ours, err := c.join(ctx, at, was)
	if !ours || err != nil {
		return false, err
	}
	c.held[at], c.at[at], c.ended[at] = now, was.At, was.Done
	delete(c.floors, at)
	return !c.ended[at], nil
}

// holdAtOnce is how many checkpoints are fenced in one call of the store, which writes them side
// by side. A transaction that moves shards from one log to another has the log beside them.
const holdAtOnce = store.MaxTransact - 1

// fenced is a shard whose checkpoint is fenced for this lease, and the checkpoint as it was.
type fenced struct {
	place
	fence int64
	was   owntable.CheckpointRow
}

// holdAll does for many shards what hold does for each, with few calls: a process that starts, or
// takes over from another one, holds all of its shards at once. What it cannot hold is left
// to hold. A child is left until its parent is listed no more.
func (c *consumer) holdAll(ctx context.Context, tables []*model.Table) error {
	shared, ok := c.source().(Shared)
	if !ok {
		return nil
	}
	var all []fenced
	for _, t := range tables {
		shards, err := shared.Shards(ctx, t.Name)
		if err != nil {
			return nil // the pass says so
		}
		listed := map[string]bool{}
		for _, s := range shards {
			at := place{c.group, t.Name, s.ID}
			now := shared.Fence(at.table, at.shard)
			if now != 0 && c.held[at] != now && !c.ended[at] && !listed[s.Parent] {
				all = append(all, fenced{place: at, fence: now})
			}
			listed[s.ID] = true
		}
	}
	if len(all) < 2 {
		return nil
	}
	for part := range slices.Chunk(all, holdAtOnce) {
		if err := c.holdThese(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// holdThese fences the checkpoints of shards, and has the shards join the log of this process.
// A shard that another process fences at the same time, or whose checkpoint cannot be read, is not held afterwards: hold
// tries it by itself, and says what is wrong. After a crash the next process fences higher.
func (c *consumer) holdThese(ctx context.Context, all []fenced) error {
	ws := make([]store.Write, len(all))
	for i, f := range all {
		ws[i] = owntable.BeginCheckpoint(c.checkpoint(f.place), f.fence)
	}
	out, err := c.Runner.Write(ctx, ws)
	if err != nil {
		return err
	}
	from := map[int64][]fenced{} // by the log that they belong to
	for i, f := range all {
		if out[i].Err != nil {
			continue
		}
		if f.was, err = owntable.DecodeCheckpoint(out[i].Row); err != nil {
			continue // hold says so
		}
		from[f.was.Log] = append(from[f.was.Log], f)
	}
	for _, log := range slices.Sorted(maps.Keys(from)) {
		joined, err := c.joinAll(ctx, log, from[log])
		if err != nil {
			return err
		}
		for _, f := range joined {
			delete(c.asides, f.place)
			delete(c.floors, f.place)
			c.held[f.place], c.at[f.place], c.ended[f.place] = f.fence, f.was.At, f.was.Done
		}
	}
	return nil
}

// joinAll is join for shards of one log. It returns those that belong to the log of this process.
// Shards without a log join by a condition on each checkpoint; shards of another log leave it and join this one in one
// transaction, all or none, once what the other log has begun is settled. Those that another process moved meanwhile
// are not returned.
func (c *consumer) joinAll(ctx context.Context, log int64, all []fenced) (joined []fenced, err error) {
	if c.group != GroupRows || log == c.log.number {
		return all, nil
	}
	var moving []fenced
	var ws []store.Write
	for _, f := range all {
		if f.was.Done {
			joined = append(joined, f)
			continue
		}
		moving, ws = append(moving, f), append(ws, f.was.JoinCheckpoint(c.checkpoint(f.place), c.log.number))
	}
	if len(moving) == 0 {
		return joined, nil
	}
	if log == 0 {
		out, err := c.Runner.Write(ctx, ws)
		if err != nil {
			return nil, err
		}
		for i, f := range moving {
			if out[i].Err == nil {
				joined = append(joined, f)
			}
		}
		return joined, nil
	}
	row, _, done, err := c.settleLog(ctx, log)
	if !done || err != nil {
		return joined, err
	}
	leaves := owntable.SaveLog(owntable.Log(c.Runner.Model.Name, log), row, row.Touch())
	ours, err := Transacted(c.Runner.Store.Transact(ctx, append([]store.Write{leaves}, ws...)))
	if ours {
		joined = append(joined, moving...)
	}
	return joined, err
}

// Begin records in the checkpoints of all groups that a shard is being read under a
// lease. From then on the shard's children wait for it, and if its stream drops the
// shard, that is noticed, even if none of its records is applied yet.
func (r *Runner) Begin(ctx context.Context, table, shard string, fence int64) error {
	var ws []store.Write
	for _, g := range r.Groups() {
		ws = append(ws, owntable.BeginCheckpoint(owntable.Checkpoint(r.Model.Name, g, table, shard), fence))
	}
	_, err := r.Write(ctx, ws)
	return err
}

// look finds out whether a shard that another process reads is finished, and whether this
// process has to read it aside.
func (c *consumer) look(ctx context.Context, shared Shared, at place) error {
	if c.Runner.Moment().Sub(c.looked[at]) < lookEvery {
		return nil
	}
	is, _, err := c.Runner.saved(ctx, c.checkpoint(at))
	if err == nil {
		c.looked[at] = c.Runner.Moment()
		c.ended[at] = is.Done
		err = c.lookAside(ctx, shared, at, is)
	}
	return err
}

// saved reads a checkpoint, and reports whether the checkpoint exists.
func (r *Runner) saved(ctx context.Context, at store.Ref) (owntable.CheckpointRow, bool, error) {
	row, err := r.GetRow(ctx, at)
	if err != nil {
		return owntable.CheckpointRow{}, false, err
	}
	is, err := owntable.DecodeCheckpoint(row)
	return is, row != nil, err
}

// awaits reports whether a shard must wait for a parent that the stream no longer lists,
// because another process may still be applying the parent's records.
func (c *consumer) awaits(ctx context.Context, table, parent string, listed map[string]bool) (bool, error) {
	if _, shared := c.source().(Shared); !shared || parent == "" || listed[parent] {
		return false, nil
	}
	at := place{c.group, table, parent}
	if c.ended[at] {
		return false, nil
	}
	is, known, err := c.Runner.saved(ctx, c.checkpoint(at))
	if err != nil {
		return true, err
	}
	c.ended[at] = !known || is.Done
	return !c.ended[at], nil
}

// finish records that the shard is applied to its end, for its children, which another
// process may read.
func (c *consumer) finish(ctx context.Context, at place) error {
	now := c.held[at]
	end := owntable.EndCheckpoint(c.checkpoint(at), now)
	if now == 0 {
		if c.group == GroupRows {
			return nil
		}
		end = owntable.EndCheckpointAt(c.checkpoint(at), c.at[at])
	}
	out, err := c.Runner.Write(ctx, []store.Write{end})
	if err == nil {
		c.ended[at] = out[0].Err == nil // else another process has it, and this one may get it back
	}
	return err
}

// checkpoint is the row that says how far the group has come in a shard.
func (c *consumer) checkpoint(at place) store.Ref {
	return owntable.Checkpoint(c.Runner.Model.Name, c.group, at.table, at.shard)
}

// Place is a checkpoint: how far a consumer group has come in a shard.
type Place struct {
	Table, Shard string
	At           events.Position
	Done         bool
	Log          int64 // the merged log that the shard belongs to; 0 for none
	// Since when the stream does not list the shard; zero if it does, or if that was not
	// recorded yet.
	Missing time.Time
}

// Place returns how far a group has come in one shard.
func (r *Runner) Place(ctx context.Context, group, table, shard string) (Place, error) {
	is, _, err := r.saved(ctx, owntable.Checkpoint(r.Model.Name, group, table, shard))
	return Place{table, shard, is.At, is.Done, is.Log, is.Missing}, err
}

// Places returns all shards that a group has read from, except those that were forgotten.
// Shards with unreadable checkpoints are included, without a position, and for each of
// them err contains an error that wraps owntable.ErrRow.
func (r *Runner) Places(ctx context.Context, group string) (out []Place, err error) {
	var bad []error
	err = r.EachOwn(ctx, owntable.Checkpoints(r.Model.Name, group), func(row value.Item) error {
		is, err := owntable.DecodeCheckpoint(row)
		bad = append(bad, err)
		table, shard := owntable.ShardOf(row.Get(owntable.Sort).Text())
		out = append(out, Place{table, shard, is.At, is.Done, is.Log, is.Missing})
		return nil
	})
	if err == nil {
		err = errors.Join(bad...)
	}
	return out, err
}

// StreamKept reads which streams of a table are known, and when their shards were last seen.
func (r *Runner) StreamKept(ctx context.Context, table string) (at store.Ref, is owntable.StreamRow, err error) {
	at = owntable.Stream(r.Model.Name, table)
	row, err := r.GetRow(ctx, at)
	if err == nil {
		is, err = owntable.DecodeStream(row)
	}
	return at, is, err
}

// Oldest returns the time of the oldest record of the model's streams that some group has not
// applied, zero if all are applied. It reads a record of each shard for each group, so it is for a
// store that answers at once.
func (r *Runner) Oldest(ctx context.Context) (at time.Time, err error) {
	for _, t := range r.Model.Tables {
		shards, err := r.Store.Shards(ctx, t.Name)
		if err != nil {
			return at, err
		}
		for _, group := range r.Groups() {
			for _, shard := range shards {
				place, err := r.Place(ctx, group, t.Name, shard.ID)
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
	}
	return at, nil
}

// Groups returns the names of the consumer groups that the runner's model needs.
func (r *Runner) Groups() []string {
	if r.Index == nil {
		return []string{GroupRows}
	}
	return []string{GroupRows, SearchGroup(r.Generation)}
}
