package runner

import (
	"context"
	"time"

	"weir/internal/book"
	"weir/internal/store"
	"weir/internal/value"
)

// A stream makes new shards for ever, so what is kept of each goes when the shard is
// over: applied to its end by every group, and no longer listed by the stream. What
// its checkpoints have counted stays, in one row for each group.

// The counts of a checkpoint, and of all that are forgotten.
const (
	appliedAttr = "applied"
	skippedAttr = "skipped"
	keptAttr    = "kept"
	missingAttr = "g" // of a finished shard: since when the stream does not list it
)

func countsOf(row value.Item) Counts {
	count := func(name string) int { v, _ := row.Get(name).Int64(); return int(v) }
	return Counts{count(appliedAttr), count(skippedAttr), count(keptAttr)}
}

func (n Counts) ops() []store.Op {
	var out []store.Op
	for _, c := range []struct {
		name string
		n    int
	}{{appliedAttr, n.Applied}, {skippedAttr, n.Skipped}, {keptAttr, n.Kept}} {
		out = append(out, store.Op{Kind: store.Add, Attr: c.name, Value: value.OfInt(int64(c.n))})
	}
	return out
}

// Miss notes that the stream does not list a finished shard, or that it does again,
// for whoever goes on when this process is not there any more.
func (r *Runner) Miss(ctx context.Context, table, shard string, missing bool) error {
	w := store.Write{Ref: book.Checkpoint(r.Model.Name, GroupRows, table, shard), If: store.Cond{{{Attr: doneAttr, Is: store.Exists}}}}
	if missing {
		w.If = append(w.If, []store.Test{{Attr: missingAttr, Is: store.Absent}})
		w.Ops = []store.Op{set(missingAttr, value.OfInt(r.Now().Unix()))}
	} else {
		w.Ops = []store.Op{{Kind: store.Remove, Attr: missingAttr}}
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
		ws = append(ws,
			store.Write{Ref: refs[i], Delete: true, If: store.Cond{
				{{Attr: doneAttr, Is: store.Exists}}, {store.AsRead(book.Position, row.Get(book.Position))}, {store.AsRead(tenureAttr, row.Get(tenureAttr))},
			}},
			store.Write{Ref: book.Past(r.Model.Name, groups[i]), Ops: countsOf(row).ops()})
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

func missingSince(row value.Item) time.Time {
	if s, ok := row.Get(missingAttr).Int64(); ok {
		return time.Unix(s, 0)
	}
	return time.Time{}
}
