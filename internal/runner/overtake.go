package runner

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Overtake moves a group's checkpoint in every shard forward to that of another group; it
// never moves one back. It is for a group whose results are about to be built from the
// rows: the rows include everything that the other group has read, and older records may
// be trimmed already. Overtake skips a checkpoint of the other group that cannot be read:
// this group then applies the records from its own checkpoint, which gives the same
// result.
func (r *Runner) Overtake(ctx context.Context, group, other string) error {
	q := store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Checkpoints(r.Model.Name, other))}
	for rows, err := range store.Pages(ctx, r.Store, q) {
		if err != nil {
			return err
		}
		var ws []store.Write
		for _, row := range rows {
			is, err := owntable.DecodeCheckpoint(row)
			if err != nil || is.At.IsZero() {
				continue
			}
			ws = append(ws, owntable.OvertakeCheckpoint(owntable.Checkpoint(r.Model.Name, group, is.Table, is.Shard), is.At, is.Done))
		}
		if _, err := r.Write(ctx, ws); err != nil {
			return err
		}
	}
	return nil
}
