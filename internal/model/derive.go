package model

import (
	"slices"
	"strings"
)

// kind is one kind of derivation in the language. Each has a file of its own, with its
// part of the plan, how its declaration is read and compiled, and its checks.
type kind struct {
	shape   string   // the keys that its declaration may have, see shapes
	keys    []string // those by which it is known
	read    func(*deriveDecl, fields)
	declare func(c *compiler, d *deriveDecl, e *Entity) // says what there is
	compile func(*compiler)                             // says what each is made of
	checks  []func(*compiler)
}

// kinds are all there are. A declaration with keys of two is one of the first.
var kinds = []*kind{&copyKind, &tallyKind, &statusKind}

// deriveDecl is one derivation: "Entity.attribute" with a tally or steps, or
// "Entity", "Entity(label)" with a row rule.
type deriveDecl struct {
	name   word
	entity word
	attr   word // of "Entity.attribute"
	kind   *kind
	tally  *tallyDecl
	row    *rowDecl
	steps  *stepsDecl
}

func readDerive(e entry) *deriveDecl {
	d := &deriveDecl{name: e.name}
	var names []string
	for _, in := range e.value.entries("a derivation") {
		names = append(names, in.name.text)
	}
	for _, k := range kinds {
		if slices.ContainsFunc(k.keys, func(key string) bool { return slices.Contains(names, key) }) {
			if d.split(e.value.r, k.shape) {
				d.kind = k
				k.read(d, e.value.fields(k.shape))
				return d
			}
			return nil
		}
	}
	if e.value.isMap() {
		var known []string
		for _, k := range kinds {
			known = append(known, k.keys...)
		}
		e.value.r.report(e.name.pos, "one of "+strings.Join(known, ", "), "%q does not say what it derives", e.name.text)
	}
	return nil
}

// split takes the name apart; it reports a name that does not fit the kind.
func (d *deriveDecl) split(r *reader, shape string) bool {
	d.entity = d.name
	if shape != "row rule" {
		entity, attr, ok := strings.Cut(d.name.text, ".")
		d.entity.text = entity
		d.attr = word{attr, pos{d.name.line, d.name.column + len(entity) + 1}}
		if !ok || entity == "" || attr == "" {
			r.report(d.name.pos, "Album.mediaCount", "%s is named by the entity and the attribute it is kept in, not %q", article(shape), d.name.text)
			return false
		}
		return true
	}
	entity, label, labelled := strings.Cut(d.name.text, "(")
	d.entity.text = entity
	if name, ok := strings.CutSuffix(label, ")"); entity == "" || strings.Contains(entity, ".") || labelled && (!ok || !identifier.MatchString(name)) {
		r.report(d.name.pos, "Activity, or Activity(created)", "a row rule is named by the entity it makes, not %q", d.name.text)
		return false
	}
	return true
}

// compileDerive works in two rounds: first what there is, so that a derivation may
// name what another one derives, then what each is made of.
func (c *compiler) compileDerive() {
	for _, d := range c.decl.derive {
		if e := c.entity(d.entity); e != nil {
			d.kind.declare(c, d, e)
		}
	}
	for _, k := range kinds {
		k.compile(c)
	}
}
