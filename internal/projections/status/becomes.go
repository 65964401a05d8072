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
