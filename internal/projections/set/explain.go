package set

import (
	"fmt"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/tally"
	"weir/internal/runner"
)

// Derives returns the attribute of the set on an entity.
func (Kind) Derives(e *model.Entity) []string {
	if set := e.SetOf(); set != nil {
		return []string{set.Attr}
	}
	return nil
}

// Explain returns the kind's part in explaining a value.
func (Kind) Explain(of *runner.Asked) runner.Explanation {
	if set := of.Entity.SetOf(); set == nil || set.Attr != of.Attr {
		return runner.BaseExplanation{}
	}
	return &explanation{Ledger: tally.Ledger{Asked: of}}
}

// explanation is that of a tally, over the members of one set.
type explanation struct {
	runner.BaseExplanation
	tally.Ledger
}

// Parts says which members a change adds or takes away.
func (x *explanation) Parts(c *projections.Change) []string {
	return x.Adds(Fold(c, nil))
}

// Value returns the size of the set after a change.
// It counts members that at least one row has.
func (x *explanation) Value(c *projections.Change) string {
	x.Take(Fold(c, nil))
	n := 0
	for _, a := range x.Sums {
		if a.Value.Sign() > 0 {
			n++
		}
	}
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}
