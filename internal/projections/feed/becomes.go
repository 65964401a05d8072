package feed

import (
	"weir/internal/model"
)

// Becomes says what becomes of a feed.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != "feed" {
		return ""
	}
	if x.What == model.Changed && x.Build == "" {
		return "it goes on with the subscribers that it has"
	}
	return "what it would send before its build is live becomes dead letters, and a retry sends it then"
}
