package runner

import (
	"context"
	"fmt"

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
//
// A group that shows the latest of its rows, too, is recomputed as any such row is (package status): each recompute
// raises the ledger's version, reads the facts after that, and shows them with the values of the ledger of this version.

// IsLapsed reports whether a row that weir makes has a time to live of its own that is over. Such a row is changed where it
// stands, and is not made again: TTL may have deleted it.
func IsLapsed(r *Runner, p *projections.Put) bool {
	return p.Image != nil && p.Rule.Into.ExpiresMade() && p.Rule.Into.Table.Expired(p.Image, r.Now())
}

// showsNothing reports whether a write of publishWrite is none.
func showsNothing(wr *store.Write) bool { return len(wr.Ops) == 0 && !wr.Delete }

// summaryWrite makes the row of a group show the values of its ledger: it makes the row, changes
// it, or deletes it, unless the row shows something newer or weir did not write it. latest is the recomputed part.
func (r *Runner) summaryWrite(target store.Ref, e *model.Entity, b value.Item, latest ...value.Attr) store.Write {
	if r.hidden || r.IsPending(e.Group.Rows.Name) {
		return store.Write{}
	}
	n := VersionOf(b)
	notNewer := store.Test{Attr: owntable.Version, Is: store.Le, Value: n}
	row, there := projections.SummaryRow(e.Group, r.ShownTallies(e), target.Key, b)
	if !there {
		return store.Write{Ref: target, Delete: true, If: store.Cond{{notNewer}}}
	}
	row = row.With(latest...)
	key := e.Table.Key
	wr := store.Write{Ref: target, If: store.Cond{{{Attr: key.Partition.Name, Is: store.Absent}, notNewer}}}
	if e.Table.Expired(row, r.Now()) { // TTL may have deleted it
		wr.If = store.Cond{r.ExistsCondition(e.Table.Name), {notNewer}}
	}
	wr.Ops = e.Table.AssignRow(row)
	shown, _ := projections.PublishedValues(r.ShownTallies(e), b)
	for _, a := range append(shown, latest...) {
		if a.Value.IsMissing() {
			wr.Ops = append(wr.Ops, store.Assign(a.Name, a.Value))
		}
	}
	wr.Ops = append(wr.Ops, store.Assign(owntable.Version, n))
	return wr
}

// GroupAt returns the entity of a group that shows the latest of its rows and has a row at this key, nil for none.
func (r *Runner) GroupAt(target store.Ref) *model.Entity {
	if e := r.publishedEntity(target); isGroup(e) && e.IsRecomputed() {
		return e
	}
	return nil
}

// ShowGroup is the write that makes the row of a group, as read, show a ledger and the latest of its rows. version is the
// condition under which the row may be written if it shows a version, or none, that the ledger does not explain. There is
// nothing to write without Ops and Delete. The error is ErrRefused if the row belongs to another program.
func (r *Runner) ShowGroup(target store.Ref, e *model.Entity, row, ledger value.Item, latest []value.Attr, version []store.Test) (store.Write, error) {
	wr := r.summaryWrite(target, e, ledger, latest...)
	switch other := notOurs(e, row); {
	case showsNothing(&wr), wr.Delete && (other || row == nil):
		return store.Write{}, nil
	case other && r.Model.Table(target.Table).Classify(row) != e:
		return wr, notTheirs(e)
	case other, row != nil && value.Compare(row.Get(owntable.Version), VersionOf(ledger)) > 0:
		wr.If = store.Cond{r.ExistsCondition(e.Table.Name), version}
	}
	wr.Return = true
	return wr, nil
}

// notOurs reports whether another program's row stands where a group has its own.
func notOurs(e *model.Entity, row value.Item) bool {
	return isGroup(e) && row != nil && row.Get(owntable.Version).Kind() != value.Number
}

// notTheirs says that a group cannot be shown there.
func notTheirs(e *model.Entity) error {
	return fmt.Errorf("%w: another program's row is at this key; delete that row, or give %s another key", store.ErrRefused, e.Name)
}

func isGroup(e *model.Entity) bool { return e != nil && e.Group != nil }

// showSummary makes the row of a group, as read, show its ledger.
func (r *Runner) showSummary(ctx context.Context, target store.Ref, e *model.Entity, row, ledger value.Item) error {
	wr := r.summaryWrite(target, e, r.withVersion(ledger))
	if showsNothing(&wr) {
		return nil
	}
	if !AlreadyShows(row, &wr) {
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
	return r.ExpireLedgers(ctx, []store.Ref{target}, []value.Item{ledger})
}
