package status

import (
	"context"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// DerivedRows returns the facts that a row reports about statuses of the entity that is built, and notes the parts that they cannot use.
// They have the least position, so any fact that a record has put, or withdrawn, is newer.
func (Kind) DerivedRows(r *runner.Runner, name string, c *projections.Change, faults *projections.Faults) (out []runner.DerivedRow) {
	for _, f := range Fold(c, faults) {
		if f.Entity.Name != name {
			continue
		}
		f.Position = events.PositionOf(1)
		ref := owntable.Fact(r.Model.Name, f.List, f.Name)
		out = append(out, r.DerivedRowOf(f.memberRow().Keep(ref, value.Value{}), c.Row))
	}
	return out
}

// Audit makes a fact say the report of its row. It keeps its position, so a change that is
// still to come wins.
func (Kind) Audit(_ context.Context, r *runner.Runner, have value.Item, want *runner.DerivedRow) (w store.Write, mine bool, err error) {
	list, name, mine := owntable.FactOf(r.Model.Name, have)
	if !mine {
		return w, false, nil
	}
	is := owntable.MemberFrom(have)
	next := owntable.Member{Name: name, Position: is.Position}
	if want != nil {
		next.Says = owntable.MemberFrom(want.Row).Says
	}
	if (next.Says == nil) == (is.Says == nil) && value.EqualItems(next.Says, is.Says) {
		return w, true, nil
	}
	return is.Replace(owntable.Fact(r.Model.Name, list, name), next, r.OwnRowExpiry()), true, nil
}
