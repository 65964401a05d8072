package model

import "weir/internal/seq"

// migrationDecl declares how rows of an older form become rows of the model. The old rows
// are those of an entity, or all rows of another table.
type migrationDecl struct {
	heading `noun:"migration"`
	Rows    word
	Table   word
	Key     node `with:"table"`
	Into    node
	key     keyDecl    // of the table
	one     bool       // into is a list: the entity whose where an old row passes
	into    []*rowDecl // of each entity that old rows become
}

// check reads what excludes each other. Names are taken as they stand: whether there are such entities, tables and fields
// is for the compiler.
func (d *migrationDecl) check() {
	rows, table := d.said("rows"), d.said("table")
	switch {
	case rows && table:
		d.r.report(d.at("table"), "rows: ENTITY, or table: NAME with its key", "the old rows are those of an entity or of a table of their own, not both")
	case table && d.Key.y == nil:
		d.missing("key", "key: [PK, SK]")
	case table:
		d.key.read(d.Key, d.what("key"))
	case !rows:
		d.missing("rows", "rows: ENTITY, or table: NAME with its key")
	}
	switch n := d.Into; {
	case n.y == nil:
		d.missing("into", "into: {ENTITY: {name: field of the old row}}, or into: [ENTITY, ENTITY]")
		return
	case n.isMap():
		d.into = seq.Map(n.entries(d.what("into")), func(e entry) *rowDecl {
			return &rowDecl{deriveDecl: deriveDecl{heading: heading{name: e.name}}, Set: e.madeOf()}
		})
	default:
		d.one = true
		d.into = seq.Map(n.words(d.what("into")), func(w word) *rowDecl { return &rowDecl{deriveDecl: deriveDecl{heading: heading{name: w}}} })
	}
	if len(d.into) == 0 && d.Into.given() {
		d.Into.wrong(d.what("into"), "the entities that old rows become")
	}
}

// madeOf reads what an entity is made of. Nothing counts as an empty map.
func (e entry) madeOf() sets {
	if !e.value.given() {
		return nil
	}
	return seq.Map(e.value.entries("what "+e.name.text+" is made of"), func(in entry) setDecl {
		return setDecl{name: in.name, value: in.value.constant("the value of " + in.name.text)}
	})
}
