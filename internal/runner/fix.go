package runner

import (
	"context"
	"fmt"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Fix corrects one derived thing that may differ: it makes it again from the rows that it is derived from.
type Fix interface {
	// Describe returns a text that is the same for all fixes of this type of the same thing.
	Describe() string
	// Phase returns the stage to which the fix belongs.
	Phase() FixPhase
	// MadeBy returns the rule that makes the thing, or the row that it is about, of the row that is compared; nil if none does.
	MadeBy() *model.RowRule
	// RowsRead returns the rows by which IsRight decides.
	RowsRead(m *model.Model) []store.Ref
	// IsRight reports whether the thing is right, by those rows, or does not exist. It does no I/O.
	IsRight(r *Runner, rows []value.Item) bool
	// Correct corrects the thing. done is false if the thing has changed since it was
	// read; the caller may correct it again. differs is false if the
	// thing was right already. An error of type Unfixable concerns only this thing. floor is a position that is not before any
	// visible change, zero if the store has no such position.
	Correct(ctx context.Context, r *Runner, floor events.Position) (done, differs bool, err error)
}

// FixPhase orders fixes. A fix may rely on the effects of fixes of earlier stages
// have written.
type FixPhase int

// The stages.
const (
	PhaseValues    FixPhase = iota // values that rows follow
	PhaseRows                      // rows that weir makes
	PhaseLinks                     // which values rows follow
	PhaseFollowers                 // the values that rows show of those that they follow
	Stages                         // the number of stages
)

// ApplyFix does a fix again until no other worker changes the thing meanwhile. floor returns
// that of each attempt, nil for none; what names the thing in the error if that never comes.
func (r *Runner) ApplyFix(ctx context.Context, f Fix, what string, floor func() events.Position) error {
	for range store.MaxRounds {
		var at events.Position
		if floor != nil {
			at = floor()
		}
		if done, _, err := f.Correct(ctx, r, at); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s changes all the time", what)
}

// FixedAt returns the position under which a Fix makes something again: the one that it
// has, or the floor if that is higher.
func FixedAt(has, floor events.Position) events.Position {
	for _, p := range []events.Position{floor, events.PositionOf(1)} {
		if p.Compare(has) > 0 {
			has = p
		}
	}
	return has
}

// Unfixable is the reason why a Fix leaves one thing as it is. Other things can be
// corrected.
type Unfixable string

func (u Unfixable) Error() string { return string(u) }

// ErrNotOurs says that another program made a row, so weir does not delete it.
var ErrNotOurs error = Unfixable("weir did not write this row, and leaves it alone")
