package model

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// compileRules compiles the rules that entities and attributes declare for commands. Call
// it once all entities are known.
func (c *compiler) compileRules() {
	for _, e := range c.Entities {
		d := e.decl
		for _, a := range e.Attributes {
			c.compileComputed(e, a)
			c.compileDefaults(e, a)
		}
		for _, w := range d.Unique {
			if f := checkType(c, d, "unique", w, c.findField(e, w)); f != nil {
				e.Unique = append(e.Unique, &Unique{Field: f, Index: c.indexOf(e, f)})
			}
		}
		for _, p := range d.New {
			if c.fieldFor(e, p.name, true) != nil {
				e.New = append(e.New, New{p.name.text, p.value.text})
			}
		}
		e.Nested = seq.Map(d.Flatten, func(p pair) Nested { return Nested{p.name.text, p.value.text} })
		if d.Once != nil {
			e.Once = c.onceOf(e, d.Once)
		}
		if d.Supersede != nil {
			e.Supersede = c.compileSupersede(e, d.Supersede)
		}
	}
}

// compileComputed compiles {from, plus} of an attribute. It leaves the attribute as it is if a field of it
// does not exist.
func (c *compiler) compileComputed(e *Entity, a *Attribute) {
	d := a.decl
	if !d.From.isGiven() {
		return
	}
	f := c.fieldFor(e, d.From, a.Hidden)
	if of := e.Attribute(d.From.text); f != nil && of != nil && e.Derived && e.Group == nil { // its key may have it too, as text
		f = &Field{Name: of.Name, Type: of.Type, Attr: of.Name, Declared: of}
	}
	if e.Group == nil {
		f = checkType(c, d, "from", d.From, f)
	}
	if f == nil {
		return
	}
	out := &Computed{From: f}
	if e.Group != nil {
		if out.Bucket = c.bucketOf(e.Group, d.From); out.Bucket == nil {
			return
		}
	}
	switch p := d.Plus; {
	case p.isMap():
		const form = "a duration like 24h, or {ATTRIBUTE: {WORD: 24h}}"
		if out.By, out.Each = byWords(c, e, a, p, d.describeKey("plus"), form, c.parseDuration); out.By == nil {
			return
		}
	case p.y != nil:
		out.Plus = c.parseDuration(p)
	}
	a.Computed = out
}

// bucketOf returns the part of the calendar that a name in the key of a group's row is, nil after a problem.
func (c *compiler) bucketOf(g *Group, w word) (out *Bucket) {
	for _, of := range g.decl.Group {
		source, sound := g.decl.sources[c.Entity(of.text)]
		i := slices.IndexFunc(source.To, func(a Assign) bool { return a.Name == w.text && a.Expr.Bucket != nil })
		switch {
		case !sound:
			return nil
		case i < 0:
			c.addFlaw(w.pos, "name one that is, as with by: {day: {day: FIELD}}", "%s is not a part of the calendar in the key of %s, so nothing says when a row of it expires", w.text, g.Into.Name)
			return nil
		}
		out = source.To[i].Expr.Bucket
	}
	return out
}

// compileDefaults compiles a default of the form {ATTRIBUTE: {WORD: VALUE}}.
func (c *compiler) compileDefaults(e *Entity, a *Attribute) {
	n := a.decl.Default
	if !n.isMap() {
		return
	}
	const form = "a value, or {ATTRIBUTE: {WORD: VALUE}}"
	by, each := byWords(c, e, a, n, "a default by words of another attribute", form, func(n node) value.Value { return c.defaultOf(a, n) })
	if by != nil {
		a.Defaults = &Defaults{By: by, Each: each}
	}
}

// byWords compiles {ATTRIBUTE: {WORD: VALUE}}, which gives an attribute a value by the word that the row has in another one.
// It returns nil after a problem.
func byWords[T any](c *compiler, e *Entity, a *Attribute, n node, what, form string, read func(node) T) (*Attribute, map[string]T) {
	entries := n.readEntries(what)
	if len(entries) != 1 || !entries[0].value.isMap() {
		n.reportWrong(what, form)
		return nil, nil
	}
	by := c.attributeOf(e, entries[0].name)
	if by == nil {
		return nil, nil
	}
	if !a.Hidden {
		c.checkHidden(e, entries[0].name)
	}
	each := map[string]T{}
	if len(by.words()) == 0 {
		c.addFlaw(entries[0].name.pos, by.Name+": {type: string, enum: [WORD, …]}", "%s has no enum, so its words are not known", by.Name)
		return by, each
	}
	for _, w := range entries[0].value.readEntries(what) {
		if !c.refuseUnknown(w.name, by.words(), "%s is never %q", by.Name, w.name.text) {
			each[w.name.text] = read(w.value)
		}
	}
	return by, each
}

// words are the only values of an attribute, as texts; nil for any.
func (a *Attribute) words() []string {
	if a.Type == TypeBoolean || a.Type == TypeFlag {
		return []string{"true", "false"}
	}
	return a.Enum
}

// parseDuration parses a duration in whole seconds: times in DynamoDB's TTL have no smaller unit.
func (c *compiler) parseDuration(n node) time.Duration {
	w := n.readWord("a duration")
	d, err := time.ParseDuration(w.text)
	if w.isGiven() && (err != nil || d < 0 || d%time.Second != 0) {
		hint := "like 24h, or 30m"
		if days, err := strconv.Atoi(strings.TrimSuffix(w.text, "d")); err == nil && days > 0 && strings.HasSuffix(w.text, "d") {
			hint = strconv.Itoa(24*days) + "h"
		}
		c.addFlaw(w.pos, hint, "%q is no duration in whole seconds", w.text)
	}
	return d
}

// indexOf returns an index that finds rows by this field alone, nil for none.
// A local index is no help: it needs the partition key, which a unique value does not tell.
func (c *compiler) indexOf(e *Entity, f *Field) (found *store.Index) {
	return seq.At(e.Table.Indexes, func(ix *store.Index) bool { return !ix.Local && e.findsBy(ix, f.Name) })
}

// onceOf compiles where idempotency keys are kept, nil after a problem. The row with the key must
// lead back to the row that was made, so its key names have to be in it.
func (c *compiler) onceOf(e *Entity, d *onceDecl) *Once {
	before, of := c.flaws, c.findEntity(d.Of)
	if of == nil || !d.Key.isGiven() {
		return nil
	}
	o := &Once{Of: of, Key: c.attributeOf(e, d.Key)}
	given := map[string]word{}
	for _, p := range d.Set {
		given[p.name.text] = p.value
		c.fieldFor(of, p.name, true)
	}
	for _, name := range sortedOnce(slices.Concat(of.attributeNames(), of.KeyNames(), of.IndexNames())) {
		w, ok := given[name]
		switch {
		case ok:
		case c.hasField(e, name):
			w = word{name, d.Of.pos}
		case slices.Contains(of.KeyNames(), name):
			c.addFlaw(d.Of.pos, "set: {"+name+": FIELD}", "the key of %s needs %q, and %s has no field of that name", of.Name, name, e.Name)
			continue
		default:
			continue
		}
		o.Set = append(o.Set, Assign{name, c.compileExpr(e, w, of, name)})
	}
	if c.flaws > before || !c.onceNames(e, o, d) {
		return nil
	}
	return o
}

// onceNames compiles how the row with the idempotency key is made from the new row, and how
// it leads back to it. It reports false after a problem.
func (c *compiler) onceNames(e *Entity, o *Once, d *onceDecl) bool {
	inKey := func(a Assign) bool {
		return a.Expr.Field != nil && a.Expr.Field.Name == o.Key.Name && slices.Contains(o.Of.KeyNames(), a.Name)
	}
	if !slices.ContainsFunc(o.Set, inKey) {
		c.addFlaw(d.Key.pos, "", "the key of %s does not hold %s, so two keys would be one", o.Of.Name, o.Key.Name)
		return false
	}
	for _, name := range e.KeyNames() {
		i := slices.IndexFunc(o.Set, func(a Assign) bool { return a.Expr.Field != nil && a.Expr.Field.Name == name })
		if i < 0 {
			c.addFlaw(d.Of.pos, "set: {FIELD: "+name+"}", "a row of %s does not say %q, so it does not lead to the row of %s", o.Of.Name, name, e.Name)
			return false
		}
		o.Row = append(o.Row, Assign{name, Expr{Field: o.Of.Field(o.Set[i].Name)}})
	}
	return true
}

// compileSupersede compiles a supersede, nil after a problem. The row that is replaced is named by key
// names alone, so it is found without a read of others.
func (c *compiler) compileSupersede(e *Entity, d *supersedeDecl) *Supersede {
	s := &Supersede{Where: c.compileTests(e, d.Where, false)}
	before := c.flaws
	for _, p := range d.Row {
		if !c.refuseUnknown(p.name, e.KeyNames(), "the key of %s has no name %q", e.Name, p.name.text) {
			v := c.fromText(p.name.text, e.Field(p.name.text).Type, e.Attribute(p.name.text), p.value)
			s.Other = append(s.Other, Assign{p.name.text, Expr{Const: v}})
		}
	}
	for _, p := range d.Append {
		s.List = c.attributeOf(e, p.name)
		s.Time = checkType(c, d, "append", p.value, c.fieldFor(e, p.value, e.Hides(p.name.text)))
	}
	if c.flaws > before || len(d.Append) != 1 || len(s.Where) == 0 || len(s.Other) == 0 {
		return nil
	}
	return s
}
