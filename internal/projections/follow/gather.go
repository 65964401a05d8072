package follow

import (
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
)

// Gathered is the work of a batch on followed values.
type Gathered struct {
	Values []Value // the newest for each source and field
	at     map[string]int
	// Left must be checked after the rows are written.
	Left      []Unfollow
	Unsettled []Unsettled // each row once
	settles   map[string]int
	model     *model.Model
}

// NewGathered returns the work of a batch before any change is folded.
func NewGathered(m *model.Model) *Gathered { return &Gathered{model: m} }

// Fold takes in a change, with the links that ended with copies. It reports whether there
// was anything, and calls asks with each rule that follows a value of the change.
func (g *Gathered) Fold(c *projections.Change, left []Unfollow, f *projections.Faults, asks func(*model.Follow)) bool {
	values := Fold(c, f)
	for _, v := range values {
		for _, rule := range v.Entity.Follow {
			if rule.Field.Name == v.Field {
				asks(rule)
			}
		}
		name := FieldName(v.Entity, v.Field) + "|" + owntable.RowText(v.Source)
		if at, ok := g.at[name]; ok {
			g.Values[at] = v
			continue
		}
		if g.at == nil {
			g.at = map[string]int{}
		}
		g.at[name] = len(g.Values)
		g.Values = append(g.Values, v)
	}
	left = append(left, LeftLinks(c)...)
	for i := range left {
		asks(left[i].Follow)
	}
	g.Left = append(g.Left, left...)
	return len(values)+len(left) > 0
}
