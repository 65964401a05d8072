package copies

import (
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/follow"
	"weir/internal/store"
)

// gathered is the work of a batch on the rows that rules make, and on the values that such
// rows follow.
type gathered struct {
	all    *projections.Gathered
	follow *follow.Gathered
	puts   []projections.Put // the newest for each row
	at     map[string]int    // indexes into puts
	mends  []Mend
}

// foldChange takes in the work of the i-th change.
// Of several changes of one copy the last decides, and it counts as having existed only if it
// existed before the first.
func (g *gathered) foldChange(i int, c *projections.Change) {
	var f projections.Faults
	puts, left := Fold(c, &f)
	for _, p := range puts {
		g.all.NoteTouched(i, p.Rule.Name)
		name := owntable.RowText(p.Row)
		g.all.NoteDerivation(p.Rule.Name, name)
		for _, f := range p.Follows {
			g.all.NoteDerivation(p.Rule.Name, owntable.RowText(f.Of))
		}
		if at, ok := g.at[name]; ok {
			p.Existed = p.Existed && g.puts[at].Existed
			p.Entered = p.Entered && g.puts[at].Entered
			g.puts[at] = p
			continue
		}
		g.at[name] = len(g.puts)
		g.puts = append(g.puts, p)
	}
	asks := g.follow.Fold(c, left, &f, func(rule *model.Follow) { g.all.NoteTouched(i, rule.Name) })
	shown := g.follow.FoldShown(c, &f, func(rule *model.Follow, of store.Ref) {
		g.all.NoteTouched(i, rule.Name)
		g.all.NoteDerivation(rule.Name, owntable.RowText(c.Row))
		g.all.NoteDerivation(rule.Name, owntable.RowText(of))
	})
	g.all.AddFaults(i, f.NewFaults())
	m, mends := needsMending(c)
	if mends {
		g.mends = append(g.mends, m)
	}
	if asks || shown || mends {
		g.all.NoteTouched(i, "")
	}
}
