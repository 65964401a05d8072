package model

import (
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// keyTypes are the types of key attributes, by their words in the language.
var keyTypes = map[string]store.KeyType{"string": value.String, "number": value.Number, "binary": value.Binary}

// compileTables compiles the tables. A key attribute that the table and its indexes share must
// have one type.
func (c *compiler) compileTables() {
	for _, d := range c.decl.Tables {
		t := &Table{Table: store.Table{Name: d.name.text, TTL: d.TTL.text, Stream: true}, Images: store.NewAndOldImages, decl: d}
		if d.Stream.isGiven() { // by DynamoDB's word in small letters
			t.Images = store.Images(strings.ToUpper(strings.ReplaceAll(d.Stream.text, "-", "_")))
		}
		types := map[string]store.KeyType{}
		t.Key = c.compileSchema(d.Key, types)
		for _, ix := range d.Indexes {
			t.Indexes = append(t.Indexes, store.Index{Name: ix.name.text, Key: c.compileSchema(ix.Key, types), Local: ix.Local, KeysOnly: ix.Projection.text == "keys"})
		}
		c.Tables = append(c.Tables, t)
	}
}

// compileSchema compiles a key with its types. An attribute has one type in all keys of a table.
func (c *compiler) compileSchema(d keyDecl, types map[string]store.KeyType) store.KeySchema {
	var parts [2]store.KeyAttr
	for i, p := range d.parts {
		typ := value.String
		if p.typ.isGiven() && !c.refuseUnknown(p.typ, keyTypeNames, "a key attribute cannot be %q", p.typ.text) {
			typ = keyTypes[p.typ.text]
		}
		if have, ok := types[p.name.text]; ok && have != typ {
			c.addFlaw(p.name.pos, "write {"+p.name.text+": "+have.String()+"}", "%q is a %s in one key and a %s here", p.name.text, have, typ)
		}
		types[p.name.text] = typ
		parts[i] = store.KeyAttr{Name: p.name.text, Type: typ}
	}
	if len(d.parts) == 2 && parts[0].Name == parts[1].Name {
		c.addFlaw(d.parts[1].name.pos, "", "%q is the partition and the sort key", parts[1].Name)
		parts[1] = store.KeyAttr{}
	}
	return store.KeySchema{Partition: parts[0], Sort: parts[1]}
}
