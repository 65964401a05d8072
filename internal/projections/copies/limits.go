package copies

import (
	"weir/internal/projections"
	"weir/internal/value"
)

// Limits notes the writes for rows made from a row that would exceed a limit and never can be done.
func (Kind) Limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	for _, rule := range c.Is.Rules {
		if rule.Subscribers == nil {
			x.SetDerivation(rule.Name).CheckRule(rule, c, from, func(one *projections.Change, row value.Item) (projections.Put, bool) {
				if !rule.Input.Uses(row) {
					return projections.Put{}, false
				}
				return projections.MakeRow(one, rule, row)
			})
		}
	}
}
