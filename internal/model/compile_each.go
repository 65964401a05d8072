package model

// Each says for whom a rule makes a row: for every row of Of, a follower, whose
// fields named by By have the source row's values.
type Each struct {
	Of *Entity
	By []Match
}

// Match is a field of a follower, and the field of the source row, or constant,
// that it equals.
type Match struct {
	Field *Field
	Expr  Expr
}

// followers compiles whom the rule makes rows for; it reports false where that cannot
// be said.
func (c *compiler) followers(r *RowRule, d *rowDecl) bool {
	if d.each == nil {
		return true
	}
	of := c.entity(d.each.of)
	if of == nil {
		return false
	}
	e, whole := &Each{Of: of}, true
	for _, p := range d.each.by {
		f := c.field(of, p.name)
		x, ok := c.expr(r.Source, p.value, of, p.name.text)
		whole = whole && ok && f != nil
		e.By = append(e.By, Match{f, x})
	}
	if !whole || len(e.By) == 0 {
		return false
	}
	r.Each = e
	of.Told = append(of.Told, r)
	return true
}
