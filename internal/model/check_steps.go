package model

import "slices"

// checkReadings: what reads otherwise than it is stored is only read, never
// compared where the stored word counts.
func checkReadings(c *compiler) {
	for _, e := range c.Entities {
		for i, d := range c.entities[e].attributes {
			a := e.Attributes[i]
			c.otherwise(e, a, d)
			if d.others.given() && !a.Type.IsList() {
				c.report(d.pos["else"], "", "only a list stands for other rows where it has none, %s is a %s", a.Name, a.Type)
			}
			if _, ok := d.pos["by"]; ok && !d.others.given() {
				c.report(d.pos["by"], "", "%q says which rows else reads, and there is no else", "by")
			}
		}
	}
}

func (c *compiler) otherwise(e *Entity, a *Attribute, d *attributeDecl) {
	if a.Reading == nil {
		return
	}
	at := d.name.pos
	if len(a.Enum) == 0 {
		c.report(at, "enum: [one, two]", "%s reads as other words than are stored, and has no enum of them", a.Name)
	}
	if len(d.after) > 1 {
		c.report(d.after[1].name.pos, "", "%s changes once by itself, not twice", a.Name)
	}
	if f := a.Reading.After; f != nil && f.Type != TypeTime && f.Type != TypeNumber {
		c.report(d.after[0].name.pos, "a time (RFC 3339 text) or a number (epoch seconds)", "%s is a %s and says no time", f.Name, f.Type)
	}
	for _, k := range e.Keys {
		if k.Template.Slot(a.Name) >= 0 {
			c.report(at, "keep the key to words that are stored", "%s reads otherwise than it is stored, and the key %s holds what is stored", a.Name, k.Attr.Name)
		}
	}
	for _, t := range c.tested(e) {
		if t.name == a.Name {
			c.report(t.pos, "", "%s reads otherwise than it is stored, and %s would go by what is stored", a.Name, t.what)
		}
	}
}

// use is a place where a field of an entity decides something.
type use struct {
	name, what string
	pos
}

// tested are the fields of an entity that a where, a filter or an order goes by.
func (c *compiler) tested(e *Entity) []use {
	var out []use
	tests := func(what string, at pos, ts []Test) {
		for _, t := range ts {
			out = append(out, use{t.Field.Name, what, at})
		}
	}
	fields := func(what string, at pos, fs []*Field) {
		for _, f := range fs {
			out = append(out, use{f.Name, what, at})
		}
	}
	tests(e.Name, c.entities[e].name.pos, e.Where)
	for _, s := range e.Sources {
		tests(s.Tally.Name, c.tallies[s.Tally].name.pos, s.Where)
	}
	for _, r := range e.Rules {
		tests(r.Name, c.rules[r].name.pos, r.Where)
	}
	for _, st := range e.Stages {
		tests(st.Steps.Name, c.stages[st].word.pos, st.Where)
	}
	for _, s := range e.Search {
		at, what := c.searches[s].name.pos, "the search index "+s.Name
		tests(what, at, s.Where)
		fields(what, at, s.Text)
		fields(what, at, s.Filters)
		fields(what, at, s.Sorts)
	}
	return out
}

// checkSteps: what moves is the application's own attribute, and nothing else
// hangs on it by the words that are stored.
func checkSteps(c *compiler) {
	for _, s := range c.Steps {
		at := c.moves[s].attr.pos
		if s.Target.Derived {
			c.report(at, "", "rows of %s are made whole by weir, and nothing moves on them", s.Target.Name)
		}
		seen := map[string]string{}
		for _, st := range s.Stages {
			c.written(s, st, seen)
		}
		for _, name := range s.Attributes() {
			c.settled(s, name, at)
		}
	}
}

// written reports attributes that a stage cannot set.
func (c *compiler) written(s *Steps, st *Stage, seen map[string]string) {
	for _, a := range st.Set {
		i := slices.IndexFunc(c.stages[st].set, func(p pair) bool { return p.name.text == a.Name })
		at := c.stages[st].set[i].name.pos
		switch before, twice := seen[a.Name]; {
		case a.Name == s.Attr.Name:
			c.report(at, "leave it out", "%s is what moves, and set by its steps", a.Name)
		case twice:
			c.report(at, "one attribute for each", "%s is set by %s already", a.Name, before)
		case !scalar(a.Expr.Field.Type):
			c.report(at, "", "%s.%s is a %s, and none of them is the latest", st.Source.Name, a.Expr.Field.Name, a.Expr.Field.Type)
		case clash(a.Expr.Field.Type, s.Target.Attribute(a.Name).Type):
			c.report(at, "", "%s is a %s, and %s.%s a %s", a.Name, s.Target.Attribute(a.Name).Type, st.Source.Name, a.Expr.Field.Name, a.Expr.Field.Type)
		}
		seen[a.Name] = st.Word
	}
}

// settled reports an attribute that moves by itself and yet makes keys or tells
// what its row is.
func (c *compiler) settled(s *Steps, name string, at pos) {
	for i, k := range s.Target.Keys {
		if k.Template.Slot(name) >= 0 && (i < len(s.Target.PrimaryKey()) || !k.Template.Whole()) {
			c.report(at, "make "+name+" itself the key attribute of an index", "the key %s of %s is made of %s, and nothing would write it again when that moves", k.Attr.Name, s.Target.Name, name)
		}
	}
	for _, t := range s.Target.Where {
		if t.Field.Name == name {
			c.report(at, "", "%s tells what %s is, and cannot move", name, s.Target.Name)
		}
	}
	if name == s.Target.Table.TTL {
		c.report(at, "", "%s is the ttl of table %s", name, s.Target.Table.Name)
	}
}

// checkStages: what is looked through is a list, with one row for each of its elements.
func checkStages(c *compiler) {
	for _, s := range c.Steps {
		for _, st := range s.Stages {
			d := c.stages[st]
			c.fits(d.word.pos, s.Name, s.Target, st.To)
			if st.Each == nil {
				continue
			}
			if !st.Each.Type.IsList() {
				c.report(d.at["each"], "", "each goes through a list, %s is a %s", st.Each.Name, st.Each.Type)
			}
			if !scalar(st.Who.Type) {
				c.report(d.at["who"], "", "%s is a %s, and no element of a list", st.Who.Name, st.Who.Type)
			}
			for _, name := range st.Source.KeyNames() {
				if name != st.Who.Name && !st.finds(name) {
					c.report(d.word.pos, "", "several rows of %s can be for one element of %s: its key has %q besides", st.Source.Name, st.Each.Name, name)
				}
			}
		}
	}
}

// finds reports whether the target's key is made of this field of the source.
func (st *Stage) finds(name string) bool {
	return slices.ContainsFunc(st.To, func(a Assign) bool { return a.Expr.Field != nil && a.Expr.Field.Name == name })
}

// checkReturns: what is composed is composed of one row, in full sight.
func checkReturns(c *compiler) {
	for _, q := range c.Queries {
		d := c.queries[q]
		if !c.sound[q] || q.Search != nil {
			continue
		}
		if len(q.Return) > 0 && !q.Single {
			c.report(d.at["return"], "", "return is for a query that finds one row")
		}
		for i, r := range q.Return {
			e := q.Steps[len(q.Steps)-1].Entity
			switch {
			case r.Field != nil:
				c.shown(e, d.ret[i].field, "returned")
			case r.Size != nil:
				c.shown(e, d.ret[i].size, "counted")
				if !r.Size.Type.IsList() {
					c.report(d.ret[i].size.pos, "", "%s is a %s, and has no size", r.Size.Name, r.Size.Type)
				}
			case !scalar(r.Distinct.Field.Type):
				c.report(d.ret[i].distinct.pos, "", "distinct tells single values apart, %s is a %s", r.Distinct.Field.Name, r.Distinct.Field.Type)
			}
		}
	}
}

// checkSort: an order of its own is made of one partition, read whole.
func checkSort(c *compiler) {
	for _, q := range c.Queries {
		d := c.queries[q]
		if !c.sound[q] || q.Sort == nil {
			continue
		}
		at := d.at["sort"]
		c.shown(q.Steps[len(q.Steps)-1].Entity, d.sort, "sorted by")
		switch {
		case len(q.Steps) > 1 || q.Steps[0].Get || q.Unique:
			c.report(at, "leave it out", "sort orders the rows of one list")
		case !scalar(q.Sort.Type):
			c.report(at, "", "%s is a %s, and orders nothing", q.Sort.Name, q.Sort.Type)
		}
		if by, ok := c.steps[q.Steps[0]].at["order"]; ok {
			c.report(by, "leave one of them out", "order goes by the sort key, and the rows by %s", q.Sort.Name)
		}
	}
}

// checkSpread: from one row to many by a list of the row, each once.
func checkSpread(c *compiler) {
	for _, q := range c.Queries {
		if !c.sound[q] {
			continue
		}
		for _, s := range q.Steps {
			at := c.steps[s].pos
			switch {
			case !s.Spreads():
			case !s.Get:
				c.report(at, "get: "+s.Entity.Name, "for each element of a list one row is read by its key")
			case !q.Unique:
				c.report(at, "unique: true", "a list may name a row twice, and the query does not say that each comes once")
			}
		}
	}
}
