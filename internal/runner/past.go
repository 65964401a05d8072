package runner

import (
	"context"

	"weir/internal/book"
	"weir/internal/store"
	"weir/internal/value"
)

// A stream makes new shards for ever, so what is kept of each goes when the shard is
// over: applied to its end by every group, and no longer listed by the stream. What
// its checkpoints have counted stays, in one row for each group.

// Miss notes that the stream does not list a finished shard, or that it does again,
// for whoever goes on when this process is not there any more.
func (r *Runner) Miss(ctx context.Context, table, shard string, missing bool) error {
	at := book.Checkpoint(r.Model.Name, GroupRows, table, shard)
	w := book.FindCheckpoint(at)
	if missing {
		w = book.MissCheckpoint(at, r.Now())
	}
	_, err := r.write(ctx, []store.Write{w})
	return err
}

// ForgetShard removes the checkpoints of a shard that is over, with what else is kept of
// it, and adds their counts to those of the past: all at once or not at all, and not
// when any of them has changed meanwhile. From then on its lane is one that nobody
// knows, and its positions go out of the books that are written.
func (r *Runner) ForgetShard(ctx context.Context, table, shard string, also ...store.Write) error {
	groups := r.Groups()
	var refs []store.Ref
	for _, g := range groups {
		refs = append(refs, book.Checkpoint(r.Model.Name, g, table, shard))
	}
	rows, err := r.get(ctx, refs)
	if err != nil {
		return err
	}
	ws := also
	for i, row := range rows {
		if row == nil {
			continue
		}
		is, err := book.DecodeCheckpoint(row)
		if err != nil {
			return err
		}
		ws = append(ws, is.Drop(refs[i]), book.AddPast(book.Past(r.Model.Name, groups[i]), is.Counts))
	}
	if len(ws) == 0 {
		return nil
	}
	return r.Store.Transact(ctx, ws)
}

func (r *Runner) checkpoints(ctx context.Context, group string, yield func(value.Item)) error {
	q := store.Query{Table: book.TableName, Partition: value.OfString(book.Checkpoints(r.Model.Name, group))}
	for {
		page, err := r.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			yield(row)
		}
		if q.After = page.Next; q.After == nil {
			return nil
		}
	}
}
