package model

import (
	"slices"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// keyTypes are the types of key attributes, by their words in the language.
var keyTypes = map[string]store.KeyType{"string": value.String, "number": value.Number, "binary": value.Binary}

// reserved reports whether an attribute name is weir's own.
func reserved(name string) bool { return name == "weir" || strings.HasPrefix(name, "weir.") }

// compileTables compiles the tables. A key attribute that the table and its indexes share must
// have one type.
func (c *compiler) compileTables() {
	for _, d := range c.decl.Tables {
		t := &Table{Table: store.Table{Name: d.name.text, TTL: d.TTL.text, Stream: true}, OldImage: true, decl: d}
		types := map[string]store.KeyType{}
		t.Key = c.schema(d.Key, types)
		for _, ix := range d.Indexes {
			t.Indexes = append(t.Indexes, c.index(ix, types))
		}
		c.stream(t, d.Stream)
		c.Tables = append(c.Tables, t)
	}
}

// stream sets which images the table's stream has. What derives from an old image is refused
// later if there is none.
// A keys-only stream has neither image, and a new-image stream no old one.
func (c *compiler) stream(t *Table, w word) {
	switch {
	case !w.given() || w.text == streams[0]:
	case slices.Contains(streams, w.text):
		t.OldImage, t.KeysOnly = false, w.text == "keys-only"
	default:
		c.unknown(w, streams, "there is no stream of %q", w.text)
	}
}

// schema compiles a key with its types. An attribute has one type in all keys of a table.
func (c *compiler) schema(d keyDecl, types map[string]store.KeyType) store.KeySchema {
	var parts [2]store.KeyAttr
	for i, p := range d.parts {
		typ := value.String
		if p.typ.given() {
			known, ok := keyTypes[p.typ.text]
			if !ok {
				c.unknown(p.typ, keyTypeNames, "a key attribute cannot be %q", p.typ.text)
				known = typ
			}
			typ = known
		}
		c.attributeName(p.name)
		if have, ok := types[p.name.text]; ok && have != typ {
			c.report(p.name.pos, "write {"+p.name.text+": "+have.String()+"}", "%q is a %s in one key and a %s here", p.name.text, have, typ)
		}
		types[p.name.text] = typ
		parts[i] = store.KeyAttr{Name: p.name.text, Type: typ}
	}
	if len(d.parts) == 2 && parts[0].Name == parts[1].Name {
		c.report(d.parts[1].name.pos, "", "%q is the partition and the sort key", parts[1].Name)
		parts[1] = store.KeyAttr{}
	}
	return store.KeySchema{Partition: parts[0], Sort: parts[1]}
}

// index compiles an index. It holds whole rows unless the file says that it holds keys alone.
func (c *compiler) index(d *indexDecl, types map[string]store.KeyType) store.Index {
	ix := store.Index{Name: d.name.text, Key: c.schema(d.Key, types), Local: d.Local}
	switch {
	case d.Projection.text == "keys":
		ix.KeysOnly = true
	case d.Projection.given() && d.Projection.text != "all":
		c.unknown(d.Projection, projections, "there is no projection %q", d.Projection.text)
	}
	return ix
}

// attributeName reports a name that is not allowed for an attribute.
func (c *compiler) attributeName(w word) {
	switch {
	case reserved(w.text):
		c.report(w.pos, "choose another name", "%q is reserved: weir keeps its own mark there", w.text)
	case strings.ContainsAny(w.text, "{}[]=?$ \t\n") || len(w.text) > 255:
		c.report(w.pos, "", "%.60q cannot be the name of an attribute: {}[]=?$ and blanks mean something else here, and 255 bytes are the limit", w.text)
	}
}
