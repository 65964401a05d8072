package copies

import (
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/follow"
	"weir/internal/runner"
	"weir/internal/value"
)

// Derives returns the attributes of an entity that rules make.
func (Kind) Derives(e *model.Entity) (attrs []string) {
	for _, r := range e.MadeBy {
		for i := range r.Fields {
			attrs = append(attrs, r.Fields[i].Name)
		}
	}
	return attrs
}

// Explain returns the kind's part in explaining a value.
func (Kind) Explain(of *runner.Asked) runner.Explanation {
	return &explanation{Explanation: follow.Explain(of), Asked: of}
}

// explanation also explains the values that the row follows, because only the rule that
// makes the row says which rows it follows.
type explanation struct {
	*follow.Explanation
	*runner.Asked
}

// puts returns what a change makes of the asked row.
func (x *explanation) puts(c *projections.Change) (mine []projections.Put) {
	for _, p := range Puts(c) {
		if projections.SameRow(p.Row, x.Row) {
			mine = append(mine, p)
		}
	}
	return mine
}

// Made returns the images that a change gives to the row.
func (x *explanation) Made(c *projections.Change) (images []value.Item) {
	for _, p := range x.puts(c) {
		if p.Image != nil {
			images = append(images, p.Image)
		}
	}
	return images
}

// Parts says how a change makes or removes the row, or changes what it follows.
func (x *explanation) Parts(c *projections.Change) (out []string) {
	for _, p := range x.puts(c) {
		if p.Rule.Into != x.Entity {
			continue
		}
		x.Follow(p.Follows)
		switch {
		case p.Image == nil:
			out = append(out, "the row goes")
		case p.Image.Has(x.Attr):
			out = append(out, x.Attr+" = "+runner.ValueText(p.Image.Get(x.Attr)))
		default:
			out = append(out, "the row is made")
		}
	}
	return append(out, x.Explanation.Parts(c)...)
}
