package live

import (
	"context"
	"fmt"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// A stream that is switched off, and on again, is another one, and what was written in
// between is in neither. Its label, which is the moment it was switched on, is kept:
//
//	stream|MODEL  s TABLE  l label
const labelAttr = "l"

// renamer is a store whose tables' streams may be switched off and on.
type renamer interface {
	// Stream is the label of the stream that is on, which sorts behind those before.
	Stream(ctx context.Context, table string) (label string, err error)
}

// sameStream names a gap when a table has another stream than it had. A crash before
// the label is kept names the same gap again, which changes nothing.
func (r *Reader) sameStream(ctx context.Context, table string) error {
	s, ok := r.run.Store.(renamer)
	if !ok {
		return nil
	}
	label, err := s.Stream(ctx, table)
	if err != nil || r.streams[table] == label {
		return err
	}
	ref := book.Stream(r.run.Model.Name, table)
	rows, err := r.run.Store.Get(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	met, w := rows[0].Get(labelAttr).Text(), store.Write{Ref: ref, Ops: []store.Op{op(store.Set, labelAttr, value.OfString(label))}}
	switch {
	case met == "":
		w.If = store.Cond{{{Attr: book.Partition, Is: store.Absent}}}
	case met < label:
		w.If = store.Cond{equal(labelAttr, value.OfString(met))}
		if err := r.switched(ctx, table, met, label); err != nil {
			return err
		}
	}
	if met < label {
		out, err := r.run.Store.Write(ctx, []store.Write{w})
		if err := unlessCondition(out, err); err != nil {
			return err
		}
	}
	r.streams[table] = label
	return nil
}

func (r *Reader) switched(ctx context.Context, table, met, label string) error {
	return r.keepGap(ctx, "stream of "+table, events.Position{}, fmt.Sprintf("of %s, up to %s", met, label),
		fmt.Sprintf("the stream of %s was switched off and on again: what was written in between, before %s, is in no stream, and what is derived from it may be wrong. Run projector verify, which says what is wrong (docs/aws.md, After a gap)", table, label))
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
