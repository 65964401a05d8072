package document

import (
	"context"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
)

// Repair makes a search document agree with its row as the row is now.
func Repair(ctx context.Context, r *runner.Runner, s *model.Search, id string, floor events.Position) (done, differs bool, err error) {
	d := search.Document{Index: Index(r.Model, s), ID: id}
	at, err := r.Index.Positions(ctx, []search.Document{d})
	if err != nil {
		return false, false, err
	}
	t := s.Of.Table
	key, err := search.ParseID(id)
	there := err == nil
	if there {
		if _, ok := t.KeyOf(t.Item(key)); ok {
			rows, err := r.Get(ctx, []store.Ref{{Table: t.Name, Key: key}})
			if err != nil {
				return false, false, err
			}
			var now search.Document
			if now, there = Of(r.Model, s, t.Classify(rows[0]), key, rows[0]); there {
				d = now
			}
		} else {
			there = false
		}
	}
	if there {
		if held, err := r.Index.Holds(ctx, []search.Document{d}); err != nil || held[0] {
			return true, false, err
		}
	}
	d.Deleted, d.Position = !there, runner.RepairAt(at[0], floor)
	errs, err := r.ApplyDocuments(ctx, []search.Document{d})
	if err == nil {
		err = errs[0]
	}
	return err == nil, true, err
}
