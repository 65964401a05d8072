package status

import (
	"weir/internal/model"
	"weir/internal/projections"
)

// limits notes the keys of targets that a row reports facts about and that cannot be.
func limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	for _, st := range c.Is.Stages {
		if model.Holds(st.Where, c.New) {
			x.Of(st.Status.Name).Target(st.Status.Target, st.To, c.New, from)
		}
	}
}
