package model

import (
	"slices"

	"weir/internal/aggregate"
	"weir/internal/value"
)

// checkTallyAttribute: an attribute has one author.
func checkTallyAttribute(c *compiler) {
	for _, t := range c.Tallies {
		at := c.tallies[t].attr.pos
		if t.Target.Attribute(t.Attr) != nil {
			c.report(at, "leave it out of the attributes of "+t.Target.Name, "%s is derived, and declared as an attribute that the application writes", t.Name)
		}
		switch k := t.Target.KeyTemplate(t.Attr); {
		case k == nil || c.broken[t.Target]:
		case slices.Contains(t.Target.PrimaryKey(), k) || k.Template.String() != "{"+t.Attr+"}":
			c.report(at, "choose another name", "%s is a key attribute, and a derived value cannot be one", t.Attr)
		case k.Attr.Type != value.Number || t.Hidden || !t.Kind.Number:
			c.report(at, "declare it as {"+t.Attr+": number} in the index", "%s is the key of an index, a %s, and only a shown number can be derived there", t.Attr, k.Attr.Type)
		}
		if t.Attr == t.Target.Table.TTL && t.Attr != "" {
			c.report(at, "choose another name", "%s is the ttl of table %s", t.Attr, t.Target.Table.Name)
		}
		if slices.Contains(t.Target.KeyNames(), t.Attr) {
			c.report(at, "choose another name", "%s is a name in the key of %s", t.Attr, t.Target.Name)
		}
		if t.Target.Derived && !t.IsSet() {
			c.report(at, "derive it onto the row that "+t.Target.Name+" is made from, and copy it", "rows of %s are made whole by weir, and carry no tally of their own", t.Target.Name)
		}
	}
}

func checkTallyOptions(c *compiler) {
	for _, t := range c.Tallies {
		d := c.tallies[t].tally
		at := c.tallies[t].name.pos
		keyword := t.Kind.Keyword
		switch {
		case t.Kind.Max && d.max < 0 && d.at["max"] == pos{}:
			c.report(at, "max: 1000", "a %s without max has no bound: all its values stand in one row", keyword)
		case !t.Kind.Max && d.max >= 0:
			c.report(d.at["max"], "leave it out", "max bounds a distinct, a %s has no need of it", keyword)
		}
		switch {
		case t.Kind.Round && d.round < 0 && d.at["round"] == pos{}:
			c.report(at, "round: 2", "a %s needs round, the number of its decimals", keyword)
		case !t.Kind.Round && d.round >= 0:
			c.report(d.at["round"], "", "round is for a mean, a %s is exact", keyword)
		}
		if t.Hidden && !t.Kind.Hidden {
			c.report(d.at["hidden"], "leave it out", "hidden without need: it keeps the values of a distinct off the row, a %s is one number", keyword)
		}
	}
}

func checkTallyFields(c *compiler) {
	for _, t := range c.Tallies {
		d := c.tallies[t].tally
		for i, s := range t.Sources {
			if slices.ContainsFunc(t.Sources[:i], func(o *Source) bool { return o.Entity == s.Entity }) {
				c.report(d.at[t.Kind.Keyword], "", "%s names %s twice", t.Name, s.Entity.Name)
			}
			if s.Field == nil {
				continue
			}
			at := d.at[t.Kind.Keyword]
			switch numeric := s.Field.Type == TypeNumber || s.Field.Type == TypeAny; {
			case t.Kind.OfRows && !numeric:
				c.report(at, "count: "+s.Entity.Name+", where: {"+s.Field.Name+": present}, or distinct: "+s.Entity.Name+"."+s.Field.Name, "a count is of rows, or of rows with a number, and %s.%s is a %s", s.Entity.Name, s.Field.Name, s.Field.Type)
			case t.Kind.Of == aggregate.Numbers && !numeric:
				c.report(at, "", "a %s is of numbers, %s.%s is a %s", t.Kind.Keyword, s.Entity.Name, s.Field.Name, s.Field.Type)
			case t.Kind.Of == aggregate.Scalars && !scalar(s.Field.Type):
				c.report(at, "", "a %s tells single values apart, %s.%s is a %s", t.Kind.Keyword, s.Entity.Name, s.Field.Name, s.Field.Type)
			}
			if a := s.Entity.Attribute(s.Field.Name); a != nil && a.Hidden && !t.Hidden && !t.Kind.OfRows {
				c.report(at, "", "%s would show values of %s.%s, which is hidden", t.Name, s.Entity.Name, s.Field.Name)
			}
		}
	}
}

// scalar reports whether values of the type are single ones.
func scalar(t Type) bool {
	switch t {
	case TypeList, TypeMap, TypeStrings, TypeNumbers:
		return false
	}
	return true
}

// checkKeyTypes: what a name of the target's key is made from can stand there.
func checkKeyTypes(c *compiler) {
	for _, t := range c.Tallies {
		for _, s := range t.Sources {
			c.fits(c.tallies[t].name.pos, t.Name, t.Target, s.To)
		}
	}
	for _, f := range c.Follows {
		c.fits(c.rules[f.Rule].name.pos, f.Rule.Name+"."+f.Attr, f.Source, f.Key)
	}
}

// fits reports a value that cannot stand in the key of the row it is to find.
func (c *compiler) fits(at pos, what string, target *Entity, names []Assign) {
	for _, a := range names {
		f := a.Expr.Field
		if f == nil {
			continue
		}
		want := target.Field(a.Name)
		if !scalar(f.Type) || f.Key == nil && want.Key == nil && clash(f.Type, want.Type) {
			c.report(at, "", "%s finds %s by %s, and %s is a %s", what, target.Name, a.Name, f.Name, f.Type)
		}
	}
}

// clash reports whether no value is of both types.
func clash(a, b Type) bool {
	return family(a) != "" && family(b) != "" && family(a) != family(b)
}

// family groups the types that hold the same kind of value; "" fits any.
func family(t Type) Type {
	switch t {
	case TypeAny:
		return ""
	case TypeTime, TypeFlag, TypeCommas:
		return TypeString
	}
	return t
}
