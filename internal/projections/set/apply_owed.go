package set

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// The table of a set may take no writes for long (runner/outage.go). Its nodes are in our own table and go on.
// A row that should show a node is owed; a split or a join owes its rows in the transaction in which it
// happens. Later they show their nodes as these are by then.

// owing returns what is owed for rows that show nodes.
func owing(rows []store.Ref) []runner.Owed {
	owed := make([]runner.Owed, len(rows))
	for i, row := range rows {
		owed[i] = runner.Owed{Row: row, OwedRow: owntable.OwedRow{Kind: owntable.OwedSet}}
	}
	return owed
}

// outlast returns the rows whose table takes writes, and notes that the others are owed.
func outlast(ctx context.Context, r *runner.Runner, leaves []Leaf) (rest []Leaf, err error) {
	var owed []store.Ref
	for _, l := range leaves {
		if r.IsOut(l.Row.Table) == nil {
			rest = append(rest, l)
		} else {
			owed = append(owed, l.Row)
		}
	}
	return rest, r.OweSmall(ctx, owing(owed)...)
}

// Settle makes a row show its node of the tree that its table shows, or deletes it.
func (Kind) Settle(ctx context.Context, r *runner.Runner, o runner.Owed) (mine, done bool, err error) {
	if o.Kind != owntable.OwedSet {
		return false, false, nil
	}
	for _, e := range r.Model.Entities {
		if e.SetOf() == nil || e.Table.Name != o.Row.Table {
			continue
		}
		if _, _, ok := e.LeafPath(o.Row.Key); !ok {
			continue
		}
		in, err := r.ShownOf(ctx, e)
		if err == nil {
			_, err = ShowNode(ctx, in, e, o.Row)
		}
		return true, err == nil, err
	}
	return true, true, nil
}
