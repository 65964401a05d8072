package feed

import (
	"weir/internal/model"
)

// Becomes says what becomes of a feed.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != "feed" {
		return ""
	}
	return "nothing is sent by it until its build is live"
}
