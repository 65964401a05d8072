// Package kinds is the list of projection kinds.
package kinds

import (
	"weir/internal/projections/copies"
	"weir/internal/projections/document"
	"weir/internal/projections/feed"
	"weir/internal/projections/follow"
	"weir/internal/projections/set"
	"weir/internal/projections/status"
	"weir/internal/projections/tally"
	"weir/internal/runner"
)

// All returns the kinds in the order in which a runner applies a batch. A status is shown
// together with the tallies of its row, so it comes after them.
func All() []runner.Kind {
	return []runner.Kind{
		tally.Kind{}, set.Kind{}, status.Kind{}, copies.Kind{}, follow.Kind{}, feed.Kind{}, document.Kind{},
	}
}
