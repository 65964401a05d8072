package why

import (
	"context"
	"fmt"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
)

// Rows yields the rows that a store has of a model's tables, as the changes that inserting them would be: those of weir too, since
// values may be made of them.
func Rows(ctx context.Context, m *model.Model, db store.Store, yield func(*projections.Change)) error {
	for _, t := range m.Tables {
		for rows, err := range store.Pages(ctx, db, store.Query{Table: t.Name}) {
			if err != nil {
				return fmt.Errorf("reading %s: %w", t.Name, err)
			}
			for _, row := range rows {
				if key, ok := t.KeyOf(row); ok {
					yield(&projections.Change{Table: t, Row: store.Ref{Table: t.Name, Key: key}, New: row, Is: t.Classify(row)})
				}
			}
		}
	}
	return nil
}
