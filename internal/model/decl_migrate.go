package model

import "weir/internal/seq"

// migrationDecl declares how rows of an older form become rows of the model. The old rows
// are those of an entity, or all rows of another table.
type migrationDecl struct {
	// Old rows, and what they become, while applications go on writing both. What a row of the new form has under the name of
	// a field of the old row it takes from there.
	heading `noun:"migration" either:"rows table" or:"rows: ENTITY, or table: NAME with its key"`
	// The entity that old rows are.
	Rows word
	// A table that is only migrated from: all its rows, whatever their attributes.
	Table word `name:"table"`
	// [partition] or [partition, sort] of that table.
	Key keyDecl `with:"table" need:"key: [PK, SK]"`
	// [entities]: the one whose where an old row passes. {entity: {name: field of the old row, or =text}}: each of them. One
	// at the old row's own key takes its place.
	Into becomes `need:"into: {ENTITY: {name: field of the old row}}, or into: [ENTITY, ENTITY]"`
}

// becomes are the entities that old rows become, in the order of the file.
type becomes struct {
	one   bool // the entity whose where an old row passes
	rules []*rowDecl
}

// read takes names as they stand: whether there are such entities and fields is for the compiler.
func (b *becomes) read(n node, what string) {
	if b.one = !n.isMap(); b.one {
		b.rules = seq.Map(n.readWords(what), func(w word) *rowDecl { return &rowDecl{deriveDecl: deriveDecl{heading: heading{name: w}}} })
		return
	}
	b.rules = seq.Map(n.readEntries(what), func(e entry) *rowDecl {
		return &rowDecl{deriveDecl: deriveDecl{heading: heading{name: e.name}}, Set: e.madeOf()}
	})
}

// madeOf reads the parts of an entity. Nothing counts as an empty map.
func (e entry) madeOf() sets {
	if !e.value.isGiven() {
		return nil
	}
	return seq.Map(e.value.readEntries("what "+e.name.text+" is made of"), func(in entry) setDecl {
		return setDecl{name: in.name, value: in.value.readConstant("the value of " + in.name.text)}
	})
}
