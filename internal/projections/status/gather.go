package status

import (
	"slices"

	"weir/internal/model"
	"weir/internal/projections"
)

// gathered is the work of a batch for statuses, besides the recomputes of its targets.
type gathered struct {
	all    *projections.Gathered
	facts  []Fact // the newest for each name
	factOf []int  // the index of the change that each fact comes from
	at     map[string]int
	lists  []group // lists of facts whose targets must all be recomputed
}

// group is a list of facts, and the entity of the targets whose statuses depend on it.
type group struct {
	list   string
	entity *model.Entity
}

// foldChange takes in the work of the i-th change.
// A row is recomputed once for each batch, however many changes ask for it.
func (g *gathered) foldChange(i int, c *projections.Change) {
	var faults projections.Faults
	for _, f := range Fold(c, &faults) {
		g.addFact(i, f)
		for _, name := range f.changedDerivations() {
			g.all.NoteTouched(i, name)
			g.all.NoteDerivation(name, f.List)
		}
	}
	g.all.AddFaults(i, faults.NewFaults())
	e := c.Is
	if c.Was != c.Is && c.Was != nil && c.Was.Group != nil {
		e = c.Was // the row of a group is gone, and comes back if the group has rows
	}
	if NeedsRecompute(c) || e != nil && e.IsRecomputed() && projections.NeedsLedger(c) {
		g.all.AskRecompute(i, c.Row, e)
		for _, name := range e.Recomputes() {
			g.all.NoteTouched(i, name)
		}
	}
}

// addFact adds a fact to the batch and asks for a recompute of its target. Of several facts of one
// name the last one counts, as records of one row are in order.
func (g *gathered) addFact(i int, f Fact) {
	if of := (group{f.List, f.Entity}); f.All && !slices.Contains(g.lists, of) {
		g.lists = append(g.lists, of)
	} else if !f.All {
		g.all.AskRecompute(i, f.Target, f.Entity)
	}
	name := f.List + "\x00" + f.Name
	if at, ok := g.at[name]; ok {
		g.facts[at], g.factOf[at] = f, i
		return
	}
	g.at[name] = len(g.facts)
	g.facts, g.factOf = append(g.facts, f), append(g.factOf, i)
}
