package contribution

import (
	"maps"

	"weir/internal/events"
)

// A build counts the records of a shard from a position on, its floor. A record above it
// that was applied only by a program which did not know of the build would be lost; one
// below it that is delivered again, without those that followed, would be counted for ever.
//
// So a consumer takes the floor in one write of the shard's checkpoint, which fences it:
// from then on the checkpoint moves only for batches whose view of the builds is not older.
// A batch with an older view is read again and applied under the new one. The view is read
// after the batch was received. So a batch that is applied under the view before the announcement
// was written before it, and the builder, which begins to scan after it, reads its effect.

// Fence is the part of a shard's checkpoint about builds. The zero Fence stands for none.
type Fence struct {
	View   int64                     // version of the view that a batch must have at least
	Floors map[int64]events.Position // by the version that announced the build
	Cuts   map[int64]events.Position // likewise, of builds that hand over (HandOver)
}

// Take fences a shard at a checkpoint's position, for a view and the builds that it has,
// which are given by the versions that announced them. changed is false if that was done
// before. Floors and cuts that were taken stay; those of builds that are over go.
func (f Fence) Take(view int64, builds []int64, at events.Position) (next Fence, changed bool) {
	if f.View >= view {
		return f, false
	}
	next = Fence{View: view, Floors: map[int64]events.Position{}, Cuts: map[int64]events.Position{}}
	for _, b := range builds {
		floor, taken := f.Floors[b]
		if !taken {
			floor = at
		}
		next.Floors[b] = floor
		if cut, taken := f.Cuts[b]; taken {
			next.Cuts[b] = cut
		}
	}
	return next, true
}

// Admits reports whether a batch with a view of this version may move the checkpoint.
func (f Fence) Admits(view int64) bool { return f.View <= view }

// Counts reports whether a build counts a record of the shard.
func (f Fence) Counts(build int64, at events.Position) bool {
	return at.Compare(f.Floors[build]) > 0
}

// Same reports whether two fences say the same.
func (f Fence) Same(g Fence) bool {
	return f.View == g.View && maps.Equal(f.Floors, g.Floors) && maps.Equal(f.Cuts, g.Cuts)
}
