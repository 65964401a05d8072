package follow

import (
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Rows of the application follow, too (model.Entity.Follows). Such a row says itself which row it follows, so its value
// depends on no record: a change after which the row may not show that asks for the row to be settled (apply_shown.go), as it is
// when it is read. weir's own writes settle rows, and ask for nothing. Where an application writes a row as weir would have, it may
// ask for nothing either: the row was not settled before, so an earlier change asks, and is not done before the row is right.

// Unsettled is a row of the application that may not show the value that it follows.
type Unsettled struct {
	Row      store.Ref
	Was      *model.Entity   // that it is no longer, nil for none
	Position events.Position // of the newest change that asks
}

// FoldShown takes in the attributes of a change's own row that follow. It reports whether there was anything, and
// calls asks with each that may not be settled, and with the row that it follows.
func (g *Gathered) FoldShown(c *projections.Change, f *projections.Faults, asks func(*model.Follow, store.Ref)) (any bool) {
	u := Unsettled{Row: c.Row, Position: c.Position}
	if c.Was != nil && c.Was != c.Is {
		for _, follow := range c.Was.Follows {
			if of, ok := FollowedBy(follow, c.Old); ok {
				g.Left = append(g.Left, Unfollow{c.Row, projections.Following{Follow: follow, Of: of}})
				any = true
			}
			if c.New.Has(owntable.FollowsAttr(follow.Attr)) {
				u.Was = c.Was
			}
		}
	}
	unsettled := u.Was != nil
	if c.Is != nil {
		for _, follow := range c.Is.Follows {
			if c.Was == c.Is && !mayTouch(follow, c) {
				continue
			}
			is, follows := FollowedBy(follow, c.New)
			usable := f.IsUsable(&follow.Input, c.New, false)
			if key, ok := follow.Followed(c.New); usable && ok {
				f.IsReachableKey(follow.Name, follow.Source.Table, key, false)
			}
			if c.Was == c.Is {
				f.IsUsable(&follow.Input, c.Old, true)
				if was, did := FollowedBy(follow, c.Old); did && !(follows && projections.SameRow(was, is)) {
					g.Left = append(g.Left, Unfollow{c.Row, projections.Following{Follow: follow, Of: was}})
					any = true
				}
			}
			if !g.isSettled(follow, c, is, follows) {
				unsettled = true
				asks(follow, is)
			}
		}
	}
	if !unsettled {
		return any
	}
	name := owntable.RowText(c.Row)
	if at, ok := g.settles[name]; ok {
		g.Unsettled[at] = u
		return true
	}
	if g.settles == nil {
		g.settles = map[string]int{}
	}
	g.settles[name] = len(g.Unsettled)
	g.Unsettled = append(g.Unsettled, u)
	return true
}

// mayTouch reports whether a change of a row may have changed the row that its attribute follows, or its value. If nothing of that
// differs, the change that made it so asked, unless no row is followed.
func mayTouch(f *model.Follow, c *projections.Change) bool {
	return mayRename(f, c) || !c.New.Has(owntable.FollowsAttr(f.Attr)) || slices.ContainsFunc(markNames(f.Attr), func(name string) bool {
		return !value.Equal(c.Old.Get(name), c.New.Get(name))
	})
}

// mayRename reports whether a change may have changed which row the attribute follows.
func mayRename(f *model.Follow, c *projections.Change) bool {
	return slices.ContainsFunc(f.Input.Fields, func(by *model.Field) bool {
		return slices.ContainsFunc(by.Attrs(), func(name string) bool { return !value.Equal(c.Old.Get(name), c.New.Get(name)) })
	})
}

// markNames are the attributes of a row that weir writes for one that follows.
func markNames(attr string) []string {
	return []string{attr, owntable.FollowsAttr(attr), owntable.FollowVersion(attr)}
}

// isSettled reports whether a row, after a change of it, shows the values that it follows, as far as the change can tell: weir made the
// change, or it left alone the values that weir wrote.
func (g *Gathered) isSettled(f *model.Follow, c *projections.Change, of store.Ref, follows bool) bool {
	if !follows {
		return !slices.ContainsFunc(markNames(f.Attr), c.New.Has)
	}
	list := listOf(g.model, projections.Following{Follow: f, Of: of}).Key.Partition.Text()
	if c.Was != c.Is || !onList(c.New, f.Attr, list) {
		return false
	}
	if !onList(c.Old, f.Attr, list) {
		return !mayRename(f, c) && projections.SameWritten(c.Is, c.Old, c.New)
	}
	version := owntable.FollowVersion(f.Attr)
	newer := events.PositionFrom(c.New.Get(version)).Compare(events.PositionFrom(c.Old.Get(version)))
	return newer > 0 || newer == 0 && value.Equal(c.Old.Get(f.Attr), c.New.Get(f.Attr))
}
