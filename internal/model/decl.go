package model

import "strings"

// The declarations of a model file as written, each name with its place in the file. Names
// are not resolved yet; the compiler does that.

// modelDecl is a model file as it was read, each word with its place, before anything in it is
// looked up. The compiler reports by these places.
type modelDecl struct {
	name     word
	tables   []*tableDecl
	entities []*entityDecl
	derive   []*deriveDecl
	searches []*searchDecl
	queries  []*queryDecl

	migrations []*migrationDecl
	wrong      map[string]bool // the sections that are no maps, and were reported
}

// tableDecl is a table as the file has it.
type tableDecl struct {
	name    word
	key     keyDecl
	ttl     word
	stream  word
	indexes []*indexDecl
}

// keyDecl is [partition] or [partition, sort].
type keyDecl struct {
	pos
	parts []keyPart
}

// keyPart is an attribute of a key. typ is the zero word for a string.
type keyPart struct{ name, typ word }

// indexDecl is an index of a table as the file has it.
type indexDecl struct {
	name       word
	key        keyDecl
	local      bool
	projection word
}

// entityDecl is an entity as the file has it.
type entityDecl struct {
	name       word
	table      word
	where      []testDecl
	key        []pair
	cases      map[string]word // by key attribute
	attributes []*attributeDecl
	listed     bool // the file has attributes for it, perhaps none
	expires    word
	rules      rulesDecl
}

// pair is a name and the word it stands for.
// Both have their places in the file.
type pair struct{ name, value word }

// attributeDecl is an attribute as the file has it: a type alone, or a map.
type attributeDecl struct {
	name, typ        word
	as, zone         word
	required, hidden bool
	forward, whole   bool
	from             word
	plus             plusDecl
	def              node
	enum             []word
	max              int  // of a text; -1 for none
	least, most      node // of a number
	legacy, after    []pair
	others           word // Entity.field
	by               []pair
	pos              map[string]pos
}

// queryDecl is a query as the file has it: steps, or a search with filters.
type queryDecl struct {
	name   word
	search word
	with   []pair // of a search
	where  []testDecl
	steps  []*stepDecl
	unique bool
	sort   word
	ret    []returnDecl
	at     map[string]pos
}

// stepDecl is a step of a query. of is the entity; get or list says how many rows it reads.
type stepDecl struct {
	pos
	of          word
	also        []word
	get         bool
	by          word
	with, below []pair
	any         []pair
	where       []testDecl
	order       word
	expired     bool
	at          map[string]pos
}

// readModel reads the sections of a file. It reports keys that no section has and goes on, so
// that one run of lint shows as many mistakes as possible.
// What cannot be read is left out and reported. The result has what is left, in the order of the
// file, and is never nil.
func readModel(n node) *modelDecl {
	f := n.fields("model")
	d := &modelDecl{name: f.need("model", "the name by which commands and URLs call it"), wrong: map[string]bool{}}
	for key, n := range f.has {
		d.wrong[key] = n.given() && !n.isMap()
	}
	for _, e := range f.section("tables") {
		d.tables = append(d.tables, readTable(e))
	}
	for _, e := range f.section("entities") {
		d.entities = append(d.entities, readEntity(e))
	}
	for _, e := range f.section("derive") {
		if one := readDerive(e); one != nil {
			d.derive = append(d.derive, one)
		}
	}
	for _, e := range f.section("migrate") {
		d.migrations = append(d.migrations, readMigration(e))
	}
	for _, e := range f.section("search") {
		d.searches = append(d.searches, readSearch(e))
	}
	for _, e := range f.section("queries") {
		d.queries = append(d.queries, readQuery(e))
	}
	return d
}

// section returns the entries of a top-level section. An empty section counts as absent.
func (f fields) section(key string) []entry {
	if n, ok := f.has[key]; !ok || !n.given() {
		return nil
	}
	return f.entries(key)
}

// readTable reads a table with its indexes.
func readTable(e entry) *tableDecl {
	f := e.value.fields("table")
	d := &tableDecl{name: e.name, key: readKey(f), ttl: f.word("ttl"), stream: f.word("stream")}
	for _, ix := range f.entries("indexes") {
		d.indexes = append(d.indexes, readIndex(ix))
	}
	return d
}

// readIndex reads an index: a key alone, or a map with a key.
func readIndex(e entry) *indexDecl {
	if e.value.isMap() {
		f := e.value.fields("index")
		return &indexDecl{name: e.name, key: readKey(f), local: f.flag("local"), projection: f.word("projection")}
	}
	return &indexDecl{name: e.name, key: readKeyNode(e.value, "the key of an index")}
}

// readKey reads the key under "key". Without it, it reports that it is missing.
func readKey(f fields) keyDecl {
	n, ok := f.has["key"]
	if !ok {
		f.missing("key", "key: [PK, SK]")
		return keyDecl{}
	}
	return readKeyNode(n, f.what("key"))
}

// readKeyNode reads the key of a table or index: one attribute or two, each with its type where
// it is no string.
func readKeyNode(n node, what string) keyDecl {
	elems := n.elements()
	if !n.isList() || len(elems) < 1 || len(elems) > 2 {
		n.wrong(what, "a list of one or two attributes, [partition] or [partition, sort]")
		return keyDecl{}
	}
	d := keyDecl{pos: n.pos()}
	for _, el := range elems {
		part := keyPart{}
		if el.isMap() {
			for _, e := range el.entries(what) {
				part = keyPart{e.name, e.value.word("the type of a key attribute")}
			}
		} else {
			part.name = el.word(what)
		}
		if !part.name.given() {
			return keyDecl{}
		}
		d.parts = append(d.parts, part)
	}
	return d
}

// readEntity reads an entity with its attributes and rules. Attributes keep their order.
func readEntity(e entry) *entityDecl {
	f := e.value.fields("entity")
	_, listed := f.has["attributes"]
	d := &entityDecl{listed: listed, name: e.name, table: f.word("table"), where: readTests(f), expires: f.word("expires"), cases: map[string]word{}, rules: readRules(f)}
	for _, k := range f.entries("key") {
		if !k.value.isMap() {
			d.key = append(d.key, k.value.textPair(f, "key", k.name))
			continue
		}
		t := k.value.fields("key template")
		d.key = append(d.key, pair{k.name, t.need("template", "template: \"...#{name}\"")})
		if c := t.word("case"); c.given() {
			d.cases[k.name.text] = c
		}
	}
	for _, a := range f.entries("attributes") {
		d.attributes = append(d.attributes, readAttribute(a))
	}
	return d
}

// readAttribute reads an attribute. A type may end in "!", which is short for required.
// min and max of a number are numbers of any size; max of a text is at most 409,600 characters,
// which is DynamoDB's limit of a row if each has one byte.
func readAttribute(e entry) *attributeDecl {
	d := &attributeDecl{name: e.name, max: -1}
	if !e.value.isMap() {
		d.typ = e.value.word("the type of an attribute")
		d.typ.text, d.required = strings.CutSuffix(d.typ.text, "!")
		return d
	}
	f := e.value.fields("attribute")
	d.typ = f.need("type", "type: string")
	d.as, d.zone = f.word("as"), f.word("zone")
	d.required, d.hidden, d.forward = f.flag("required"), f.flag("hidden"), f.flag("forward")
	d.from, d.plus = f.word("from"), readPlus(f)
	d.def, d.enum = f.has["default"], f.words("enum")
	d.whole = f.flag("whole")
	if d.typ.text == string(TypeNumber) {
		d.least, d.most = f.has["min"], f.has["max"]
	} else {
		d.max = f.number("max", 1, 400<<10)
	}
	d.legacy, d.after, d.others, d.by = f.pairs("legacy"), f.pairs("after"), f.word("else"), f.pairs("by")
	d.pos = f.places()
	return d
}

// places returns where each key of the map stands, for messages about keys that do not go
// together.
func (f fields) places() map[string]pos {
	at := map[string]pos{}
	for k, n := range f.has {
		at[k] = n.pos()
	}
	return at
}

// pairs reads a map of names to words under a key.
func (f fields) pairs(key string) []pair {
	var out []pair
	for _, e := range f.entries(key) {
		out = append(out, e.value.textPair(f, key, e.name))
	}
	return out
}

// textPair reads the text of a name in the map under a key.
func (n node) textPair(f fields, key string, name word) pair {
	w := n.word(f.what(key))
	if w.given() && n.y.ShortTag() != "!!str" {
		f.r.report(w.pos, "put it in quotes", "%s must be a text, not %s", f.what(key), w.text)
	}
	return pair{name, w}
}

// namesOrPairs is pairs, but also accepts a list of names, each of which stands for itself.
func (f fields) namesOrPairs(key string) []pair {
	n, ok := f.has[key]
	if !ok || n.isMap() {
		return f.pairs(key)
	}
	var out []pair
	for _, w := range n.words(f.what(key)) {
		name := w
		name.text = strings.TrimSuffix(w.text, "?")
		if i := strings.IndexByte(name.text, '='); i > 0 {
			name.text = name.text[:i]
		}
		out = append(out, pair{name, w})
	}
	return out
}
