package ingest

import (
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/projections/feed"
	"weir/internal/seq"
	"weir/internal/store"
)

// Commands that touch one another are executed in the caller's order: a command that
// writes a row runs before or after each command that reads or writes that row.
//
// A command touches the rows that its plan read, the rows that it writes, and the rows
// that weir makes from these. It touches a list of followers when it adds or removes a
// follower, and when it sends the followers something. Counts, means and sets come out
// the same in any order, so a thousand rows with the same parent do not touch one
// another.

// manner is how a task touches something. Two tasks that touch it in the same manner do
// not wait for one another, unless both write.
type manner uint8

const (
	reads  manner = iota
	writes        // waits for every other task
	joins         // joins or leaves a list
	tells         // sends something to the members of a list
	manners
)

// touch is one thing that a task touches, and how.
type touch struct {
	name string
	how  manner
}

// steps remembers the step in which each thing was last touched: by name, for each
// manner, the number of the step plus one.
type steps map[string][manners]int32

// placeTask puts a task into the first step after all earlier tasks that it waits for.
func (s steps) placeTask(touches []touch) (step int32) {
	step = s.stepAfter(touches)
	for _, t := range touches {
		last := s[t.name]
		last[t.how] = max(last[t.how], step+1)
		s[t.name] = last
	}
	return step
}

// stepAfter is the first step after all tasks that this one waits for: 0 if it waits for
// none.
func (s steps) stepAfter(touches []touch) (step int32) {
	for _, t := range touches {
		for how, last := range s[t.name] {
			if manner(how) != t.how || t.how == writes {
				step = max(step, last)
			}
		}
	}
	return step
}

// followTask updates the facts to those after a task's plan, and notes the rows that the task
// touches. nth tells the task from the others.
func (w *Writer) followTask(t *task, f *facts, nth int) error {
	t.touches = seq.Map(t.known.used, func(name string) touch { return touch{name, reads} })
	if t.plan.err != nil {
		return nil
	}
	for i, wr := range t.plan.writes {
		table, inModel := &ownTable, w.Model.Table(wr.Table)
		if inModel != nil {
			table = &inModel.Table
		}
		name := t.nameOf(wr.Ref, i)
		old := f.rows[name]
		row, err := table.Apply(&wr, old)
		if err != nil {
			return err
		}
		t.touches = append(t.touches, touch{name, writes})
		if f.rows[name] = row; w.leads[wr.Table] {
			c := projections.PlannedChange(inModel, wr.Ref, old, row, nth)
			t.touches = append(t.touches, leadsTo(&c)...)
		}
	}
	return nil
}

// nameOf names the row of the plan's nth write.
func (t *task) nameOf(ref store.Ref, nth int) string {
	if nth == 0 && t.plan.own {
		return t.name
	}
	return nameOf(ref)
}

var ownTable = owntable.Table()

// leadsTo is the rows that a change of a row touches beyond the row itself: rows made from it,
// and lists of followers. The key of a history row contains the change's position. Each
// change has its own position here, so that two entries are two rows.
func leadsTo(c *projections.Change) (out []touch) {
	out = seq.Map(copies.PutsOf(c), func(p projections.Put) touch { return touch{nameOf(p.Row), writes} })
	out = append(out, seq.Map(feed.Fold(c, nil), func(j feed.Subscription) touch { return touch{"list " + j.List, joins} })...)
	return append(out, seq.Map(feed.FoldNotifications(c, nil), func(t feed.Notification) touch { return touch{"list " + t.List, tells} })...)
}

// leadingTables returns the tables with rows from which other rows are made, or that have
// followers.
func leadingTables(m *model.Model) map[string]bool {
	out := map[string]bool{}
	for _, e := range m.Entities {
		if len(e.Rules)+len(e.Subscribes) > 0 {
			out[e.Table.Name] = true
		}
	}
	return out
}
