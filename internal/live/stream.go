package live

import (
	"context"
	"fmt"
	"slices"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// A stream that is switched off, and on again, is another one, and what was written in
// between is in neither. Which of a table's streams there are to read is kept, so that
// a later reader reads what is left of one that is off: see book.StreamRow.

// sameStream names a gap when a table has another stream than it had. A crash before
// the labels are kept names the same gap again, which changes nothing. Where others
// keep labels at the same time, the next list sees them.
func (r *Reader) sameStream(ctx context.Context, table string) error {
	labels, err := r.run.Store.Streams(ctx, table)
	if err != nil || slices.Equal(labels, r.streams[table]) {
		return err
	}
	ref := book.Stream(r.run.Model.Name, table)
	rows, err := r.run.Store.Get(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	kept, err := book.DecodeStream(rows[0])
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
			return nil // others have seen a later one
		}
		if err := r.switched(ctx, table, met[len(met)-1], last); err != nil {
			return err
		}
	}
	if !slices.Equal(met, labels) {
		out, err := r.run.Store.Write(ctx, []store.Write{kept.Becomes(ref, labels)})
		if err != nil || out[0].Err != nil {
			return unlessCondition(out, err)
		}
	}
	r.streams[table] = labels
	return nil
}

func (r *Reader) switched(ctx context.Context, table, met, label string) error {
	return r.keepGap(ctx, "stream of "+table, events.Position{}, fmt.Sprintf("of %s, up to %s", met, label),
		fmt.Sprintf("the stream of %s was switched off and on again: what was written in between, before %s, is in no stream, and what is derived from it may be wrong. Run projector verify, which says what is wrong (docs/guide/operations.md, After a gap)", table, label))
}

// keepGap keeps a gap where people find it, and says it.
func (r *Reader) keepGap(ctx context.Context, target string, after events.Position, between, reason string) error {
	id, err := r.run.KeepDead(ctx, runner.Dead{
		Kind: runner.DeadGap, Target: target, Position: after, Time: r.run.Now().UTC(), Source: between, Reason: reason,
	})
	if err != nil {
		return err
	}
	r.note(Gap)
	r.opts.Log.Error("gap", "of", target, "records", between, "reason", reason, "id", id)
	return nil
}
