package runner

import (
	"context"

	"weir/internal/book"
	"weir/internal/store"
	"weir/internal/value"
)

// Overtake moves a group's place in every shard to where another group is, unless
// it is there or beyond. It is for a group whose results are about to be made from
// the rows: these have all that the other group has read, and what is older may be
// trimmed already. A checkpoint of the other group that cannot be read is passed over:
// this group applies what is there from where it is, which changes nothing.
func (r *Runner) Overtake(ctx context.Context, group, other string) error {
	q := store.Query{Table: book.TableName, Partition: value.OfString(book.Checkpoints(r.Model.Name, other))}
	for {
		page, err := r.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		var ws []store.Write
		for _, row := range page.Rows {
			is, err := book.DecodeCheckpoint(row)
			if err != nil || is.At.IsZero() {
				continue
			}
			ws = append(ws, book.OvertakeCheckpoint(book.Ref(book.Checkpoints(r.Model.Name, group), row.Get(book.Sort).Text()), is.At))
		}
		if _, err := r.write(ctx, ws); err != nil {
			return err
		}
		if page.Next == nil {
			return nil
		}
		q.After = page.Next
	}
}
