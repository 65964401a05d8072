package model

import "slices"

// Follow keeps an attribute of derived rows equal to a field of another row.
type Follow struct {
	Rule   *RowRule
	Attr   string   // of the row that follows
	Source *Entity  // whose field is followed
	Field  *Field   // of Source
	Key    []Assign // the names of Source's key, from fields of Rule.Source
	Keep   bool     // the last value stays when the row of Source is gone
}

// inputs returns the followed fields, which package follow reads of their own row.
func (f *Follow) inputs() []reading {
	return []reading{{what: f.Rule.Name, at: f.Rule.decl.name.pos, makes: f.Rule.Into.Name, old: true, of: f.Source, in: &Input{Fields: []*Field{f.Field}}}}
}

// followDecl is {follow: Entity.field} in what a rule sets.
type followDecl struct {
	// Kept equal to a field of another row, also after it changes.
	heading `noun:"follow"`
	// Entity.field of the row that is followed.
	Follow word `need:"follow: Entity.field" form:"Entity.field"`
	// Which row: {name in its key: field of the source row}. Equal names need no line.
	By []pair
	// The last value stays when the row followed is gone. Without it the attribute goes with that row.
	Keep bool
}

// isFollow reports whether a map has the key "follow". n must be a map.
func (n node) isFollow() bool {
	for i := 0; i < len(n.y.Content); i += 2 {
		if n.y.Content[i].Value == "follow" {
			return true
		}
	}
	return false
}

// follow compiles an attribute that follows, nil after a problem.
// The derivation is added to both ends: the source knows who may follow it, and the rule what it
// follows.
func (c *compiler) follow(r *RowRule, s setDecl) *Follow {
	d, before := s.follow, c.flaws
	f := &Follow{Rule: r, Attr: s.name.text, Keep: d.Keep}
	f.Source, f.Field = c.dotted(d.Follow, func(e *Entity, w word) *Field { return c.fieldFor(e, w, r.Into.Hides(f.Attr)) })
	if f.Source == nil {
		return nil
	}
	if f.Key = c.assigns(f.Source, r.Source, d.By, d.Follow.pos, "by"); c.flaws > before {
		return nil
	}
	f.Source.Follow = append(f.Source.Follow, f)
	c.Follows = append(c.Follows, f)
	return f
}

// notStored returns a field by which a history row follows another row, and which the rule stores in no attribute of
// it; "" for none. The deletion of such a row does not tell what it followed.
func (f *Follow) notStored() string {
	if len(f.Rule.Keep) == 0 {
		return ""
	}
	for i := range f.Key {
		by := f.Key[i].Expr.Field
		if by != nil && !slices.ContainsFunc(f.Rule.Fields, func(a Assign) bool { return a.Expr.Field != nil && a.Expr.Field.Name == by.Name }) {
			return by.Name
		}
	}
	return ""
}

// checkFollow reports an attribute that follows and is part of a key. It also reports two
// rules into one entity of which only one keeps the last value when the row followed is
// gone: a row does not say which rule made it, so they must agree.
func checkFollow(c *compiler) {
	for i, f := range c.Follows {
		for _, g := range c.Follows[:i] {
			if g.Rule.Into == f.Rule.Into && g.Attr == f.Attr && g.Source == f.Source && g.Field.Name == f.Field.Name && g.Keep != f.Keep {
				c.report(c.setPos(f.Rule, f.Attr), "say keep: true in both, or in none",
					"%s and %s make rows of %s that follow %s.%s, and only one keeps the last value", g.Rule.Name, f.Rule.Name, f.Rule.Into.Name, f.Source.Name, f.Field.Name)
			}
		}
		c.fits(f.Rule.decl.name.pos, f.Rule.Name+"."+f.Attr, f.Source, f.Key)
		at := c.setPos(f.Rule, f.Attr)
		if name := f.notStored(); name != "" {
			c.warn(at, "set an attribute of "+f.Rule.Into.Name+" to "+name+", too", "history of %s does not say which %s it follows: when such a row is deleted, weir keeps its place among the followers for ever", f.Rule.Into.Name, f.Source.Name)
		}
		for _, k := range f.Rule.Into.Keys {
			if k.Template.Slot(f.Attr) >= 0 || k.Attr.Name == f.Attr {
				c.report(at, "follow it into an attribute with another name", "%s is part of the key %s of the table or an index, and cannot follow what changes later", f.Attr, k.Attr.Name)
				break
			}
		}
	}
}
