package ingest

import (
	"slices"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
)

// Commands that touch one another are done in their order: one that writes a row
// that another reads or writes comes before or after it, as the caller gave them.
// A row is touched when a plan went by it, or writes it; when it is a row that
// weir makes of a row that the plan writes; and a list of followers is touched by
// who joins or leaves it, and by what is told to it. Counts, means and sets come out
// the same in any order, so that a thousand rows of one parent touch nothing of
// one another.

// manner is how something is touched. Two that touch it in the same manner do not
// wait for one another, unless both write.
type manner uint8

const (
	reads  manner = iota
	writes        // waits for everybody
	joins         // becomes or ceases to be one of a list
	tells         // is told to those of a list
	manners
)

// touch is one thing that a task has to do with.
type touch struct {
	name string
	how  manner
}

// steps remembers in which step things were touched last: by name, for each manner,
// one more than the step.
type steps map[string][manners]int32

// place gives a task the first step after those of all before it that it waits for.
func (s steps) place(touches []touch) (step int32) {
	step = s.after(touches)
	for _, t := range touches {
		last := s[t.name]
		last[t.how] = max(last[t.how], step+1)
		s[t.name] = last
	}
	return step
}

// after is the first step after those of all tasks that this one waits for: 0 when it
// waits for none.
func (s steps) after(touches []touch) (step int32) {
	for _, t := range touches {
		for how, last := range s[t.name] {
			if manner(how) != t.how || t.how == writes {
				step = max(step, last)
			}
		}
	}
	return step
}

// changed reports whether one of the rows is written by a task that has its place.
func (s steps) changed(rows []string) bool {
	return slices.ContainsFunc(rows, func(name string) bool { return s[name][writes] > 0 })
}

// follow makes the facts what a task's plan leaves, and notes what it touches. nth
// tells the task from others.
func (w *Writer) follow(t *task, f *facts, nth int) error {
	t.touches = t.roomTouches[:0]
	for _, name := range t.known.used {
		t.touches = append(t.touches, touch{name, reads})
	}
	if t.plan.err != nil {
		return nil
	}
	for i := range t.plan.count() {
		wr := t.plan.nth(i)
		table, inModel := &ownTable, w.Model.Table(wr.Table)
		if inModel != nil {
			table = &inModel.Table
		}
		name := t.nameOf(wr.Ref, i)
		old := f.rows[name]
		row, err := table.Apply(wr, old)
		if err != nil {
			return err
		}
		t.touches = append(t.touches, touch{name, writes})
		if f.rows[name] = row; w.leads[wr.Table] {
			c := projections.Planned(inModel, wr.Ref, old, row, nth)
			t.touches = append(t.touches, leadsTo(&c)...)
		}
	}
	return nil
}

// nameOf names the row of the plan's nth write.
func (t *task) nameOf(ref store.Ref, nth int) string {
	if nth == 0 && t.plan.write != nil {
		return t.name
	}
	return nameOf(ref)
}

var ownTable = book.Table()

// leadsTo is what a change of a row has to do with beyond the row: rows made of it,
// and followers. Rows of a history have the change in their keys; a change stands for
// itself there, so that two entries are two rows.
func leadsTo(c *projections.Change) (out []touch) {
	e := projections.Fold(c)
	for _, p := range e.Puts {
		out = append(out, touch{nameOf(p.Row), writes})
	}
	for _, j := range e.Joins {
		out = append(out, touch{"list " + j.List, joins})
	}
	for _, t := range e.Tells {
		out = append(out, touch{"list " + t.List, tells})
	}
	return out
}

// leading are the tables with rows of which other rows are made, and with followers.
func leading(m *model.Model) map[string]bool {
	out := map[string]bool{}
	for _, e := range m.Entities {
		if len(e.Rules)+len(e.Told) > 0 {
			out[e.Table.Name] = true
		}
	}
	return out
}
