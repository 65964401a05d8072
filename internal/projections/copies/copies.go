package copies

import (
	"slices"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/follow"
	"weir/internal/store"
	"weir/internal/value"
)

// Fold returns the rows that a change makes and removes, and the links that end with them.
// A source row contributes the row that a rule makes
// from it. For a copy, f(new) − f(old) means: put the new row, and remove the old row if
// its key is different. For history (`keep`), each event that the rule keeps adds an
// entry, and no change takes an entry back.
func Fold(c *projections.Change, f *projections.Faults) (puts []projections.Put, left []follow.Unfollow) {
	e := &folding{Faults: f}
	for rule := range c.Rules() {
		if len(rule.Keep) > 0 {
			e.addEntry(c, rule)
		} else {
			e.moveCopy(c, rule)
		}
	}
	return e.puts, e.left
}

// folding is the work of one change.
type folding struct {
	*projections.Faults
	puts []projections.Put
	left []follow.Unfollow
}

// addEntry adds the entry that the rule keeps of the change.
func (e *folding) addEntry(c *projections.Change, rule *model.RowRule) {
	if rule.Subscribers != nil {
		return
	}
	as, row := c.KeptEntry(e.Faults, rule)
	if row == nil {
		return
	}
	if m, ok := e.MakeRow(&as, rule, row, false); ok {
		e.puts = append(e.puts, m)
	}
}

// moveCopy moves a copy from the row that the old image makes to the one that the new image makes.
// A move is a removal at the old key and a row at the new one, in this order. A change after which
// both images make the same row asks for nothing.
func (e *folding) moveCopy(c *projections.Change, rule *model.RowRule) {
	if c.Was == c.Is && projections.SameOf(rule, c.Old, c.New) {
		return
	}
	var was, is projections.Put
	var had, has bool
	if c.Was == rule.Source {
		was, had = e.MakeRow(c, rule, c.Old, true)
	}
	if c.Is == rule.Source {
		is, has = e.MakeRow(c, rule, c.New, false)
	}
	same := had && has && projections.SameRow(was.Row, is.Row)
	entered := same && slices.EqualFunc(was.Follows, is.Follows, sameFollowing)
	if had && !entered {
		for _, f := range was.Follows {
			if !same || !slices.ContainsFunc(is.Follows, func(g projections.Following) bool { return sameFollowing(f, g) }) {
				e.left = append(e.left, follow.Unfollow{Row: was.Row, Following: f})
			}
		}
	}
	if had && !same {
		was.Image, was.Follows = nil, nil
		e.puts = append(e.puts, was)
	}
	if has && !(entered && value.EqualItems(was.Image, is.Image)) {
		is.Existed, is.Entered = same, entered
		e.puts = append(e.puts, is)
	}
}

// sameFollowing reports whether two rows follow the same field of the same row.
func sameFollowing(a, b projections.Following) bool {
	return a.Follow == b.Follow && projections.SameRow(a.Of, b.Of)
}

// MakeCopy returns the row that a rule makes from a source row. ok is false if the rule makes
// none or if the row's key is invalid.
func MakeCopy(rule *model.RowRule, row value.Item) (projections.Put, bool) {
	var faults *projections.Faults
	return faults.MakeRow(&projections.Change{}, rule, row, false)
}

// makesAt returns the row at a key that a rule makes from a row, which may be none of the rule's source. made is false if it
// makes none there.
func makesAt(rule *model.RowRule, from value.Item, row store.Ref) (p projections.Put, made bool) {
	if rule.Source.Table.Classify(from) == rule.Source {
		p, made = MakeCopy(rule, from)
	}
	return p, made && projections.SameRow(p.Row, row)
}

// PutsOf returns the rows that a change makes and removes.
// It is Fold for callers that do not report faults, such as recounts.
func PutsOf(c *projections.Change) []projections.Put {
	puts, _ := Fold(c, nil)
	return puts
}
