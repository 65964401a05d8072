package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// ErrForgotten says that a recorded change may be of a row that was removed by a replay, which was forgotten.
var ErrForgotten = errors.New("removals were forgotten")

// Forget deletes the marks of all removals in the model's tables that were recorded up to a time, and returns how many. They
// are the marks that keep a removed row from coming back when its recording is replayed again. So from then on a recorded
// change up to that time is refused, with ErrForgotten, if its row does not exist. The tables say so before the first
// mark goes: after a crash, call it again.
//
// A removal that was recorded without a time goes with any.
func (r *Replay) Forget(ctx context.Context, upTo time.Time) (n int, err error) {
	last := known{seen: mark{time: upTo.UnixMicro()}}
	var tables []string
	var ws []store.Write
	for _, t := range r.Model.Tables {
		tables, ws = append(tables, t.Name), append(ws, owntable.LeaveSeen(store.Ref{Table: t.Name}, last.value(), false))
	}
	if err := r.writeAll(ctx, ws); err != nil {
		return 0, err
	}
	for rows, err := range store.Pages(ctx, r.Store, store.Query{Table: owntable.TableName}) {
		if err != nil {
			return n, err
		}
		ws = ws[:0]
		for _, row := range rows {
			if k := knownOf(row); k.ever && k.newestTime() <= last.seen.time && slices.Contains(tables, owntable.SeenTable(row)) {
				ws = append(ws, owntable.ForgetSeen(row))
			}
		}
		if err := r.writeAll(ctx, ws); err != nil {
			return n, err
		}
		n += len(ws)
	}
	return n, nil
}

// writeAll does writes. A condition that fails is no error: another removal has come meanwhile, or a later time.
func (r *Replay) writeAll(ctx context.Context, ws []store.Write) error {
	out, err := r.Store.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if err := out[i].Err; err != nil && !errors.Is(err, store.ErrCondition) {
			return err
		}
	}
	return nil
}

// checkForgotten returns ErrForgotten if nothing tells whether a change of the row was replayed before.
func (w *row) checkForgotten(m mark) error {
	if w.now != nil || w.ever || w.forgot == nil || m.time > w.forgot.time {
		return nil
	}
	return fmt.Errorf("%s: a replay may have removed it, and %w up to %s: leave out recordings from before, or replay them into tables of their own",
		w.ref, ErrForgotten, time.UnixMicro(w.forgot.time).UTC().Format(time.RFC3339))
}

// noteForgotten notes in rows that do not exist, and of which nothing is known, up to when removals in their table were
// forgotten, by the marks of the tables as they were read after the rows.
func noteForgotten(rows []*row, tables []string, marks []value.Item) {
	for _, w := range rows {
		if k := knownOf(marks[slices.Index(tables, w.ref.Table)]); k.ever {
			w.forgot = &k.seen
		}
	}
}
