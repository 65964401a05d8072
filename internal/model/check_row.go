package model

import "slices"

// setPos is where a rule gives a name its value.
func (c *compiler) setPos(r *RowRule, name string) pos {
	for _, s := range c.rules[r].row.set {
		if s.name.text == name {
			return s.name.pos
		}
	}
	return c.rules[r].name.pos
}

// sets reports whether the rule, or the file for it, gives the name a value.
func (c *compiler) sets(r *RowRule, name string) bool {
	return slices.ContainsFunc(c.rules[r].row.set, func(s setDecl) bool { return s.name.text == name }) || r.Into.fixed()[name] != ""
}

// checkRowWhole: a row that weir makes has its keys and its required attributes.
func checkRowWhole(c *compiler) {
	for _, r := range c.Rows {
		if c.broken[r.Into] || c.faulty[r] {
			continue
		}
		at := c.rules[r].name.pos
		missing := map[string]bool{}
		for i, k := range r.Into.Keys {
			for _, name := range k.Template.required() {
				if !c.sets(r, name) && !missing[name] && (i < len(r.Into.PrimaryKey()) || r.Into.Attribute(name) == nil) {
					missing[name] = true
					c.report(at, "set: {"+name+": FIELD}", "%s sets no %q, which the key %s of %s needs", r.Name, name, k.Attr.Name, r.Into.Name)
				}
			}
		}
		for _, a := range r.Into.Attributes {
			if a.Required && !c.sets(r, a.Name) && !missing[a.Name] {
				c.report(at, "set: {"+a.Name+": FIELD}", "%s sets no %q, which %s requires", r.Name, a.Name, r.Into.Name)
			}
		}
	}
}

// checkRowKey: two rows of the source make two rows, so the key made contains
// every name of the source's key.
func checkRowKey(c *compiler) {
	for _, r := range c.Rows {
		if c.broken[r.Into] || c.broken[r.Source] || c.faulty[r] || onePerRecord(r) {
			continue
		}
		var used []string
		for _, name := range r.Into.KeyNames() {
			for _, a := range r.Fields {
				if a.Name == name && a.Expr.Field != nil {
					used = append(used, a.Expr.Field.Name)
				}
			}
		}
		for _, name := range r.Source.KeyNames() {
			if !slices.Contains(used, name) {
				c.report(c.rules[r].name.pos, "put a name that is set from it into the key of "+r.Into.Name,
					"two rows of %s could make one row of %s: its key does not contain %q", r.Source.Name, r.Into.Name, name)
			}
		}
	}
}

// checkStamps: what the where of the entity made says is written by itself.
func checkStamps(c *compiler) {
	for _, r := range c.Rows {
		for _, t := range r.Into.Where {
			if i := slices.IndexFunc(r.Fields, func(a Assign) bool { return a.Name == t.Field.Name }); i >= 0 {
				c.report(c.setPos(r, t.Field.Name), "leave it out", "%q is stamped twice: the where of %s writes it already", t.Field.Name, r.Into.Name)
			}
		}
	}
}

// checkState: a copy is the same whenever it is made, so nothing of the record
// that led to it goes into it; history in its turn has one key for each record.
func checkState(c *compiler) {
	for _, r := range c.Rows {
		d := c.rules[r].row
		position := false
		for _, a := range r.Fields {
			used := recordsIn(a.Expr)
			if len(used) > 0 && d.state {
				c.report(c.setPos(r, a.Name), "take it from the row, or say keep", "a copy is the same whenever it is made, and %s is of one record", used[0])
			}
			position = position || slices.Contains(used, "$position") && slices.Contains(r.Into.KeyNames(), a.Name)
		}
		if slices.Contains(r.Keep, events["modify"]) && !position {
			c.report(c.rules[r].name.pos, "set a name of its key to $position", "%s keeps an entry of each change, and its key would be the same for two changes of one row", r.Name)
		}
	}
}

func recordsIn(x Expr) []string {
	if x.Record != "" {
		return []string{x.Record}
	}
	var out []string
	for _, a := range x.Map {
		out = append(out, recordsIn(a.Expr)...)
	}
	return out
}

// checkRowTypes: a value fits the attribute it goes to, and a hidden one does not
// become a shown one.
func checkRowTypes(c *compiler) {
	for _, r := range c.Rows {
		for _, s := range r.Fields {
			into, a := r.Into.Field(s.Name), r.Into.Attribute(s.Name)
			from, source := s.Expr.Field, r.Source
			if s.Expr.Each != nil {
				from, source = s.Expr.Each, r.Each.Of
			}
			if f := s.Expr.Follow; f != nil {
				from, source = f.Field, f.Source
			}
			at := c.setPos(r, s.Name)
			switch {
			case len(s.Expr.Map) > 0 && into.Type != TypeMap && into.Type != TypeAny:
				c.report(at, "", "%s.%s is a %s, and a map is set", r.Into.Name, s.Name, into.Type)
			case from == nil || into.Key != nil && scalar(from.Type):
			case clash(from.Type, into.Type):
				c.report(at, "", "%s.%s is a %s, and %s.%s is a %s", r.Into.Name, s.Name, into.Type, source.Name, from.Name, from.Type)
			}
			for _, name := range hiddenIn(source, s.Expr, from) {
				if a == nil || !a.Hidden {
					c.report(at, "hide it there too, or leave it out", "%s.%s is hidden, and %s would show it", source.Name, name, r.Into.Name)
				}
			}
		}
	}
}

// hiddenIn are the hidden attributes of source that the expression takes.
func hiddenIn(source *Entity, x Expr, from *Field) []string {
	var out []string
	if from != nil {
		if a := source.Attribute(from.Name); a != nil && a.Hidden {
			out = append(out, a.Name)
		}
	}
	for _, a := range x.Map {
		out = append(out, hiddenIn(source, a.Expr, a.Expr.Field)...)
	}
	return out
}

// checkFollow: what follows is an attribute of its own, not part of a key, and rows of
// one entity are alike in what becomes of it when the row followed is gone: which rule
// made such a row, the row need not say.
func checkFollow(c *compiler) {
	for i, f := range c.Follows {
		for _, g := range c.Follows[:i] {
			if g.Rule.Into == f.Rule.Into && g.Attr == f.Attr && g.Source == f.Source && g.Field.Name == f.Field.Name && g.Keep != f.Keep {
				c.report(c.setPos(f.Rule, f.Attr), "say keep: true in both, or in none",
					"%s and %s make rows of %s that follow %s.%s, and only one keeps the last value", g.Rule.Name, f.Rule.Name, f.Rule.Into.Name, f.Source.Name, f.Field.Name)
			}
		}
		at := c.setPos(f.Rule, f.Attr)
		for _, k := range f.Rule.Into.Keys {
			if k.Template.Slot(f.Attr) >= 0 || k.Attr.Name == f.Attr {
				c.report(at, "follow it into an attribute of its own", "%s is part of the key %s, and cannot follow what changes later", f.Attr, k.Attr.Name)
				break
			}
		}
	}
}
