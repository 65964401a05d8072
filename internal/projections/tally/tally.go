package tally

import (
	"fmt"
	"slices"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Fold returns the amounts that a change adds to the ledgers of its targets: a row contributes to the
// accumulators of each target the amounts that the tally's aggregate says (package aggregate), and
// takes it back when it is deleted.
func Fold(c *projections.Change, f *projections.Faults) []projections.Add {
	return foldSources(c, f, false)
}

// FoldSets is Fold of the tallies that are sets (package set): each amount is of one
// member.
func FoldSets(c *projections.Change, f *projections.Faults) []projections.Add {
	return foldSources(c, f, true)
}

// foldSources folds a change for the tallies that are sets, or for those that are not.
func foldSources(c *projections.Change, f *projections.Faults, sets bool) []projections.Add {
	e := folding{Faults: f}
	if c.Is != nil {
		for _, src := range c.Is.Sources {
			if src.Tally.IsSet() == sets {
				e.addContribution(src, c.New, false)
			}
		}
	}
	if c.Was != nil {
		for _, src := range c.Was.Sources {
			if src.Tally.IsSet() == sets {
				e.addContribution(src, c.Old, true)
			}
		}
	}
	return netAdds(e.adds)
}

// folding is the contributions of the images of one change.
type folding struct {
	*projections.Faults
	adds  []projections.Add
	parts []value.Attr // buffer for the amounts that one row adds, reused
}

// addContribution adds the contribution of a row to one tally, or takes it away if take is set. A
// value that the tally cannot use is a fault and contributes nothing.
func (e *folding) addContribution(src *model.Source, row value.Item, take bool) {
	t, rows := src.Tally, e.Faults
	if t.Group != nil && t != t.Group.Rows {
		rows = nil // it is one fault of the group, not one of each of its values
	}
	if !rows.IsUsable(&src.Input, row, take) || !e.IsUsable(&src.Given, row, take) {
		return
	}
	if all, is, err := src.Additions(row); is {
		if err != nil {
			e.NoteFault(t.Name, err.Error(), take)
		}
		for _, a := range all {
			if e.IsReachableKey(t.Name, t.Target.Table, a.Key, take) {
				e.addAmount(t, a.Key, a.Amount, take)
			}
		}
		return
	}
	amount := value.Value{}
	var wrong *model.Unfit
	var beyond error
	if src.Amount != nil {
		if amount, wrong, beyond = src.Amount.Of(row); amount.IsMissing() && beyond == nil {
			return
		}
	}
	key, unfit, ok := src.TargetOf(row)
	if unfit != nil {
		rows.NoteFault(t.Name, unfit.String(), take)
	}
	if !ok || !rows.IsReachableKey(t.Name, t.Target.Table, key, take) {
		return
	}
	switch {
	case beyond != nil:
		e.NoteFault(t.Name, fmt.Sprintf("%s is %v", src.Amount.Text, beyond), take)
		return
	case wrong != nil:
		e.NoteFault(t.Name, wrong.String(), take)
		return
	}
	if want := e.addAmount(t, key, amount, take); want != "" {
		e.NoteFault(t.Name, (&model.Unfit{Field: src.Amount.Fields[0], Value: amount, Want: want}).String(), take)
	}
}

// addAmount adds an amount to a tally of a target, or takes it away. The text is the form that the amount must have instead, "" where it
// fits.
func (e *folding) addAmount(t *model.Tally, key store.Key, amount value.Value, take bool) (want string) {
	adds, want := t.Kind.Adds(e.parts[:0], t.Attr, amount)
	if e.parts = adds; want != "" || t.IsSet() && !t.Target.Takes(key) {
		return want
	}
	for _, a := range adds {
		if take {
			a.Value = value.Negate(a.Value)
		}
		e.adds = append(e.adds, projections.Add{
			Target: store.Ref{Table: t.Target.Table.Name, Key: key}, Entity: t.Target, Field: a.Name, Amount: a.Value, Of: t.Name,
		})
	}
	return ""
}

// netAdds sums the amounts that one change adds to the same accumulator and leaves out sums of 0, so a
// change that makes no difference here costs no write.
func netAdds(adds []projections.Add) []projections.Add {
	out := adds[:0]
	for _, a := range adds {
		i := 0
		for ; i < len(out); i++ {
			if out[i].Field == a.Field && out[i].Entity == a.Entity && projections.SameRow(out[i].Target, a.Target) {
				break
			}
		}
		if i == len(out) {
			out = append(out, a)
			continue
		}
		sum, err := value.AddNumbers(out[i].Amount, a.Amount)
		if err != nil { // it would take 10^9 rows: let the store refuse the two adds
			out = append(out, a)
			continue
		}
		out[i].Amount = sum
	}
	return slices.DeleteFunc(out, func(a projections.Add) bool { return a.Amount.Sign() == 0 })
}
