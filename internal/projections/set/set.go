package set

import (
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/tally"
)

// Fold returns the amounts that a change adds to sets: each amount is of one member.
func Fold(c *projections.Change, f *projections.Faults) []projections.Add {
	return tally.FoldSets(c, f)
}

// gathered is the work of a batch for sets.
type gathered struct {
	all    *projections.Gathered
	sets   []*projections.Target
	at     map[string]*projections.Target
	leaves []Leaf // rows that may not show their values
}

// foldChange takes in the work of the i-th change.
// A row of a set that another writer changed asks for its leaf to be shown again.
func (g *gathered) foldChange(i int, c *projections.Change) {
	var f projections.Faults
	for _, a := range Fold(c, &f) {
		name := owntable.RowText(a.Target)
		if g.at[name] == nil {
			g.at[name] = &projections.Target{Row: a.Target, Entity: a.Entity}
			g.sets, g.all.Sets = append(g.sets, g.at[name]), append(g.all.Sets, g.at[name])
		}
		g.at[name].AddStep(i, c, a)
		g.all.NoteTouched(i, a.Of)
	}
	g.all.AddFaults(i, f.NewFaults())
	if l, ok := needsLeaf(c); ok {
		l.Changes = []int{i}
		g.leaves = append(g.leaves, l)
		g.all.NoteTouched(i, l.Entity.SetOf().Name)
	}
}
