package model

import (
	"slices"
	"strings"

	"weir/internal/value"
)

// checkRules reports rules for commands on an entity whose rows only weir writes.
func checkRules(c *compiler, e *Entity) {
	d := e.decl
	if !e.Derived {
		if o := e.Once; o != nil && (o.Of.Derived || o.Of == e) {
			c.addFlaw(d.Once.Of.pos, "", "%s cannot be where the keys of %s are kept: commands do not write it", o.Of.Name, e.Name)
		}
		return
	}
	for _, key := range []string{"unique", "new", "flatten", "once", "supersede"} {
		if d.hasKey(key) {
			c.addFlaw(d.placeOf(key), "leave it out", "%q is for rows that commands write, and weir makes those of %s", key, e.Name)
		}
	}
}

// checkUniqueFields reports a unique field that cannot be enforced. It needs an index that
// finds the rows with a value, because rows may also be written without commands.
// The index is read before a claim is given (package ingest). Without one, a value that a replayed
// or foreign row has would be given away a second time.
func checkUniqueFields(c *compiler, e *Entity) {
	reportTwice(c, e.decl.Unique)
	for _, u := range e.Unique {
		at := placeOf(e.decl.Unique, u.Field.Name, e.decl.name.pos)
		switch {
		case u.Field.Formula != nil:
			c.addFlaw(at, "leave it out", "%s is computed when it is read, and a unique value is an attribute of the row", u.Field.Name)
		case slices.Contains(e.IndexNames(), u.Field.Name):
			c.addFlaw(at, "attributes: {"+u.Field.Name+": string}", "%s stands only in the key of an index, and a unique value is an attribute", u.Field.Name)
		case u.Field.Key != nil || e.keyNamed(u.Field.Name) != nil:
			c.addFlaw(at, "leave it out", "%s is in the key of %s, and rows have different keys anyway", u.Field.Name, e.Name)
		case u.Index == nil:
			c.addFlaw(at, "an index whose key begins with {"+u.Field.Name+"}", "no index finds the row of %s that has a value of %s already", e.Name, u.Field.Name)
		}
	}
}

// checkNew reports a generated value that does not fit its attribute, or that competes with
// a default.
func checkNew(c *compiler, e *Entity) {
	for _, p := range e.decl.New {
		if e.HasFormula(p.name.text) {
			c.addFlaw(p.name.pos, "leave it out", "%s is computed when it is read, and no row has it", p.name.text)
			continue
		}
		want := map[string]Type{NewID: TypeString, NewTime: TypeTime}[p.value.text]
		a, f := e.Attribute(p.name.text), e.Field(p.name.text)
		is := f.Type
		switch {
		case a != nil:
			is = a.Type
		case f.Key != nil: // any text
			is = TypeAny
		}
		if want != "" && is != want && is != TypeAny {
			c.addFlaw(p.value.pos, "", "%s is a %s, and %s makes a %s", p.name.text, is, p.value.text, want)
		}
		if a != nil && !a.Default.IsMissing() {
			c.addFlaw(p.name.pos, "leave one of them out", "%s has a default too", a.Name)
		}
	}
}

// checkNested reports a flattened member that is also an attribute, or whose prefix no
// attribute has.
func checkNested(c *compiler, e *Entity) {
	for _, p := range e.decl.Flatten {
		if e.Attribute(p.name.text) != nil {
			c.addFlaw(p.name.pos, "leave one of them out", "%q is an attribute of %s too", p.name.text, e.Name)
		}
		if p.value.isGiven() && !slices.ContainsFunc(e.Attributes, func(a *Attribute) bool { return strings.HasPrefix(a.Name, p.value.text+".") }) {
			c.addFlaw(p.value.pos, "attributes: {"+p.value.text+".name: string}", "%s has no attribute that begins with %s.", e.Name, p.value.text)
		}
	}
}

// checkSupersede reports a row that could supersede itself, and a list or a time of the
// wrong type.
func checkSupersede(c *compiler, e *Entity) {
	s := e.Supersede
	if s == nil {
		return
	}
	d := e.decl.Supersede
	if s.List.Type != TypeList {
		c.addFlaw(d.Append[0].name.pos, "", "%s is a %s, and times are appended to a list", s.List.Name, s.List.Type)
	}
	for i, o := range s.Other {
		differs := slices.ContainsFunc(s.Where, func(t Test) bool {
			return t.Field.Name == o.Name && !t.Is.Holds(o.Expr.Const)
		})
		if !differs {
			c.addFlaw(d.Row[i].name.pos, "where: {"+o.Name+": another word}", "a row that has %s %s already would supersede itself", o.Name, value.Scalar(o.Expr.Const))
		}
	}
}

// checkComputed reports a computed attribute that is not a number from a time that commands
// write, and a default by words where it cannot work.
// Computed attributes are written by commands alone: weir does not compute them on rows that others
// write.
func (c *compiler) checkComputed(e *Entity, a *Attribute) {
	d := a.decl
	if by := a.Defaults; by != nil && (a.Required || by.By == a || by.By.Defaults != nil || by.By.Computed != nil || slices.Contains(e.KeyNames(), a.Name)) {
		c.addFlaw(d.placeOf("default"), "", "a default by words is for what is neither required nor in a key, and by an attribute that is written itself")
	}
	if a.Computed == nil {
		return
	}
	if a.Required || !a.Default.IsMissing() || a.Defaults != nil {
		c.addFlaw(d.name.pos, "leave it out", "%s is computed, so it is neither required nor has a default", a.Name)
	}
	for _, name := range a.Computed.From.Names() {
		if _, late := e.takenField(name); late && e.Attribute(name) == nil && !e.Derived {
			c.addFlaw(d.From.pos, "name a time that commands give", "%s.%s is computed when a command writes the row, and %s shows a value of another row, which comes later", e.Name, a.Name, name)
		}
	}
	if by := a.Computed.By; by != nil {
		for _, w := range by.words() {
			if _, said := a.Computed.Each[w]; !said {
				c.addFlaw(d.Plus.pos(), w+": 24h", "how much later is not said for %s %s", by.Name, w)
			}
		}
	}
}
