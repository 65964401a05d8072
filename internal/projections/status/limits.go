package status

import (
	"weir/internal/projections"
	"weir/internal/value"
)

// Limits notes the keys of targets that a row reports facts about and that cannot be.
// It is asked before a command writes, so that a row whose target cannot exist is refused there.
func (Kind) Limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	for _, st := range c.Is.Stages {
		if st.Input.Uses(c.New) {
			x.SetDerivation(st.Status.Name).CheckTarget(st.Status.Target, st.To, c.New, from)
		}
	}
	for _, l := range c.Is.LatestOf {
		if by := l.By.Get(c.New); l.Group == nil && l.Input.Uses(c.New) && !by.IsMissing() && by.Kind() != value.Null {
			x.SetDerivation(l.Name).CheckTarget(l.Target, l.To, c.New, from)
		}
	}
}
