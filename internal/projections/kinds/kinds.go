// Package kinds is the list of projection kinds.
package kinds

import (
	"context"
	"fmt"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/projections/document"
	"weir/internal/projections/feed"
	"weir/internal/projections/follow"
	"weir/internal/projections/set"
	"weir/internal/projections/status"
	"weir/internal/projections/tally"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// All returns the kinds in the order in which a runner applies a batch. A status is shown
// together with the tallies of its row, so it comes after them.
func All() []runner.Kind {
	return []runner.Kind{
		tally.Kind{}, set.Kind{}, status.Kind{}, copies.Kind{}, follow.Kind{}, feed.Kind{}, document.Kind{},
	}
}

// Contributions returns the amounts that a row of entity is adds to tallies of one entity. unfit says
// which tallies cannot use the row.
var Contributions = tally.ContributionsOf

// GroupByTransaction groups a builder's puts for targets of an entity into pieces for PutPiece.
func GroupByTransaction(e *model.Entity, targets []runner.ReadTarget) (out [][]runner.ReadTarget) {
	if e.SetOf() == nil {
		return runner.GroupByTransaction(targets)
	}
	return seq.Map(targets, func(t runner.ReadTarget) []runner.ReadTarget { return []runner.ReadTarget{t} })
}

// ShowUnits returns the write and the read units that it takes to show a target of an entity, or a
// node of a set. row is the target as it is, or the node, which is read with its ledger, or its
// node; nil is a row that weir will make. Entries in the table's indexes count. Where facts are shown, their
// list is read, and the ledger is written first.
func ShowUnits(e *model.Entity, row value.Item) (units, reads int) {
	units, reads = store.WriteUnits(row.Size()), store.ReadUnits(row.Size())+1
	switch {
	case len(e.Table.Indexes) == 0:
	case e.Table.Classify(row) == e:
		units += e.Table.EntryUnits(row, row.With(anyAttributes(e.DerivedAttributes())...))
	default:
		names := e.DerivedAttributes()
		names = append(names, seq.Map(e.Keys, func(k *model.KeyTemplate) string { return k.Attr.Name })...)
		names = append(names, seq.Map(e.Attributes, func(a *model.Attribute) string { return a.Name })...)
		units += e.Table.EntryUnits(nil, value.Item{}.With(anyAttributes(names)...))
	}
	if (status.Kind{}).Shows(e) {
		units++
		if projections.MayLack(e) {
			reads++
		}
	}
	return units, reads
}

// anyAttributes returns attributes with these names, whose values are like no others.
func anyAttributes(names []string) (out []value.Attr) {
	return seq.Map(names, func(name string) value.Attr { return value.Attr{Name: name, Value: value.OfString("\x00")} })
}

// PutPiece counts rows that a builder has read in the ledgers of their targets, in a generation whose
// runner is r (runner.PutPiece). e is the targets' entity.
func PutPiece(ctx context.Context, r *runner.Runner, e *model.Entity, piece []runner.ReadTarget, unread bool, guard ...store.Write) (did runner.Put, err error) {
	if e.SetOf() == nil {
		return r.PutPiece(ctx, piece, unread, guard...)
	}
	for _, t := range piece {
		if err := set.PutRows(ctx, r, e, t.Target, t.Rows, guard...); err != nil {
			return did, fmt.Errorf("%s: %w", r.DescribeRow(t.Target), err)
		}
	}
	return did, nil
}

// ShowNode makes a row of a set show its node in a generation, whose runner is r. The row is
// one of the set's, or the node's row of our own table; others are left.
func ShowNode(ctx context.Context, r *runner.Runner, e *model.Entity, ref store.Ref, row value.Item) error {
	if ref.Table == owntable.TableName {
		return set.ShowNodeRow(ctx, r, e, row)
	}
	return set.ShowNode(ctx, r, e, ref)
}

// The work of builders on copies and histories.
var (
	WillMake   = copies.WillMake
	Replaces   = copies.IsReplacing
	Entries    = copies.HistoryEntries
	PutEntries = copies.PutEntries
)

// Excesses lists the effects of a change of a row that weir could never derive. See
// projections.Excesses.
func Excesses(m *model.Model, c *projections.Change) []projections.Excess {
	limits := func(x *projections.Limits, c *projections.Change, from projections.Origin) {
		for _, k := range All() {
			k.Limits(x, c, from)
		}
	}
	faults := func(c *projections.Change) []projections.Fault {
		g, _ := runner.Fold(All(), m, []projections.Change{*c})
		return g.Faults
	}
	return projections.Excesses(m, c, limits, faults)
}

// FieldName returns the name of a field that rows follow. See follow.FieldName.
func FieldName(f *model.Follow) string { return follow.FieldName(f.Source, f.Field.Name) }

// FollowedBy returns the row whose field an attribute of a row follows.
var FollowedBy = follow.FollowedBy

// Index returns the name that a model's search index has. See document.IndexName.
var Index = document.IndexName
