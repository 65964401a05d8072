package model

import (
	"slices"
	"strings"
)

// kind is one kind of derivation in the language. Each kind has its own file with its part
// of the plan, the code that reads and compiles its declaration, and its checks.
type kind struct {
	shape   string   // name in shapes of the keys that a declaration may have
	keys    []string // the keys that identify the kind
	read    func(*deriveDecl, fields)
	declare func(c *compiler, d *deriveDecl, e *Entity) // first pass: what the derivation makes
	compile func(*compiler)                             // second pass: what each is made from
	checks  []func(*compiler)
}

// kinds lists all kinds. A declaration that has keys of two kinds belongs to the first.
var kinds = []*kind{&copyKind, &groupKind, &tallyKind, &statusKind, &latestKind}

// deriveDecl is one derivation: "Entity.attribute" with a tally or steps, or
// "Entity", "Entity(label)" with a row rule.
type deriveDecl struct {
	name   word
	entity word
	attr   word // of "Entity.attribute"
	kind   *kind
	tally  *tallyDecl
	row    *rowDecl
	group  *groupDecl
	steps  *stepsDecl
	latest *latestDecl
}

// readDerive reads an entry of derive. Its keys say which kind it is; the kind reads the rest.
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

// split parses the derivation's name. It reports a name that does not fit the kind.
func (d *deriveDecl) split(r *reader, shape string) bool {
	d.entity = d.name
	if shape == groupKind.shape {
		if !entityName.MatchString(d.name.text) {
			r.report(d.name.pos, "Revenue", "a group is named by the entity of its rows, not %q", d.name.text)
		}
		return entityName.MatchString(d.name.text)
	}
	if shape != copyKind.shape {
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

// compileDerive compiles the derivations in two passes. The first declares them all, so
// that a derivation can use what another one derives; the second compiles each.
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
