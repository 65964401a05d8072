package tally

import (
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/value"
)

// Limits notes contributions of a row to tallies that it never can make. sets says whether to
// check the tallies that are sets, or the others.
func Limits(x *projections.Limits, c *projections.Change, from projections.Origin, sets bool) {
	for _, src := range c.Is.Sources {
		if src.Tally.IsSet() == sets {
			sourceLimits(x.SetDerivation(src.Tally.Name), src, c.New, from)
		}
	}
}

// sourceLimits checks the contribution of a row to a tally.
// A row that counts for nothing is not checked. An amount is checked only where the key can be
// made.
func sourceLimits(x *projections.Limits, src *model.Source, row value.Item, from projections.Origin) {
	if !src.Input.Uses(row) || src.Amount != nil && src.Amount.Lacks(row) {
		return
	}
	before := x.CountFound()
	switch key, _, ok := src.TargetOf(row); {
	case src.Amount != nil && src.Amount.Function != nil: // contribute checks the keys that it adds to
	case ok:
		x.CheckKey(src.Tally.Target, key, projections.Assignments(src.To, from))
	case src.Tally.Group == nil:
		x.CheckTarget(src.Tally.Target, src.To, row, from)
	}
	var f projections.Faults
	e := folding{Faults: &f}
	e.addContribution(src, row, false)
	if src.Amount == nil || x.CountFound() > before {
		return
	}
	for _, f := range f.NewFaults() {
		x.AddExcess(projections.Origins(src.Amount.Fields[0].Names(), from), "gives nothing to %s: %s", f.Derivation, x.Model.ShownText(f.Reason))
	}
	for _, a := range e.adds {
		if len(a.Field) > maxAttrName {
			x.AddExcess(projections.Origins(src.Amount.Fields[0].Names(), from), "has a value for %s of %d bytes, %d are possible", src.Tally.Name, len(a.Field), maxAttrName)
		}
	}
}

// maxAttrName is the longest name of an attribute in DynamoDB. Each value that a distinct
// tally counts becomes an attribute name.
const maxAttrName = 65535
