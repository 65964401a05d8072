package projections

import "weir/internal/model"

// UntilLive says what rows show of values that a build shows when it is live.
func UntilLive(x *model.DerivationDiff) string {
	if x.What == model.Changed {
		return "rows show the old value, which nothing updates, until its build is live"
	}
	return "absent until its build is live"
}

// InPlace says what rows show that a build makes right in place.
func InPlace(x *model.DerivationDiff) string {
	if x.What == model.Changed {
		return "rows are compared with their sources and corrected one by one; copies at keys that it no longer gives stay"
	}
	return "rows get it one by one"
}
