package reader

import (
	"context"
	"log/slog"
	"slices"

	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/runner"
	"weir/internal/store"
)

// If a table's stream is disabled and enabled again, the new one is another stream, and
// changes in between are in neither. weir saves which streams of a table are to be
// read, so that a later reader can still read the rest of a disabled one: see
// owntable.StreamRow.

// sameStream records a gap if a table has another stream than it had. After a crash before
// the labels are saved, the same gap is recorded again, which changes nothing. If another
// process saves labels at the same time, this one sees them when it next lists the shards.
func (r *Leased) sameStream(ctx context.Context, table string) error {
	labels, err := r.run.Store.Streams(ctx, table)
	if err != nil || slices.Equal(labels, r.streams[table]) {
		return err
	}
	ref, kept, err := ReadStream(ctx, r.run, table)
	if err != nil {
		return err
	}
	met := kept.Labels
	if r.streams[table] == nil {
		if labels, err = r.run.Store.Streams(ctx, table, met...); err != nil {
			return err
		}
	}
	if last := labels[len(labels)-1]; len(met) > 0 && met[len(met)-1] != last {
		if met[len(met)-1] > last {
			return nil // another process has seen a later one
		}
		if err := r.recordSwitch(ctx, table, met[len(met)-1], last); err != nil {
			return err
		}
	}
	if !slices.Equal(met, labels) {
		if done, err := r.run.WriteIf(ctx, kept.Becomes(ref, labels)); !done {
			return err
		}
	}
	r.streams[table] = labels
	return nil
}

// streamOff notes that a table stands still because its stream is off: its records are read and applied all the same,
// and changes of the table now are in no stream. A stream that is on always has an open shard. A stream that cannot be
// found out now is found out with the next listing.
func (r *Leased) streamOff(ctx context.Context, table string, shards []store.Shard) {
	open := slices.ContainsFunc(shards, func(s store.Shard) bool { return !s.Closed })
	if off, err := r.run.StreamOff(ctx, table, open); err == nil {
		r.noteStanding(stepStream, shardName{table: table}, off)
	}
}

// recordSwitch records the gap between a table's stream and the one before it. It fails if the
// stream is that of another table under the same name.
func (r *Leased) recordSwitch(ctx context.Context, table, met, label string) error {
	if err := r.run.Start(ctx); err != nil {
		return err
	}
	return r.keepGap(ctx, runner.SwitchedGap(r.run, catalog.Switch{Table: table, From: met, To: label}))
}

// keepGap keeps a gap and counts it.
func (r *Leased) keepGap(ctx context.Context, d deadletter.Letter) error {
	err := keepGap(ctx, r.run, r.opts.Log, d)
	if err == nil {
		r.report(Gap)
	}
	return err
}

// keepGap saves a gap as a dead letter, where operators find it, and logs it.
func keepGap(ctx context.Context, run *runner.Runner, log *slog.Logger, d deadletter.Letter) error {
	id, err := run.Letters().Keep(ctx, d)
	if err == nil {
		log.Error("gap", "of", d.Target, "records", d.Source, "reason", run.Model.Typed(d.Reason), "id", id)
	}
	return err
}
