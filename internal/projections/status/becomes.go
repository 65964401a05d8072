package status

import (
	"fmt"

	"weir/internal/model"
)

// Becomes says what becomes of a status.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != "status" {
		return ""
	}
	return fmt.Sprintf("no status of %s moves until its build is live", x.Into)
}
