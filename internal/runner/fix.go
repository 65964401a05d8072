package runner

import (
	"context"
	"fmt"

	"weir/internal/events"
	"weir/internal/owntable"
)

// Fix corrects one derived thing that a verification found to differ. Package repair
// drives it in one of two ways, which Stage chooses.
//
// A thing that only a recount over all rows can tell (up to StageFacts) is noted first;
// then all rows are recounted, and Correct writes the recount. Everything else (from
// StageValues on) is made again from the rows that it is derived from, by Correct alone.
type Fix interface {
	// Thing returns a text that is the same for all fixes of this type of the same thing.
	Thing() string
	// Stage returns the stage to which the fix belongs.
	Stage() Stage
	// Note reads the present state of the thing. Correct writes on condition that this
	// state still holds.
	Note(ctx context.Context, r *Runner) error
	// Units returns about the write units of a correction on DynamoDB, with the fence of a builder.
	Units() int
	// Reads returns about the read units of a correction, which reads rows of up to 4 KB.
	Reads() int
	// Correct corrects the thing. done is false if the thing has changed since it was
	// noted or read; the caller may note and correct it again. differs is false if the
	// thing was right already. An error of type Unfixable concerns only this thing.
	Correct(ctx context.Context, r *Runner, now *Recounted) (done, differs bool, err error)
}

// Stage orders the fixes of one repair. A fix may rely on what the fixes of earlier stages
// have written.
type Stage int

// The stages.
const (
	StageCounts    Stage = iota // sums of changes: written only when all changes are applied
	StageFacts                  // other things that a recount tells
	StageValues                 // values that rows follow
	StageRows                   // rows that weir makes
	StageLinks                  // which values rows follow
	StageFollowers              // what rows show of the values that they follow
	StageParts                  // what rows show of a set
	StageShown                  // what rows show of their ledgers and facts
	StageDocuments              // search documents
	Stages                      // the number of stages
)

// Correct does a fix of StageValues or later again until no other worker changes the thing meanwhile. floor returns
// Recounted.Floor, nil for none; what names the thing in the error if that never comes.
func (r *Runner) Correct(ctx context.Context, f Fix, what string, floor func() events.Position) error {
	for range MaxRounds {
		var now Recounted
		if floor != nil {
			now.Floor = floor()
		}
		if done, _, err := f.Correct(ctx, r, &now); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s changes all the time", what)
}

// Recounted is what a Fix corrects by.
type Recounted struct {
	Recounts []Recount          // of all kinds, after the note; nil from StageValues on
	Applied  []owntable.Applied // how far the logs are applied that StageCounts counts from
	// Floor is a position that is not before any visible change, zero if the store has no
	// such position.
	Floor events.Position
}

// BaseFix is the Note of a Fix that needs none.
type BaseFix struct{ UsualUnits }

// Note reads nothing.
func (BaseFix) Note(context.Context, *Runner) error { return nil }

// UsualUnits is what most fixes take: two rows and the fence in a transaction, and these two and
// their source row are read before.
type UsualUnits struct{}

// Units returns the write units.
func (UsualUnits) Units() int { return 6 }

// Reads returns the read units.
func (UsualUnits) Reads() int { return 3 }

// Unfixable is the reason why a Fix leaves one thing as it is. Other things can be
// corrected.
type Unfixable string

func (u Unfixable) Error() string { return string(u) }
