package model

import (
	"slices"
	"strings"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Parameters that a search has without declaring them.
const (
	textParam = "q"
	sortParam = "sort"
)

var reservedParams = []string{textParam, sortParam, "limit", "cursor", "select"}

// StatusPath is the name under which servers answer the status of a model, beside its queries.
const StatusPath = "status"

// compileQueries compiles the queries after all entities and derivations, because a query may
// return derived values.
// Single is true only if every step gets one row, so the answer has one row at most.
func (c *compiler) compileQueries() {
	for _, d := range c.decl.Queries {
		if d.name.text == StatusPath {
			c.addFlaw(d.name.pos, "call it "+c.Name+"-"+StatusPath, "%s is what GET /v1/%s/%s answers: how far everything is that the model derives", StatusPath, c.Name, StatusPath)
		}
		q, before := &Query{Name: d.name.text, Unique: d.Unique, decl: d}, c.flaws
		if d.Search.isGiven() {
			c.searchQuery(q, d)
		} else {
			c.stepQuery(q, d)
		}
		if c.flaws == before {
			c.Queries = append(c.Queries, q)
		}
	}
}

// stepQuery compiles the steps of a query and its answer.
func (c *compiler) stepQuery(q *Query, d *queryDecl) {
	q.Single = true
	var prior *Entity
	for _, sd := range d.steps {
		s := c.compileStep(q, sd, prior)
		if s == nil {
			return
		}
		q.Steps = append(q.Steps, s)
		q.Single = q.Single && s.Get && !s.readsEach()
		prior = s.Entity
	}
	if d.Sort.isGiven() {
		q.Sort = checkType(c, d, "sort", d.Sort, c.findField(prior, d.Sort))
	}
	c.compileReturns(q, d, prior)
}

// searchQuery compiles a search. Its parameters are, in this order: the text, those that
// "with" binds, the remaining filters under their own names, and the sort.
func (c *compiler) searchQuery(q *Query, d *queryDecl) {
	if q.Search = c.findSearch(d.Search); q.Search == nil {
		c.flaws++
		return
	}
	q.Params = []Param{{Name: textParam, Type: TypeString}}
	filters := seq.Map(q.Search.Filters, func(f *Field) string { return f.Name })
	for _, p := range d.With {
		if !c.refuseUnknown(p.name, filters, "%q is no filter of the search index %s", p.name.text, q.Search.Name) {
			q.With = append(q.With, c.compileBind(q, q.Search.Of, p, nil, value.In))
		}
	}
	q.Where = c.compileFilters(q, q.Search.Of, d.Where)
	for _, f := range q.Search.Filters {
		bound := slices.ContainsFunc(q.With, func(b Bind) bool { return b.Field.Name == f.Name })
		taken := slices.ContainsFunc(q.Params, func(p Param) bool { return p.Name == f.Name })
		if !bound && !taken && !slices.Contains(reservedParams, f.Name) {
			q.Params = append(q.Params, Param{Name: f.Name, Optional: true, Type: f.Type})
			q.With = append(q.With, Bind{Field: f, Param: f.Name})
		}
	}
	if len(q.Search.Sorts) > 0 {
		sort := Param{Name: sortParam, Optional: true, Type: TypeString}
		for _, f := range q.Search.Sorts {
			sort.OneOf = append(sort.OneOf, f.Name, "-"+f.Name)
		}
		q.Params = append(q.Params, sort)
	}
}

// compileStep compiles one step, or returns nil if it was reported. prior is the entity of the step
// before, whose fields this one may use.
// The parameters of all steps are those of the query; a name that stands in two steps is one
// parameter.
func (c *compiler) compileStep(q *Query, d *stepDecl, prior *Entity) *Step {
	before := c.flaws
	s := &Step{Entity: c.findUsable(d.of), Get: d.get, Reverse: d.Order.text == "newest", Expired: d.Expired, decl: d}
	if c.flaws > before {
		return nil
	}
	if t := s.Entity.Table; d.By.isGiven() {
		s.Index = t.Index(d.By.text)
		if c.refuseUnknown(d.By, seq.Map(t.Indexes, func(ix store.Index) string { return ix.Name }), "table %s has no index %q", t.Name, d.By.text) {
			return nil
		}
	}
	s.Also = seq.Map(d.also, c.findUsable)
	s.Any = seq.Map(d.Any, func(p pair) Bind { return c.bindList(q, s.Entity, p) })
	s.With = seq.Map(d.With, func(p pair) Bind { return c.compileBind(q, s.Entity, p, prior, value.In) })
	for _, p := range d.Below {
		s.Range = append(s.Range, RangeTerm{value.Below, c.compileBind(q, s.Entity, p, prior, value.Below)})
	}
	for _, f := range c.compileFilters(q, s.Entity, d.Range) {
		for _, t := range f.Terms {
			b := Bind{Field: f.Field, Param: t.Param}
			if len(t.Values) > 0 {
				b.Const = t.Values[0]
			}
			s.Range = append(s.Range, RangeTerm{t.Op, b})
		}
	}
	if s.Where = c.compileFilters(q, s.Entity, d.Where); c.flaws > before {
		return nil
	}
	return s
}

// findUsable is findEntity for one whose key has to be usable.
func (c *compiler) findUsable(w word) *Entity {
	e := c.findEntity(w)
	if c.broken[e] {
		c.flaws++
	}
	return e
}

// compileBind compiles how a field is fixed: to a constant, to a field of the row of the step
// before if there is one, and otherwise to a parameter. The parameter has the type that op compares by.
func (c *compiler) compileBind(q *Query, e *Entity, p pair, prior *Entity, op value.Op) Bind {
	b := Bind{Field: c.findField(e, p.name)}
	switch {
	case b.Field == nil || !p.value.isGiven():
		c.flaws++
	case prior != nil || strings.HasPrefix(p.value.text, "="):
		x := c.compileExpr(prior, p.value, e, p.name.text)
		if b.Const, b.Prior = x.Const, x.Field; b.Prior != nil && b.Prior.Formula != nil && b.Prior.Type.IsList() {
			c.addFlaw(p.value.pos, "name a list that rows have", "%s.%s is computed when it is read, and a step reads for each element of a list of the row", prior.Name, p.value.text)
		}
	default:
		read, a := c.comparedAs(e, b.Field, &value.Term{Op: op})
		b.Param = c.bindParam(q, read, a, p.value, false)
	}
	return b
}

// noteParameter notes a parameter of a query. One that stands in several places must have the same
// type, default and form in all of them.
func (c *compiler) noteParameter(q *Query, p Param, w word) {
	i := slices.IndexFunc(q.Params, func(have Param) bool { return have.Name == p.Name })
	switch {
	case slices.Contains(reservedParams, p.Name):
		c.addFlaw(w.pos, "choose another name", "every query has a parameter %q of its own", p.Name)
	case !identifier.MatchString(p.Name):
		c.addFlaw(w.pos, "like albumId, or albumId? when it may be left out; a constant is written =text", "a parameter's name is letters and digits, not %q", p.Name)
	case i < 0:
		q.Params = append(q.Params, p)
	default:
		if have := q.Params[i]; have.Type != p.Type || have.Optional != p.Optional || !value.Equal(have.Default, p.Default) || have.List != p.List {
			c.addFlaw(w.pos, "", "the parameter %q is a %s here and a %s before, or may be left out or be a list only once", p.Name, p.Type, have.Type)
		}
	}
}

// bindList compiles a Bind by which a field must be among the values of a parameter.
func (c *compiler) bindList(q *Query, e *Entity, p pair) Bind {
	b := Bind{Field: c.findField(e, p.name)}
	if b.Field == nil || !p.value.isGiven() {
		c.flaws++
		return b
	}
	name, optional := strings.CutSuffix(p.value.text, "?")
	b.Param = name
	c.noteParameter(q, Param{Name: name, Optional: optional, Type: b.Field.Type, List: true}, p.value)
	return b
}
