package runner

import (
	"context"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// The row of a group shows the group's ledger as any target does, but weir makes it: it is
// there while the ledger counts a source row. A worker that was delayed can make a row that
// another one has deleted since. The row's own record then leads to its ledger
// (projections.NeedsLedger), which says so. The ledger of a group without rows is therefore
// its tombstone, and stays as long as one.

// showsNothing reports whether a write of publishWrite is none.
func showsNothing(wr *store.Write) bool { return len(wr.Ops) == 0 && !wr.Delete }

// summaryWrite makes the row of a group show what its ledger says: it makes the row, changes
// it, or deletes it, unless the row shows something newer or weir did not write it.
func (r *Runner) summaryWrite(target store.Ref, e *model.Entity, b value.Item) store.Write {
	if r.hidden || r.Pending(e.Group.Rows.Name) {
		return store.Write{}
	}
	n := VersionOf(b)
	notNewer := store.Test{Attr: owntable.Version, Is: store.Le, Value: n}
	row, there := projections.Summary(e.Group, r.Shows(e), target.Key, b)
	if !there {
		return store.Write{Ref: target, Delete: true, If: store.Cond{{notNewer}}}
	}
	key := e.Table.Key
	wr := store.Write{Ref: target, If: store.Cond{{{Attr: key.Partition.Name, Is: store.Absent}, notNewer}}}
	wr.Ops = e.Table.AssignRow(row)
	shown, _ := projections.Published(r.Shows(e), b)
	for _, a := range shown {
		if a.Value.IsMissing() {
			wr.Ops = append(wr.Ops, store.Assign(a.Name, a.Value))
		}
	}
	wr.Ops = append(wr.Ops, store.Assign(owntable.Version, n))
	return wr
}

// notOurs reports whether another program's row stands where a group has its own.
func notOurs(e *model.Entity, row value.Item) bool {
	return isGroup(e) && row != nil && row.Get(owntable.Version).Kind() != value.Number
}

func isGroup(e *model.Entity) bool { return e != nil && e.Group != nil }

// showSummary makes the row of a group, as read, show its ledger.
func (r *Runner) showSummary(ctx context.Context, target store.Ref, e *model.Entity, row, ledger value.Item) error {
	wr := r.summaryWrite(target, e, r.based(ledger))
	if showsNothing(&wr) {
		return nil
	}
	if !Shows(row, &wr) {
		if _, err := r.showWrite(ctx, target, e, wr, ledger); err != nil {
			return err
		}
	}
	if !wr.Delete {
		return nil
	}
	ledger, err := r.NoteShown(ctx, target, ledger, nil) // an empty ledger has no letter
	if err != nil {
		return err
	}
	return r.Expire(ctx, []store.Ref{target}, []value.Item{ledger})
}
