package model

// queryDecl is a query as the file has it: a search with filters, or steps. Its first step stands in the query itself.
type queryDecl struct {
	// A named query: get one row, list rows of a partition, or search.
	stepDecl `noun:"query" either:"get list search" or:"get: ENTITY, list: ENTITY, or search: INDEX"`
	// What is read for each row found; the last step is the answer.
	Then steps `some:"the steps that follow"`
	// Each row of the last step once, in the order of their keys.
	Unique bool
	// The field that orders the rows of a list, where its key does not. The whole list is read for a page.
	Sort word `type:"string number boolean flag time binary commas any"`
	// What is given of the one row found: {name: field}, the size of a list of it, or how many distinct values a field has in
	// a partition.
	Return named[returnDecl] `some:"at least one name, {name: field}"`
	// The search index. The words are the parameter q; sort and the index's filters are parameters too.
	Search word `only:"with where"`

	steps []*stepDecl // none of a search
}

// stepDecl is a step of a query, which gets one row or lists many. of is the entity.
type stepDecl struct {
	// One read for each row of the step before.
	heading `noun:"step" either:"get list" or:"get: ENTITY, or list: ENTITY"`
	// One row of this entity, by its whole key.
	Get word
	// Rows of this entity, or of these, from one partition.
	List []word `some:"an entity, or a list of them"`
	// The index to read; the table itself without it.
	By word
	// Fields fixed to parameters, or to fields of the row before: [names] or {field: parameter}. parameter? may be left out
	// (in quotes inside braces), parameter=text is text where it is left out, =text is a constant. A list of the row before
	// stands for each of its elements.
	With namesOrPairs `type:"string number boolean flag time commas any"`
	// Only rows where at least one of these fields is among the values, with commas between them, of its parameter: [names]
	// or {field: parameter}.
	Any namesOrPairs `some:"at least one field, {field: parameter}" type:"string number boolean flag time commas any"`
	// Only rows that pass these tests. Values may be parameters: {param: NAME}.
	Where []testDecl
	// Only rows whose field, the next one of the sort key, passes this test: atLeast, above, atMost, below, between, begins. No
	// other rows are read. Values may be parameters: {param: NAME}.
	Range []testDecl `to:"1" some:"one field, {field: {atLeast: {param: NAME}}}"`
	// Short for a range with below: {field: parameter}.
	Below []pair `to:"1" some:"at least one field, {field: parameter}"`
	// The order of the sort key: oldest (the default) or newest first.
	Order word `one:"newest oldest" or:"there is no order %q"`
	// Expired rows too.
	Expired bool

	get  bool
	of   word
	also []word
}

// steps are the steps behind the first, in a list or one by itself.
type steps []*stepDecl

func (list *steps) read(n node, _ string) {
	for _, el := range n.listElements() {
		d := &stepDecl{}
		el.readDeclaration(word{}, d)
		*list = append(*list, d)
	}
}

func (d *queryDecl) check() {
	if d.stepDecl.check(); !d.hasKey("search") {
		d.steps = append([]*stepDecl{&d.stepDecl}, d.Then...)
	}
}

func (d *stepDecl) check() {
	if d.get, d.of = d.hasKey("get"), d.Get; !d.get && len(d.List) > 0 {
		d.of, d.also = d.List[0], d.List[1:]
	}
}

// returnDecl declares an attribute that a query returns: a field, the size of a list, or
// the number of distinct values in a partition.
type returnDecl struct {
	// A number made at the time of asking.
	heading `noun:"returned value" either:"size distinct" or:"{size: LIST}, or {distinct: ENTITY.FIELD}"`
	// How many elements a list of the row has, each once; what it stands for where there is none.
	Size word `type:"list strings numbers"`
	// How many values Entity.field has in one partition of its table.
	Distinct word `form:"Entity.field" type:"string number boolean flag time binary commas any"`
	// Which partition: {name in its key: field of the row found}. Equal names need no line.
	By []pair

	field word
}

func (d *returnDecl) short(n node, what string) { d.field = n.readWord(what) }
