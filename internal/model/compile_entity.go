package model

import (
	"slices"
	"strings"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// compileEntities compiles the entities before anything that refers to one. An entity with a
// fault is marked as broken; rules that refer to it are not checked, so that one mistake has
// one message.
// Entities keep the order of the file, which decides the order of everything that is derived from them.
func (c *compiler) compileEntities() {
	for _, d := range c.decl.Entities {
		e := &Entity{Name: d.name.text, Left: &Left{}, decl: d}
		c.Entities = append(c.Entities, e)
		c.compileTable(e, d)
		for _, a := range seq.Map(d.Attributes, c.compileAttribute) {
			if a.Is != "" {
				e.Formulas = append(e.Formulas, a)
			} else {
				e.Attributes = append(e.Attributes, a)
			}
		}
		c.hideComputed(e)
		c.compileKeys(e, d)
		e.Where = c.compileTests(e, d.Where, true)
		if d.Expires.isGiven() {
			e.Expires = checkType(c, d, "expires", d.Expires, c.findField(e, d.Expires))
		}
	}
}

// compileTable sets the entity's table. A broken entity gets an otherwise empty table, so that its
// methods work.
// The model's only table need not be named.
func (c *compiler) compileTable(e *Entity, d *entityDecl) {
	known := seq.Map(c.Tables, func(t *Table) string { return t.Name })
	switch {
	case d.Table.isGiven():
		if e.Table = c.Table(d.Table.text); e.Table == nil {
			c.refuseUnknown(d.Table, known, "there is no table %q", d.Table.text)
		}
	case len(c.Tables) == 1:
		e.Table = c.Tables[0]
	case len(c.Tables) > 1:
		c.addFlaw(d.name.pos, "table: "+strings.Join(known, " | "), "%s does not say which table it is in", e.Name)
	}
	if e.Table == nil || e.Table.Key.Partition.Name == "" {
		e.Table = &Table{}
		c.broken[e] = true
		return
	}
	e.Table.Entities = append(e.Table.Entities, e)
}

// compileAttribute compiles an attribute by itself. References to other attributes follow once all are known.
func (c *compiler) compileAttribute(d *attributeDecl) *Attribute {
	a := &Attribute{decl: d, Name: d.name.text, Type: TypeAny, Required: d.Required, Hidden: d.Hidden, Forward: d.Forward, Max: max(d.maxLength, 0), Is: strings.Join(strings.Fields(d.Is.text), " "), In: d.In.text, Enum: seq.Map(d.Enum, func(w word) string { return w.text })}
	if d.Type.isGiven() && !c.refuseUnknown(d.Type, types, "there is no type %q", d.Type.text) {
		a.Type = Type(d.Type.text)
	}
	c.compileForm(a, d)
	a.Least, a.Most = c.compileBound(a, d.Min), c.compileBound(a, d.Max)
	if d.Default.y != nil && !d.Default.isMap() {
		a.Default = c.defaultOf(a, d.Default)
	}
	return a
}

// hideComputed hides the attributes that are computed from hidden ones.
func (c *compiler) hideComputed(e *Entity) {
	for _, a := range e.Formulas {
		for _, w := range strings.Fields(a.Is) {
			_, root, _, _ := e.cutPath(w)
			a.Hidden = a.Hidden || e.Hides(root)
		}
	}
}

// compileBound returns a limit of a number attribute, Missing for none.
func (c *compiler) compileBound(a *Attribute, n node) (v value.Value) {
	if n.y != nil {
		v = c.readTyped(&Field{Name: a.Name, Type: a.Type}, nil, n)
	}
	return v
}

// compileKeys compiles the templates of the table's key and of its indexes' keys. A key attribute
// that is itself a declared attribute needs no template.
// A key of an index for which the entity has no template leaves its rows out of that index:
// DynamoDB's indexes are sparse.
func (c *compiler) compileKeys(e *Entity, d *entityDecl) {
	attrs := e.Table.KeyAttrs()
	if len(attrs) == 0 { // of a broken entity
		attrs = make([]store.KeyAttr, 1)
	}
	known := seq.Map(attrs, func(a store.KeyAttr) string { return a.Name })
	for _, k := range d.Key {
		if !c.broken[e] {
			c.refuseUnknown(k.name, known, "%q is no key attribute of table %s", k.name.text, e.Table.Name)
		}
	}
	for i, a := range attrs {
		primary := a.Name == e.Table.Key.Partition.Name || a.Name == e.Table.Key.Sort.Name
		given := d.templateOf(a.Name)
		t := c.findTemplate(e, a.Name, given, primary)
		if t == nil && primary {
			if given == nil && !c.broken[e] {
				c.addFlaw(d.name.pos, "key: {"+a.Name+": \"...#{name}\"}, or declare the attribute "+a.Name, "the key of %s has no %q", e.Name, a.Name)
			}
			c.broken[e] = true
			t = singleName("?" + a.Name)
		}
		if t != nil {
			e.Keys = append(e.Keys, &KeyTemplate{Attr: attrs[i], Template: t})
		}
	}
}

// findTemplate returns the template that the file gives for a key attribute. If the entity
// declares that attribute itself, it returns the template that consists of its name. It
// returns nil if there is neither.
// A name that only the where tests serves as a key of an index too, since every row of the entity
// has it.
func (c *compiler) findTemplate(e *Entity, attr string, d *keyTemplateDecl, primary bool) *Template {
	if d == nil {
		tested := !primary && slices.ContainsFunc(e.decl.Where, func(t testDecl) bool { return t.name.text == attr })
		if e.Attribute(attr) == nil && !tested {
			return nil
		}
		return singleName(attr)
	}
	w := d.Template
	if !w.isGiven() {
		return nil
	}
	if len(w.text) > maxTemplate {
		c.addFlaw(w.pos, "", "a template has at most %d bytes", maxTemplate)
		c.broken[e] = true
		return nil
	}
	t, err := ParseTemplate(w.text)
	if err != nil {
		c.addFlaw(w.pos, "", "%v", err)
		c.broken[e] = true
		return nil
	}
	switch as := d.Case; {
	case !as.isGiven():
	case t.Whole():
		c.addFlaw(as.pos, "leave case out", "the key %s is the value of %s, with its case", attr, t.names[0])
	default:
		t.lowerCase()
	}
	return t
}

// maxTemplate is the longest template, in bytes. A key is limited too, but by its values.
const maxTemplate = 512

// singleName returns the template that is one name and nothing else.
func singleName(name string) *Template {
	return &Template{text: "{" + name + "}", parts: []part{{slot: 0}}, tail: 1, names: []string{name}}
}

// readTyped returns a value of the file in the form in which rows hold that field.
// YAML types decide where the field has none: 5 is a number and "5" a text. A text field takes
// texts alone, so that 007 is not taken for 7. After a problem the value is Missing.
func (c *compiler) readTyped(f *Field, a *Attribute, n node) value.Value {
	if !n.isGiven() || n.isMap() || n.isList() {
		n.reportWrong("a value of "+f.Name, "a text, a number, true or false")
		return value.Value{}
	}
	tag, typ := n.y.ShortTag(), f.Type
	if typ == TypeAny {
		typ = map[string]Type{"!!int": TypeNumber, "!!float": TypeNumber, "!!bool": TypeBoolean}[tag]
	}
	text := n.y.Value
	if tag == "!!bool" {
		text = strings.ToLower(text)
	}
	isText := tag == "!!str" || tag == "!!timestamp"
	switch {
	case (typ == TypeString || typ == TypeTime || typ == "") && !isText:
		c.addFlaw(n.pos(), "put it in quotes", "%s is a %s, %s is not", f.Name, f.Type, n.y.Value)
	case typ == TypeNumber && isText || typ == TypeBoolean && tag != "!!bool":
		c.addFlaw(n.pos(), "", "%s is a %s, %q is not", f.Name, f.Type, n.y.Value)
	default:
		return c.fromText(f.Name, typ, a, word{text, n.pos()})
	}
	return value.Value{}
}
