package model

import (
	"slices"
	"strings"

	"weir/internal/seq"
)

// compiler makes the plan out of the declarations. It reports a part that it cannot compile, and
// leaves it out or marks it broken. It silently skips parts that depend on a broken one, so one
// mistake gives one problem.
// Each part of the plan has its declaration, for the places in messages.
type compiler struct {
	*reader
	*Model
	decl  *modelDecl
	reads []reading // the fields that derivations read, in the order of the plan
	shown []*Follow // those on rows of the application, also with problems

	// recipe, if set, says how a derivation reaches rows of which its source rows say these names alone, "" for none.
	recipe func(says []string) string

	broken  map[*Entity]bool  // has a problem that makes its key unusable
	faulty  map[*RowRule]bool // something that it sets was reported
	overlap map[*Entity]bool
}

// compileModel reads the document, compiles it and runs all checks.
// It always returns a model. One with problems must not be used: parts of it may be missing or half
// made. Load returns it only if nothing was reported.
func compileModel(r *reader, root node) *Model {
	c := &compiler{
		reader: r, Model: &Model{File: r.file}, decl: &modelDecl{},
		broken: map[*Entity]bool{}, faulty: map[*RowRule]bool{}, overlap: map[*Entity]bool{},
	}
	root.readDeclaration(word{}, c.decl)
	c.Name = c.decl.Model.text
	c.compileTables()
	c.compileEntities()
	for _, t := range c.Tables {
		t.sortByKind()
	}
	c.compileReadings()
	c.compileDerive()
	c.compileMigrations()
	c.compileRules()
	c.compileSearches()
	c.compileQueries()
	c.reads = c.inputs()
	c.runChecks()
	return c.Model
}

// findEntity returns the entity that the file names. It reports an unknown name and returns
// nil; the caller need not report that again.
func (c *compiler) findEntity(w word) *Entity {
	if !w.isGiven() {
		c.flaws++
		return nil
	}
	e := c.Entity(w.text)
	if e == nil {
		c.refuseUnknown(w, seq.Map(c.Entities, func(e *Entity) string { return e.Name }), "there is no entity %q", w.text)
	}
	return e
}

// findField returns the field that the file names. It reports a name that rows of the entity do
// not have, and returns nil. It also reports a hidden one (hidden.go).
func (c *compiler) findField(e *Entity, w word) *Field { return c.fieldFor(e, w, false) }

// hasField reports whether rows of the entity have the field. That is a declared or derived
// attribute, a name in a key, or a name that the entity's where tests.
func (c *compiler) hasField(e *Entity, name string) bool {
	return slices.Contains(c.fieldNames(e), name)
}

// fieldNames lists the names that a rule may use of an entity, for hints: its attributes, those that are
// derived on it, and the names in its keys.
// The result is sorted, has each name once, and belongs to the caller. A hidden tally is not in it:
// nothing can be made from a value that no row has.
func (c *compiler) fieldNames(e *Entity) []string {
	out := append(e.attributeNames(), e.DerivedAttributes()...)
	out = append(out, seq.Map(e.Formulas, func(a *Attribute) string { return a.Name })...)
	out = append(out, seq.Flat(e.Keys, func(k *KeyTemplate) []string { return k.Template.Names() })...)
	out = append(out, seq.Map(e.Where, func(t Test) string { return t.Field.Name })...)
	return sortedOnce(out)
}

// KeyNames returns the names that an entity's primary key needs, in order.
// Names of an optional tail are not in it. The result belongs to the caller.
func (e *Entity) KeyNames() []string {
	var out []string
	for _, k := range e.PrimaryKey() {
		for _, n := range k.Template.requiredNames() {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// InputNames returns the names that a command may give: the attributes that are not computed, in the order of the file, and
// then the names that stand only in keys.
func (e *Entity) InputNames() (out []string) {
	for _, a := range e.Attributes {
		if a.Computed == nil {
			out = append(out, a.Name)
		}
	}
	for _, k := range append(e.KeyNames(), e.IndexNames()...) {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// MemberOf returns the object as whose member a command may give an attribute, and the attribute's name there. For an
// attribute that is only given by itself they are "" and its name.
func (e *Entity) MemberOf(name string) (member, rest string) {
	for _, n := range e.Nested {
		if rest, ok := strings.CutPrefix(name, n.Prefix+"."); ok {
			return n.Member, rest
		}
	}
	return "", name
}

// requiredNames returns the names outside the optional tail.
func (t *Template) requiredNames() []string {
	n := 0
	for _, p := range t.parts[:t.tail] {
		n = max(n, p.slot+1)
	}
	return t.names[:n]
}

// resolveAssigns resolves the names of a target's key. A name that is not in given takes its value
// from the source's field of the same name.
// Each name of the target's key has one entry in the result, in the order of the key. After a flaw the result may be short.
func (c *compiler) resolveAssigns(target, source *Entity, given []pair, at pos, what string) []Assign {
	return c.assignsTo(target, target.KeyNames(), source, given, at, what)
}

// checkExchanged reports a pair that has its sides exchanged: its first word is a name of the row that it is taken from alone, its second
// one a name of the row that it is for. It returns whether it did.
func (c *compiler) checkExchanged(p pair, what string, names []string, of string, fields []string, from string) bool {
	if slices.Contains(names, p.name.text) || !slices.Contains(names, p.value.text) || !slices.Contains(fields, p.name.text) {
		return false
	}
	c.addFlaw(p.name.pos, what+": {"+p.value.text+": "+p.name.text+"}", "the sides of %s: %s are exchanged: first stands %s, then the field of %s", p.name.text, p.value.text, of, from)
	return true
}

// assignsTo is resolveAssigns for the names in want, which are in the order of the result. Names that are
// given and not wanted are reported, with the nearest of those that are.
func (c *compiler) assignsTo(target *Entity, want []string, source *Entity, given []pair, at pos, what string) (out []Assign) {
	before := c.flaws
	if c.broken[target] || c.broken[source] {
		c.flaws++
	}
	values := map[string]word{}
	for _, p := range given {
		if values[p.name.text] = p.value; !c.broken[target] && !c.checkExchanged(p, what, want, "the name in the key of "+target.Name, c.fieldNames(source), source.Name) {
			c.refuseUnknown(p.name, want, "the key of %s has no name %q", target.Name, p.name.text)
		}
	}
	for _, name := range want {
		w, given := values[name]
		switch {
		case given:
		case c.flaws > before:
			continue
		case !c.hasField(source, name):
			hint := "say where it comes from: " + what + ": {" + name + ": FIELD}; " + source.Name + " has " + strings.Join(c.fieldNames(source), ", ")
			switch {
			case what != "to" || target.Derived || len(target.Values) == 0:
			case !target.decl.hasAttributes():
				hint += "; for a row for each value of a field, which weir makes, " + target.Name + ": {group: " + source.Name + ", …}"
			default:
				hint += "; if its rows do not say it, an entity of its own can count them by what they say: {group: " + source.Name + ", …}"
			}
			if c.recipe != nil {
				says := seq.Where(want, func(name string) bool { return values[name].isGiven() || c.hasField(source, name) })
				if how := c.recipe(says); how != "" && len(says) > 0 && !target.Derived {
					hint = "say where it comes from: " + what + ": {" + name + ": FIELD}. If its rows do not say it, " + how
				}
			}
			c.addFlaw(at, hint, "the key of %s needs %q, and %s has no field of that name", target.Name, name, source.Name)
			continue
		default:
			w = word{name, at}
		}
		out = append(out, Assign{name, c.compileExpr(source, w, target, name)})
	}
	return out
}
