package replay

import (
	"context"
	"fmt"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// BeforeSweep is to be called with removals of rows whose TTL has expired, before they
// are sent to the store. Where a replay wrote a row, it leaves the row's mark, as a
// recorded removal does, and what the row was: the recorded changes that the row has
// seen do not bring it back, and later ones follow from what it was. Each removal then
// holds only for a row that no replay writes meanwhile. A crash afterwards leaves marks
// of rows that are there, which count for nothing.
func BeforeSweep(ctx context.Context, s store.Store, tables map[string]*model.Table, removals []store.Write) error {
	refs := make([]store.Ref, len(removals))
	for i := range removals {
		refs[i] = removals[i].Ref
	}
	rows, err := s.Get(ctx, refs)
	if err != nil {
		return fmt.Errorf("reading rows that have expired: %w", err)
	}
	var marks []store.Write
	for i, row := range rows {
		w := &removals[i]
		w.If = append(w.If, []store.Test{store.AsRead(book.SeenMark, row.Get(book.SeenMark))})
		if m, ok := markOf(row); ok {
			marks = append(marks, m.leaveSwept(w.Ref, strip(tables[w.Table], row).row))
		}
	}
	if len(marks) == 0 {
		return nil
	}
	// A condition that does not hold says that a newer removal is remembered.
	if _, err := s.Write(ctx, marks); err != nil {
		return fmt.Errorf("remembering rows that have expired: %w", err)
	}
	return nil
}

// swept is what the mark of an expired row has beside the mark: what the row was.
const swept = "swept"

// leaveSwept is the write that remembers the removal of an expired row.
func (m mark) leaveSwept(of store.Ref, was value.Item) store.Write {
	w := m.leave(of)
	w.Ops = []store.Op{{Kind: store.Set, Attr: book.SeenMark, Value: m.value()}, {Kind: store.Set, Attr: swept, Value: digest(was)}}
	w.If = store.Cond{{
		{Attr: book.SeenMark, Is: store.Absent},
		{Attr: book.SeenMark, Is: store.Le, Value: m.value()},
	}}
	return w
}

func digest(it value.Item) value.Value {
	return value.OfString(book.HashOf(value.AppendItem(nil, it)))
}
