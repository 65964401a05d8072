package model

import (
	"slices"
	"strings"
)

// compileDerive works in two rounds: first what there is, so that a derivation may
// name what another one derives, then what each is made of.
func (c *compiler) compileDerive() {
	for _, d := range c.decl.derive {
		e := c.entity(d.entity)
		if e == nil {
			continue
		}
		switch {
		case d.steps != nil: // when all else is there
		case d.tally != nil:
			t := &Tally{
				Name: d.name.text, Kind: d.tally.kind, Target: e, Attr: d.attr.text, Hidden: d.tally.hidden,
				Round: max(d.tally.round, 0), Max: max(d.tally.max, 0),
			}
			c.attributeName(d.attr)
			c.tallies[t] = d
			c.Tallies = append(c.Tallies, t)
			e.Values = append(e.Values, t)
			if t.IsSet() {
				c.spread(e)
			}
			c.keyed(e, t)
		case d.row != nil:
			e.Derived = true
			for range max(1, len(d.row.source)) {
				r := &RowRule{Name: d.name.text, Into: e}
				c.rules[r] = d
				c.Rows = append(c.Rows, r)
			}
		}
	}
	for _, t := range c.Tallies {
		c.tally(t, c.tallies[t].tally)
	}
	for i, r := range c.Rows {
		d, nth := c.rules[r].row, 0
		for j := i - 1; j >= 0 && c.rules[c.Rows[j]] == c.rules[r]; j-- {
			nth++
		}
		if nth < len(d.source) {
			c.row(r, d, d.source[nth])
		}
	}
	c.Rows = slices.DeleteFunc(c.Rows, func(r *RowRule) bool { return r.Source == nil })
}

// keyed lets an index be kept by the value itself: the attribute is the key
// attribute, and needs no template.
func (c *compiler) keyed(e *Entity, t *Tally) {
	for _, a := range keyAttrs(e.Table) {
		if a.Name == t.Attr && e.KeyTemplate(a.Name) == nil && !c.broken[e] {
			e.Keys = append(e.Keys, &KeyTemplate{Attr: a, Template: identity(a.Name)})
		}
	}
}

func (c *compiler) tally(t *Tally, d *tallyDecl) {
	for _, of := range d.of {
		name, fieldName, dotted := strings.Cut(of.text, ".")
		s := &Source{Tally: t}
		if s.Entity = c.entity(word{name, of.pos}); s.Entity == nil {
			continue
		}
		switch {
		case !t.Kind.OfRows && !dotted:
			c.report(of.pos, t.Kind.Keyword+": "+name+".FIELD", "a %s is of a field of %s", t.Kind.Keyword, name)
		case dotted:
			s.Field = c.field(s.Entity, word{fieldName, of.pos})
		}
		s.Where = c.tests(s.Entity, d.where, false)
		to, ok := c.assigns(t.Target, s.Entity, d.to, of.pos, "to")
		if s.To = to; !ok || !t.Kind.OfRows && s.Field == nil {
			continue
		}
		t.Sources = append(t.Sources, s)
		s.Entity.Sources = append(s.Entity.Sources, s)
	}
}

// row compiles the rule for one of the entities that it makes rows from.
func (c *compiler) row(r *RowRule, d *rowDecl, of word) {
	source := c.entity(of)
	if source == nil {
		return
	}
	r.Source = source
	source.Rules = append(source.Rules, r)
	r.Into.MadeBy = append(r.Into.MadeBy, r)
	for _, w := range d.keep {
		if event, ok := events[w.text]; ok {
			r.Keep = append(r.Keep, event)
		} else {
			c.unknown(w, eventNames, "there is no event %q", w.text)
		}
	}
	r.Where = c.tests(source, d.where, false)
	c.faulty[r] = len(d.set) == 0 || !c.followers(r, d)
	for _, s := range d.set {
		known := c.settable(r.Into)
		if !slices.Contains(known, s.name.text) && !c.broken[r.Into] {
			c.unknown(s.name, known, "%s has no attribute and no key name %q", r.Into.Name, s.name.text)
			c.faulty[r] = true
			continue
		}
		x, ok := c.set(r, s)
		r.Fields = append(r.Fields, Assign{s.name.text, x})
		c.faulty[r] = c.faulty[r] || !ok
	}
}

var events = map[string]string{"insert": "INSERT", "modify": "MODIFY", "remove": "REMOVE"}

// settable are the names that a row rule may give a value to.
func (c *compiler) settable(into *Entity) []string {
	out := names(into.Attributes, func(a *Attribute) string { return a.Name })
	for _, k := range into.Keys {
		out = append(out, k.Template.Names()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *compiler) set(r *RowRule, s setDecl) (Expr, bool) {
	switch {
	case s.follow.given():
		f := c.follow(r, s)
		return Expr{Follow: f}, f != nil
	case s.isMap:
		return c.nested(r, s.nested)
	}
	return c.recordOr(r, s.value, r.Into, s.name.text)
}

// recordOr is expr that also knows the names of the record.
func (c *compiler) recordOr(r *RowRule, w word, into *Entity, name string) (Expr, bool) {
	if r.Each != nil && strings.HasPrefix(w.text, r.Each.Of.Name+".") {
		f := c.field(r.Each.Of, word{w.text[len(r.Each.Of.Name)+1:], w.pos})
		return Expr{Each: f}, f != nil
	}
	if !strings.HasPrefix(w.text, "$") {
		return c.expr(r.Source, w, into, name)
	}
	if !slices.Contains(records, w.text) {
		c.unknown(w, records, "a record has no %q", w.text)
		return Expr{}, false
	}
	return Expr{Record: w.text}, true
}

func (c *compiler) nested(r *RowRule, sets []setDecl) (Expr, bool) {
	x, ok := Expr{Map: []Assign{}}, true
	for _, s := range sets {
		var in Expr
		good := false
		switch {
		case s.follow.given():
			c.report(s.follow.pos, "give the value an attribute of its own", "only an attribute of the row itself can follow a value, not one inside a map")
		case s.isMap:
			in, good = c.nested(r, s.nested)
		default:
			if in, good = c.recordOr(r, s.value, nil, s.name.text); in.Each != nil {
				c.report(s.value.pos, "give the value an attribute of its own", "what comes from the follower stands by itself, not inside a map")
				good = false
			}
		}
		x.Map, ok = append(x.Map, Assign{s.name.text, in}), ok && good
	}
	return x, ok
}

func (c *compiler) follow(r *RowRule, s setDecl) *Follow {
	name, fieldName, ok := strings.Cut(s.follow.text, ".")
	if !ok {
		c.report(s.follow.pos, "follow: "+name+".FIELD", "what is followed is a field of an entity, not %q", s.follow.text)
		return nil
	}
	f := &Follow{Rule: r, Attr: s.name.text, Keep: s.last, Source: c.entity(word{name, s.follow.pos})}
	if f.Source == nil {
		return nil
	}
	f.Field = c.field(f.Source, word{fieldName, s.follow.pos})
	key, whole := c.assigns(f.Source, r.Source, s.by, s.follow.pos, "by")
	if f.Key = key; f.Field == nil || !whole {
		return nil
	}
	f.Source.Follow = append(f.Source.Follow, f)
	c.Follows = append(c.Follows, f)
	return f
}
