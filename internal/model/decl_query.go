package model

// readQuery reads a query. Its first step stands in the query itself, the others below "then";
// a search has no steps.
func readQuery(e entry) *queryDecl {
	f := e.value.fields("query")
	d := &queryDecl{name: e.name, unique: f.flag("unique"), sort: f.word("sort"), ret: readReturns(f), at: f.places()}
	if _, ok := f.has["search"]; ok {
		d.search, d.with, d.where = f.word("search"), f.namesOrPairs("with"), readTests(f)
		for _, key := range shapes["query"] {
			if at, ok := d.at[key]; ok && key != "search" && key != "with" && key != "where" {
				f.r.report(at, "a search has search, with and where", "%q does not go with \"search\"", key)
			}
		}
		return d
	}
	d.steps = append(d.steps, readStep(f))
	if n, ok := f.has["then"]; ok {
		if len(n.elements()) == 0 {
			n.wrong(f.what("then"), "the steps that follow")
		}
		for _, el := range n.elements() {
			d.steps = append(d.steps, readStep(el.fields("step")))
		}
	}
	return d
}

// readStep reads a step, which gets one row or lists many.
func readStep(f fields) *stepDecl {
	d := &stepDecl{
		pos: f.pos(), by: f.word("by"), with: f.namesOrPairs("with"), any: f.namesOrPairs("any"), where: readTests(f), order: f.word("order"),
		expired: f.flag("expired"), at: f.places(),
	}
	if n, ok := f.has["below"]; ok && !n.isMap() {
		n.wrong(f.what("below"), "a map, {field: parameter}")
	} else {
		d.below = f.pairs("below")
	}
	_, get := f.has["get"]
	_, list := f.has["list"]
	switch {
	case get && list:
		f.r.report(f.at("list"), "get reads one row by its key, list reads many", "%s has \"get\" and \"list\"", article(f.shape))
	case get:
		d.get, d.of = true, f.word("get")
	case list:
		if of := f.words("list"); len(of) > 0 {
			d.of, d.also = of[0], of[1:]
		} else if n := f.has["list"]; len(n.elements()) == 0 {
			n.wrong(f.what("list"), "an entity, or a list of them")
		}
	case f.isMap():
		f.r.report(f.pos(), "one of get: ENTITY, list: ENTITY, search: INDEX", "%s does not say what it reads", article(f.shape))
	}
	return d
}

// returnDecl declares an attribute that a query returns: a field, the size of a list, or
// the number of distinct values in a partition.
type returnDecl struct {
	name     word
	field    word
	size     word
	distinct word
	by       []pair
}

// readReturns reads what a query returns in place of whole rows. None means whole rows.
func readReturns(f fields) []returnDecl {
	var out []returnDecl
	if n, ok := f.has["return"]; ok && n.isMap() && len(n.y.Content) == 0 {
		f.r.report(n.pos(), "return: {name: field}", "the query returns nothing")
	}
	for _, e := range f.entries("return") {
		d := returnDecl{name: e.name}
		if !e.value.isMap() {
			d.field = e.value.word(f.what("return"))
			out = append(out, d)
			continue
		}
		r := e.value.fields("returned value")
		d.size, d.distinct, d.by = r.word("size"), r.word("distinct"), r.pairs("by")
		_, size := r.has["size"]
		_, distinct := r.has["distinct"]
		if size == distinct {
			f.r.report(r.pos(), "{size: LIST}, or {distinct: ENTITY.FIELD}", "%q is either the size of a list or the number of distinct values", e.name.text)
			continue
		}
		out = append(out, d)
	}
	return out
}
