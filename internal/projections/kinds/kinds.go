// Package kinds is the list of projection kinds.
package kinds

import (
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/projections/document"
	"weir/internal/projections/feed"
	"weir/internal/projections/follow"
	"weir/internal/projections/set"
	"weir/internal/projections/status"
	"weir/internal/projections/tally"
	"weir/internal/runner"
	"weir/internal/value"
)

// All returns the kinds in the order in which a runner applies a batch. A status is shown
// together with the tallies of its row, so it comes after them.
func All() []runner.Kind {
	return []runner.Kind{
		tally.Kind{}, set.Kind{}, status.Kind{}, copies.Kind{}, follow.Kind{}, feed.Kind{}, document.Kind{},
	}
}

// Contributions returns what a row of entity is adds to tallies of one entity. unfit says
// that a tally cannot use the row.
func Contributions(of []*model.Tally, is *model.Entity, row value.Item) (cs []projections.Contribution, unfit bool) {
	return tally.Contributions(of, is, row)
}

// Excesses lists what a change of a row would lead to that weir could never derive. See
// projections.Excesses.
func Excesses(m *model.Model, c *projections.Change) []projections.Excess {
	limits := func(x *projections.Limits, c *projections.Change, from projections.Origin) {
		for _, k := range All() {
			k.Limits(x, c, from)
		}
	}
	faults := func(c *projections.Change) []projections.Fault {
		g, _ := runner.Fold(All(), m, []projections.Change{*c})
		return g.Faults
	}
	return projections.Excesses(m, c, limits, faults)
}
