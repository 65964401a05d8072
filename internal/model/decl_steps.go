package model

type stepsDecl struct {
	stages []*stageDecl
	at     map[string]pos
}

type stageDecl struct {
	word  word
	when  word
	where []testDecl
	to    []pair
	each  word
	who   word
	max   int // -1 for none
	set   []pair
	at    map[string]pos
}

func readSteps(d *deriveDecl, f fields) {
	s := &stepsDecl{at: f.places()}
	if entries := f.entries("steps"); len(entries) > 0 {
		for _, e := range entries {
			s.stages = append(s.stages, readStage(e))
		}
	} else if f.has["steps"].isMap() {
		f.r.report(f.at("steps"), "steps: {WORD: {when: ENTITY}}", "no word is said to be reached")
	}
	d.steps = s
}

func readStage(e entry) *stageDecl {
	f := e.value.fields("stage")
	return &stageDecl{
		word: e.name, when: f.need("when", "when: ENTITY"), where: readTests(f), to: f.pairs("to"),
		each: f.word("each"), who: f.word("who"), max: f.number("max", 1, maxEach), set: f.pairs("set"), at: f.places(),
	}
}

// maxEach bounds the list that a stage looks through, one row for each element.
const maxEach = 1000

// returnDecl is an attribute that a query returns: a field, the size of a list, or
// the number of values in a partition.
type returnDecl struct {
	name     word
	field    word
	size     word
	distinct word
	by       []pair
}

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
