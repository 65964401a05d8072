package document

import (
	"context"

	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
)

// Fix makes a document agree with its row.
type Fix struct {
	runner.BaseFix
	Search *model.Search
	ID     string
}

// Thing returns the document's name.
func (f *Fix) Thing() string { return f.Search.Name + "\x00" + f.ID }

// Stage returns StageDocuments.
func (*Fix) Stage() runner.Stage { return runner.StageDocuments }

// Correct indexes the document as its row is now, or deletes it. It does so under the position that
// the index has for it, or the floor of the verification, so a later change wins over the repair. What
// the index already holds is left alone. An index that cannot be reached is an error; nothing is lost.
func (f *Fix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	d := search.Document{Index: Index(r.Model, f.Search), ID: f.ID}
	at, err := r.Index.Positions(ctx, []search.Document{d})
	if err != nil {
		return false, false, err
	}
	t := f.Search.Of.Table
	key, err := search.ParseID(f.ID)
	there := err == nil
	if there {
		if _, ok := t.KeyOf(t.Item(key)); ok {
			rows, err := r.Get(ctx, []store.Ref{{Table: t.Name, Key: key}})
			if err != nil {
				return false, false, err
			}
			var is search.Document
			if is, there = Of(r.Model, f.Search, t.Classify(rows[0]), key, rows[0]); there {
				d = is
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
	d.Deleted, d.Position = !there, runner.RepairAt(at[0], now.Floor)
	errs, err := r.ApplyDocuments(ctx, []search.Document{d})
	if err == nil {
		err = errs[0]
	}
	return err == nil, true, err
}
