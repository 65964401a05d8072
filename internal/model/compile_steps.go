package model

import (
	"cmp"
	"slices"
	"strings"
)

// compileReadings resolves what attributes say of other fields and rows, when all
// entities are there.
func (c *compiler) compileReadings() {
	for _, e := range c.Entities {
		for i, d := range c.entities[e].attributes {
			a := e.Attributes[i]
			if len(d.legacy)+len(d.after) > 0 {
				a.Reading = c.reading(e, a, d)
			}
			if d.others.given() {
				a.Others = c.others(e, a, d)
			}
		}
	}
}

func (c *compiler) reading(e *Entity, a *Attribute, d *attributeDecl) *Reading {
	r := &Reading{Legacy: map[string]string{}}
	for _, p := range d.legacy {
		if slices.Contains(a.Enum, p.name.text) {
			c.report(p.name.pos, "leave one of them out", "%q is a word of today, by the enum of %s, and of an older application", p.name.text, a.Name)
		}
		if c.oneOf(a, p.value) {
			r.Legacy[p.name.text] = p.value.text
		}
	}
	for _, p := range d.after[:min(1, len(d.after))] {
		if c.oneOf(a, p.value) {
			r.After, r.Late = c.field(e, p.name), p.value.text
		}
	}
	return r
}

// oneOf reports a word that the attribute's enum does not have.
func (c *compiler) oneOf(a *Attribute, w word) bool {
	if !w.given() || slices.Contains(a.Enum, w.text) {
		return w.given()
	}
	c.unknown(w, a.Enum, "%s is never %q", a.Name, w.text)
	return false
}

func (c *compiler) others(e *Entity, a *Attribute, d *attributeDecl) *Others {
	of, field, ok := c.dotted(d.others, "else")
	if !ok {
		return nil
	}
	o := &Others{Name: e.Name + "." + a.Name, On: e, Of: of, Field: field}
	rest := slices.DeleteFunc(of.KeyNames(), func(name string) bool { return name == field.Name })
	if len(rest) == len(of.KeyNames()) && !c.broken[of] {
		c.report(d.others.pos, "", "%s must be a name in the key of %s, so that each value has one row", field.Name, of.Name)
		return nil
	}
	if o.Key, ok = c.assignsTo(of, rest, e, d.by, d.others.pos, "by"); !ok {
		return nil
	}
	for _, name := range rest {
		o.Links = append(o.Links, of.Field(name))
	}
	return o
}

// dotted resolves Entity.field; what is missing is reported.
func (c *compiler) dotted(w word, key string) (*Entity, *Field, bool) {
	name, fieldName, ok := strings.Cut(w.text, ".")
	if !ok {
		c.report(w.pos, key+": "+name+".FIELD", "%q needs a field of an entity, not %q", key, w.text)
		return nil, nil, false
	}
	e := c.entity(word{name, w.pos})
	f := c.field(e, word{fieldName, w.pos})
	return e, f, f != nil
}

func (c *compiler) compileSteps() {
	for _, d := range c.decl.derive {
		if d.steps == nil {
			continue
		}
		e := c.entity(d.entity)
		if e == nil {
			continue
		}
		a := e.Attribute(d.attr.text)
		if a == nil || len(a.Enum) == 0 {
			c.report(d.attr.pos, "declare it: "+d.attr.text+": {type: string, enum: [first, next, …]}",
				"%s.%s moves along the words of its enum, and has none: the application writes it too", e.Name, d.attr.text)
			continue
		}
		s := &Steps{Name: d.name.text, Target: e, Attr: a}
		c.moves[s] = d
		for _, sd := range d.steps.stages {
			if st := c.stage(s, sd); st != nil {
				c.stages[st] = sd
				s.Stages = append(s.Stages, st)
			}
		}
		slices.SortStableFunc(s.Stages, func(x, y *Stage) int { return cmp.Compare(x.Rank, y.Rank) })
		e.Steps = append(e.Steps, s)
		c.Steps = append(c.Steps, s)
	}
}

// maxReached is how many rows may reach one word of one target that takes attributes
// from them, unless its stage has a max: each change reads them all for the latest. It
// is the largest max that a stage can have.
const maxReached = maxEach

func (c *compiler) stage(s *Steps, d *stageDecl) *Stage {
	st := &Stage{Steps: s, Word: d.word.text, Rank: slices.Index(s.Attr.Enum, d.word.text), Max: max(d.max, 0)}
	if st.Rank < 0 {
		c.unknown(d.word, s.Attr.Enum, "%s is never %q", s.Name, d.word.text)
	}
	if st.Source = c.entity(d.when); st.Source == nil {
		return nil
	}
	st.Where = c.tests(st.Source, d.where, false)
	to, whole := c.assigns(s.Target, st.Source, d.to, d.when.pos, "to")
	st.To = to
	for _, p := range d.set {
		f := c.field(st.Source, p.value)
		if s.Target.Attribute(p.name.text) == nil {
			c.unknown(p.name, names(s.Target.Attributes, func(a *Attribute) string { return a.Name }), "%s has no attribute %q", s.Target.Name, p.name.text)
			continue
		}
		if whole = whole && f != nil; f != nil {
			st.Set = append(st.Set, Assign{p.name.text, Expr{Field: f}})
		}
	}
	if d.each.given() || d.who.given() {
		whole = c.each(st, d) && whole
	} else if d.max < 0 && len(st.Set) > 0 {
		st.Max = maxReached
	}
	if whole && st.Rank >= 0 {
		st.Source.Stages = append(st.Source.Stages, st)
		return st
	}
	return nil
}

func (c *compiler) each(st *Stage, d *stageDecl) bool {
	switch {
	case !d.each.given():
		c.report(d.at["who"], "each: LIST", "%q says whom a row is for, and there is no list of those who count", "who")
		return false
	case !d.who.given():
		c.report(d.at["each"], "who: FIELD", "%q needs who: the field of %s that says whom a row is for", "each", st.Source.Name)
		return false
	}
	target := st.Steps.Target
	if st.Each = target.Attribute(d.each.text); st.Each == nil {
		c.unknown(d.each, names(target.Attributes, func(a *Attribute) string { return a.Name }), "%s has no attribute %q", target.Name, d.each.text)
		return false
	}
	if st.Who = c.field(st.Source, d.who); st.Who == nil {
		return false
	}
	if o := st.Each.Others; o != nil && !o.Used {
		o.Used = true
		o.Of.Others = append(o.Of.Others, o)
	}
	return true
}

// returns are what a query gives of the row it found.
func (c *compiler) returns(q *Query, d *queryDecl, of *Entity) {
	for _, r := range d.ret {
		out := Returned{Name: r.name.text}
		switch {
		case r.field.given():
			out.Field = c.field(of, r.field)
		case r.size.given():
			if out.Size = of.Attribute(r.size.text); out.Size == nil {
				c.unknown(r.size, names(of.Attributes, func(a *Attribute) string { return a.Name }), "%s has no attribute %q", of.Name, r.size.text)
			}
		case r.distinct.given():
			out.Distinct = c.counted(of, r)
		}
		if out.Field == nil && out.Size == nil && out.Distinct == nil {
			c.sound[q] = false
			continue
		}
		q.Return = append(q.Return, out)
	}
}

// counted reads the partition of the table itself.
func (c *compiler) counted(of *Entity, d returnDecl) *Counted {
	e, f, ok := c.dotted(d.distinct, "distinct")
	if !ok || c.broken[e] {
		return nil
	}
	out := &Counted{Entity: e, Field: f}
	if out.Key, ok = c.assignsTo(e, e.PrimaryKey()[0].Template.required(), of, d.by, d.distinct.pos, "by"); !ok {
		return nil
	}
	return out
}
