package model

// migrationDecl declares how rows of an older form become rows of the model. The old rows
// are those of an entity, or all rows of another table.
type migrationDecl struct {
	name  word
	rows  word
	table word
	key   keyDecl
	one   bool // into is a list: the entity whose where an old row passes
	into  []makingDecl
}

// makingDecl is one entity that old rows become, and what its attributes are made of.
type makingDecl struct {
	entity word
	set    []pair
}

// readMigration reads a migration. Of two keys that exclude each other it reports one.
// Names are taken as they stand: whether there are such entities, tables and fields is for the compiler.
func readMigration(e entry) *migrationDecl {
	f := e.value.fields("migration")
	d := &migrationDecl{name: e.name, rows: f.word("rows"), table: f.word("table")}
	_, rows := f.has["rows"]
	_, table := f.has["table"]
	_, key := f.has["key"]
	switch {
	case rows && table:
		f.r.report(f.at("table"), "rows: ENTITY, or table: NAME with its key", "the old rows are those of an entity or of a table of their own, not both")
	case table:
		d.key = readKey(f)
	case key:
		f.r.report(f.at("key"), "", "\"key\" is the key of the old table, and goes with \"table\"")
	case !rows:
		f.missing("rows", "rows: ENTITY, or table: NAME with its key")
	}
	n, ok := f.has["into"]
	switch {
	case !ok:
		f.missing("into", "into: {ENTITY: {name: field of the old row}}, or into: [ENTITY, ENTITY]")
	case n.isMap():
		for _, e := range n.entries(f.what("into")) {
			d.into = append(d.into, makingDecl{e.name, e.pairs("what " + e.name.text + " is made of")})
		}
	default:
		d.one = true
		for _, w := range n.words(f.what("into")) {
			d.into = append(d.into, makingDecl{entity: w})
		}
	}
	if ok && len(d.into) == 0 && n.given() {
		n.wrong(f.what("into"), "the entities that old rows become")
	}
	return d
}

// pairs reads a map of names to words. An empty map counts as absent.
func (e entry) pairs(what string) []pair {
	if !e.value.given() {
		return nil
	}
	var out []pair
	for _, in := range e.value.entries(what) {
		out = append(out, pair{in.name, in.value.constant("the value of " + in.name.text)})
	}
	return out
}
