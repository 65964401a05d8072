package status

import (
	"fmt"

	"weir/internal/model"
	"weir/internal/projections"
)

// Becomes says what becomes of a status.
func (Kind) Becomes(x *model.DerivationDiff) string {
	switch {
	case model.IsLatest(x.Kind) && x.What == model.Changed:
		return projections.UntilLive(x) + "; what is no longer under also stays in the rows, and nothing updates it"
	case model.IsLatest(x.Kind):
		return projections.UntilLive(x)
	case x.Kind != "status":
		return ""
	}
	return fmt.Sprintf("no status of %s moves until its build is live", x.Into)
}

// Remains returns what a status shows over what the application wrote, and what a latest shows.
func (Kind) Remains(m *model.Model, d *model.Derivation) (is projections.Remains) {
	for _, s := range m.Statuses {
		if s.Name == d.Name {
			is.Over = append(is.Over, s.Attributes()...)
		}
	}
	for _, l := range m.Latest {
		if l.Name == d.Name {
			is.Attrs = append(is.Attrs, l.Attributes()...)
		}
	}
	return is
}
