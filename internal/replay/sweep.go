package replay

import (
	"context"
	"fmt"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
)

// BeforeSweep must be called with removals of rows whose TTL has expired, before they
// are sent to the store. For a row that a replay wrote it saves the row's mark, as a
// recorded removal does, and a digest of the row's content. So recorded changes that the
// row has seen do not bring it back, and later ones follow from that content. It also
// adds to each removal the condition that no replay writes the row meanwhile. A crash
// afterwards leaves marks of rows that still exist; these have no effect.
func BeforeSweep(ctx context.Context, s store.Store, tables map[string]*model.Table, removals []store.Write) error {
	refs := seq.Map(removals, func(w store.Write) store.Ref { return w.Ref })
	rows, err := s.Get(ctx, refs)
	if err != nil {
		return fmt.Errorf("reading rows that have expired: %w", err)
	}
	var marks []store.Write
	for i, row := range rows {
		w := &removals[i]
		w.If = append(w.If, []store.Test{store.AsRead(owntable.SeenMark, row.Get(owntable.SeenMark))})
		if k := knownOf(row); k.ever {
			marks = append(marks, owntable.LeaveSwept(w.Ref, k.value(), stripDerived(tables[w.Table], row).row))
		}
	}
	if len(marks) == 0 {
		return nil
	}
	// If the condition fails, the mark of a newer removal is already saved.
	_, err = s.Write(ctx, marks)
	return store.Wrap(err, "remembering rows that have expired")
}
