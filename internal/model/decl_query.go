package model

import "slices"

// queryDecl is a query as the file has it: a search with filters, or steps. Its first step stands in the query itself.
type queryDecl struct {
	stepDecl `noun:"query"`
	Then     steps `some:"the steps that follow"`
	Unique   bool
	Sort     word
	Return   named[returnDecl]
	Search   word
	steps    []*stepDecl // none of a search
}

// stepDecl is a step of a query, which gets one row or lists many. of is the entity.
type stepDecl struct {
	heading `noun:"step"`
	Get     word
	List    []word `some:"an entity, or a list of them"`
	By      word
	With    namesOrPairs
	Any     namesOrPairs
	Where   []testDecl
	Below   node
	Order   word `one:"newest oldest" or:"there is no order %q"`
	Expired bool
	get     bool
	of      word
	also    []word
	below   []pair
}

// steps are the steps behind the first, in a list or one by itself.
type steps []*stepDecl

func (list *steps) read(n node, _ string) {
	for _, el := range n.elements() {
		d := &stepDecl{}
		el.declare(word{}, d)
		*list = append(*list, d)
	}
}

func (d *queryDecl) check() {
	d.Return = slices.DeleteFunc(d.Return, func(r *returnDecl) bool { return r.wrong })
	if d.said("search") {
		for key, n := range d.has {
			if key != "search" && key != "with" && key != "where" {
				d.r.report(n.pos(), "a search has search, with and where", "%q does not go with \"search\"", key)
			}
		}
		return
	}
	d.stepDecl.check()
	d.steps = append(d.steps, &d.stepDecl)
	d.steps = append(d.steps, d.Then...)
	if n, ok := d.has["return"]; ok && n.isMap() && len(n.y.Content) == 0 {
		d.r.report(n.pos(), "return: {name: field}", "the query returns nothing")
	}
}

func (d *stepDecl) check() {
	if n, ok := d.has["below"]; ok && !n.isMap() {
		n.wrong(d.what("below"), "a map, {field: parameter}")
	} else if ok {
		d.below = n.pairs(d.what("below"))
	}
	list := d.said("list")
	d.get = d.said("get")
	switch {
	case d.get && list:
		d.r.report(d.at("list"), "get reads one row by its key, list reads many", "%s has \"get\" and \"list\"", article(d.shape))
	case d.get:
		d.of = d.Get
	case len(d.List) > 0:
		d.of, d.also = d.List[0], d.List[1:]
	case d.isMap() && !list:
		d.r.report(d.pos(), "one of get: ENTITY, list: ENTITY, search: INDEX", "%s does not say what it reads", article(d.shape))
	}
}

// returnDecl declares an attribute that a query returns: a field, the size of a list, or
// the number of distinct values in a partition.
type returnDecl struct {
	heading  `noun:"returned value"`
	Size     word
	Distinct word
	By       []pair
	field    word
	wrong    bool
}

func (d *returnDecl) short(n node, what string) { d.field = n.word(what) }

func (d *returnDecl) check() {
	if d.wrong = d.said("size") == d.said("distinct"); d.wrong {
		d.r.report(d.pos(), "{size: LIST}, or {distinct: ENTITY.FIELD}", "%q is either the size of a list or the number of distinct values", d.name.text)
	}
}
