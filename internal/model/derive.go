package model

import (
	"reflect"
	"slices"
	"strings"

	"weir/internal/seq"
)

// kind is one kind of derivation in the language. Each kind has its own file with its part
// of the plan, its declaration with the code that compiles it, and its checks.
type kind struct {
	keys    []string          // the keys that identify the kind
	declare func() derivation // an empty declaration
	compile func(*compiler)   // second pass: the rows that each is made from
	check   func(*compiler)   // reports mistakes
}

// kinds lists all kinds. A declaration that has keys of two kinds belongs to the first.
var kinds = []*kind{&followKind, &copyKind, &groupKind, &tallyKind, &statusKind, &latestKind}

// derivation is the declaration of a kind.
type derivation interface {
	declaration
	split(r *reader, what string) bool // parses the name; false if it does not fit the declaration, which it reports
	target() word                      // the entity in the name
	enter(c *compiler, e *Entity)      // first pass: enters the rows or values that the derivation makes
}

// derivations are the declarations under derive, in the order of the file. Their keys say of which kind they are.
type derivations []derivation

func (list *derivations) read(n node, what string) {
	for _, e := range n.readEntries(what) {
		keys := seq.Map(e.value.readEntries("a derivation"), func(in entry) string { return in.name.text })
		k := seq.Find(kinds, func(k *kind) bool {
			return slices.ContainsFunc(k.keys, func(key string) bool { return slices.Contains(keys, key) })
		})
		switch {
		case k != nil:
			d := k.declare()
			if d.head().name = e.name; d.split(n.r, withArticle(nounOf(reflect.TypeOf(d).Elem()))) {
				e.value.readDeclaration(e.name, d)
				*list = append(*list, d)
			}
		case e.value.isMap():
			known := seq.Flat(kinds, func(k *kind) []string { return k.keys })
			hint := "one of " + strings.Join(known, ", ")
			for _, key := range keys {
				if ask := didYouMean(key, known); ask != "" {
					hint = ask
					break
				}
			}
			n.r.addFlaw(e.name.pos, hint, "%q does not say what it derives", e.name.text)
		}
	}
}

// deriveDecl begins a declaration whose name is "Entity.attribute".
type deriveDecl struct {
	heading
	entity word
	attr   word
}

func (d *deriveDecl) target() word { return d.entity }

func (d *deriveDecl) split(r *reader, what string) bool {
	entity, attr, ok := strings.Cut(d.name.text, ".")
	d.entity, d.attr = word{entity, d.name.pos}, word{attr, pos{d.name.line, d.name.column + len(entity) + 1}}
	if ok = ok && entity != "" && attr != ""; !ok {
		r.addFlaw(d.name.pos, "Album.mediaCount", "%s is named by the entity and the attribute it is kept in, not %q", what, d.name.text)
	}
	r.checkName("attribute", d.attr)
	return ok
}

// compileDerive compiles the derivations in two passes. The first enters them all, so
// that a derivation can use the value of another one; the second compiles each.
func (c *compiler) compileDerive() {
	for _, d := range c.decl.Derive {
		if e := c.findEntity(d.target()); e != nil {
			d.enter(c, e)
		}
	}
	for _, k := range kinds {
		k.compile(c)
	}
}
