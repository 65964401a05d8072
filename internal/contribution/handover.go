package contribution

import (
	"time"

	"weir/internal/events"
)

// A build that is audited hands its ledgers over from marks to positions, which cost one
// write for each target of a batch, and nothing for each source row. Each shard goes over
// at a position of its own, its cut: records up to it are counted by marks, later ones by
// f(new) − f(old) and the positions in the ledger. The checkpoint keeps the cut, so each
// record is counted the same way whenever it is delivered.
//
// The cut must be behind all that the audit may have read, or a change that it read counts
// twice; and behind all that a batch may have which does not know of the hand-over. So a
// shard is cut before a record that was written after the hand-over was announced, and the
// audit is over before that. Times of records are approximate and do not rise with each
// record. They decide only where a shard is cut, by a margin that is larger than their
// error. A record behind the cut is counted by position whatever its time says, and so is
// all of a shard whose parent was cut.

// HandOver says how far a build's ledgers have gone over to positions. The zero HandOver
// stands for one that was not announced.
type HandOver struct {
	At time.Time // a record with a later time was written after the announcement
	// After is not below any change before the announcement, zero in a store that does not
	// number all changes in one order. Only in one that does may the clock go back by more
	// than the margin.
	After events.Position
	// Passed is since when all records up to the cuts are counted. One that comes again is
	// left out, so marks are of no use once no batch with an older view can be left.
	Passed time.Time
	Over   time.Time // since when there are no marks
}

// Announced reports whether shards may be cut.
func (h HandOver) Announced() bool { return !h.At.IsZero() }

// Late reports whether a record was certainly written after the announcement.
func (h HandOver) Late(written time.Time, at events.Position) bool {
	return h.Announced() && written.After(h.At) && at.Compare(h.After) > 0
}

// Begins reports whether a shard of which nothing was applied is cut at its beginning, by the first record that is read
// of it. That was written after the build was audited, which was an hour before At. And if a shard from which it descends is cut, its
// records are later than that one's, so the half hour is for the error of both times.
func (h HandOver) Begins(written time.Time, at events.Position) bool {
	return h.Announced() && written.After(h.At.Add(-30*time.Minute)) && at.Compare(h.After) > 0
}

// Way is how a record is counted.
type Way int

// The ways.
const (
	Left       Way = iota // it was counted before, or the build has read its row
	ByMark                // by contribution
	ByPosition            // by f(new) − f(old)
)

// Way returns how a build counts a record of the shard.
func (f Fence) Way(build int64, h HandOver, at events.Position) Way {
	cut, taken := f.Cuts[build]
	switch {
	case !f.Counts(build, at):
		return Left
	case taken && at.Compare(cut) > 0:
		return ByPosition
	case !h.Passed.IsZero():
		return Left
	}
	return ByMark
}

// Cut cuts a shard whose checkpoint is at a position, for a build: before a record that was
// written after the announcement, behind the record before. A shard is cut once.
func (f Fence) Cut(build int64, checkpoint, before events.Position) Fence {
	next := Fence{View: f.View, Floors: f.Floors, Cuts: map[int64]events.Position{build: checkpoint}}
	if before.Compare(checkpoint) > 0 {
		next.Cuts[build] = before
	}
	for b, cut := range f.Cuts {
		next.Cuts[b] = cut
	}
	return next
}

// Inherit cuts a shard at its checkpoint for those builds for which a shard was cut that it
// descends from: all that was written into it is newer. Its parent alone does not say so,
// because a shard without records is not fenced.
func (f Fence) Inherit(above Fence, checkpoint events.Position) Fence {
	for b := range above.Cuts {
		if _, counted := f.Floors[b]; counted {
			f = f.Cut(b, checkpoint, events.Position{})
		}
	}
	return f
}

// Shard is the known state of a shard.
type Shard struct {
	Parent string
	Listed bool
	Done   bool            // applied to its end
	Moved  bool            // a function moved its checkpoint last, which does not note the end
	At     events.Position // of the checkpoint
	Fence
}

// Waits returns how many shards may still have a record that a build is to count by mark.
// all are the shards that are listed, which was read first, and those with a checkpoint.
func Waits(build int64, all map[string]Shard) (n int) {
	children, begun := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		children[s.Parent] = children[s.Parent] || s.Listed
		begun[s.Parent] = begun[s.Parent] || !s.At.IsZero()
	}
	for name, s := range all {
		s.Done = s.Done || s.Moved && (begun[name] || !s.Listed) // an event source mapping reads a shard to its end before its children
		if cut, taken := s.Cuts[build]; taken && s.At.Compare(cut) >= 0 {
			continue
		} else if !taken && s.Done && (!s.Listed || children[name]) {
			continue // each of its children says for itself
		} else if !taken && !s.Done && cutAbove(build, all, s.Parent) {
			continue
		}
		n++
	}
	return n
}

// cutAbove reports whether a shard or one that it descends from was cut.
func cutAbove(build int64, all map[string]Shard, name string) bool {
	for range all {
		s, known := all[name]
		if _, taken := s.Cuts[build]; taken || !known {
			return taken
		}
		name = s.Parent
	}
	return false
}
