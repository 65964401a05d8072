package model

// rulesDecl holds the rules that an entity declares for commands, as written.
type rulesDecl struct {
	unique    []word
	fresh     []pair // new
	flatten   []pair
	once      *onceDecl
	supersede *supersedeDecl
	at        map[string]pos
}

// onceDecl says in which rows idempotency keys are kept.
type onceDecl struct {
	of, key word
	set     []pair
}

// supersedeDecl says which row a command's row replaces, and what that row then takes over.
type supersedeDecl struct {
	where  []testDecl
	row    []pair
	append []pair
}

// plusDecl is a duration, or one for each word of an attribute.
type plusDecl struct {
	pos
	one  word
	by   word
	each []pair
}

// readRules reads the rules of an entity; at has the place of each, also of those left out here.
func readRules(f fields) rulesDecl {
	d := rulesDecl{unique: f.words("unique"), fresh: f.pairs("new"), flatten: f.pairs("flatten"), at: f.places()}
	if n, ok := f.has["once"]; ok {
		o := n.fields("once")
		d.once = &onceDecl{of: o.need("of", "of: ENTITY"), key: o.need("key", "key: ATTRIBUTE"), set: o.pairs("set")}
	}
	if n, ok := f.has["supersede"]; ok {
		s := n.fields("supersede")
		d.supersede = &supersedeDecl{where: readTests(s), row: s.pairs("row"), append: s.pairs("append")}
		for _, key := range []string{"where", "row", "append"} {
			if m, ok := s.has[key]; !ok || m.isMap() && len(m.y.Content) == 0 {
				s.missing(key, "supersede: {where: {state: DONE}, row: {state: OPEN}, append: {times: doneAt}}")
			}
		}
	}
	return d
}

// readPlus reads a duration, which the compiler parses.
func readPlus(f fields) plusDecl {
	n, ok := f.has["plus"]
	if !ok {
		return plusDecl{}
	}
	d := plusDecl{pos: n.pos()}
	if !n.isMap() {
		d.one = n.word(f.what("plus"))
		return d
	}
	entries := n.entries(f.what("plus"))
	if len(entries) != 1 {
		n.wrong(f.what("plus"), "a duration like 24h, or {ATTRIBUTE: {WORD: 24h}}")
		return d
	}
	d.by = entries[0].name
	for _, e := range entries[0].value.entries(f.what("plus")) {
		d.each = append(d.each, pair{e.name, e.value.word("a duration")})
	}
	return d
}
