package follow

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
)

// Explain returns what explains the values that an attribute follows. Package copies calls
// it, and says which rows the attribute follows.
func Explain(of *runner.Asked) *Explanation {
	return &Explanation{asked: of, follows: map[string]bool{}}
}

// Explanation explains the values that an attribute follows.
type Explanation struct {
	runner.BaseExplanation
	asked   *runner.Asked
	follows map[string]bool // rows of which the attribute follows a field
}

// Follow says that the asked row follows other rows, at one time at least.
func (x *Explanation) Follow(links []projections.Following) {
	for _, f := range links {
		if f.Attr == x.asked.Attr {
			x.follows[owntable.RowText(f.Of)] = true
		}
	}
}

// Parts says what the value of a followed field becomes.
func (x *Explanation) Parts(c *projections.Change) (out []string) {
	for _, s := range Fold(c, nil) {
		links := x.links(s.Field)
		if !x.follows[owntable.RowText(s.Source)] || len(links) == 0 {
			continue
		}
		switch {
		case !s.Gone:
			out = append(out, s.Entity.Name+"."+s.Field+" = "+runner.ValueText(s.Value))
		case !slices.ContainsFunc(links, func(f *model.Follow) bool { return f.Keep }):
			out = append(out, s.Entity.Name+"."+s.Field+" is gone with its row")
		}
	}
	return out
}

// Behind reports whether the attribute follows a field of a row.
func (x *Explanation) Behind(row string) bool { return x.follows[row] }

// links returns the rules by which the attribute follows fields of this name.
func (x *Explanation) links(field string) (out []*model.Follow) {
	for _, r := range x.asked.Entity.MadeBy {
		for i := range r.Fields {
			if f := r.Fields[i].Expr.Follow; f != nil && f.Attr == x.asked.Attr && f.Field.Name == field {
				out = append(out, f)
			}
		}
	}
	return out
}
