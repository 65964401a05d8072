package model

import (
	"strings"

	"weir/internal/seq"
)

// modelDecl is a model file as it was read, before anything in it is looked up. What cannot be read is reported and left
// out, and reading goes on, so that one run of lint shows as many mistakes as possible.
type modelDecl struct {
	heading  `noun:"model"`
	Model    word `need:"the name by which commands and URLs call it"`
	Tables   named[tableDecl]
	Entities named[entityDecl]
	Derive   derivations
	Migrate  named[migrationDecl]
	Search   named[searchDecl]
	Queries  named[queryDecl]
}

func (d *modelDecl) check() {
	if n := d.has["tables"]; len(d.Tables) == 0 && (n.isMap() || !n.given()) {
		d.r.report(pos{1, 1}, "tables: {NAME: {key: [PK, SK]}}", "the model has no tables")
	}
	if n := d.has["entities"]; len(d.Entities) == 0 && (n.isMap() || !n.given()) {
		d.r.report(pos{1, 1}, "entities: {NAME: {where: ..., key: ..., attributes: ...}}", "the model has no entities")
	}
}

// tableDecl is a table as the file has it.
type tableDecl struct {
	heading `noun:"table"`
	Key     keyDecl `need:"key: [PK, SK]"`
	TTL     word
	Indexes named[indexDecl]
	Stream  word `one:"new-and-old-images new-image keys-only" or:"there is no stream of %q"`
}

// indexDecl is an index of a table: a key alone, or a map with a key.
type indexDecl struct {
	heading    `noun:"index"`
	Key        keyDecl `need:"key: [PK, SK]"`
	Local      bool
	Projection word `one:"all keys" or:"there is no projection %q"`
}

func (d *indexDecl) short(n node, _ string) { d.Key.read(n, "the key of an index") }

// keyDecl is [partition] or [partition, sort], each with its type where it is no string.
type keyDecl struct {
	pos
	parts []keyPart
}

// keyPart is an attribute of a key. typ is the zero word for a string.
type keyPart struct{ name, typ word }

func (d *keyDecl) read(n node, what string) {
	elems := n.elements()
	if !n.isList() || len(elems) < 1 || len(elems) > 2 {
		n.wrong(what, "a list of one or two attributes, [partition] or [partition, sort]")
		return
	}
	key := keyDecl{pos: n.pos()}
	for _, el := range elems {
		part := keyPart{}
		if el.isMap() {
			for _, e := range el.entries(what) {
				part = keyPart{e.name, e.value.word("the type of a key attribute")}
			}
		} else {
			part.name = el.word(what)
		}
		if !part.name.given() {
			return
		}
		key.parts = append(key.parts, part)
	}
	*d = key
}

// entityDecl is an entity with its attributes and the rules for commands. Attributes keep their order.
type entityDecl struct {
	heading    `noun:"entity"`
	Table      word
	Where      []testDecl
	Key        named[keyTemplateDecl]
	Attributes named[attributeDecl]
	Expires    word
	Unique     []word
	New        []pair
	Flatten    []pair
	Once       *onceDecl
	Supersede  *supersedeDecl
}

// listed reports whether the file has attributes for the entity, perhaps none.
func (d *entityDecl) listed() bool {
	return d.said("attributes")
}

// template returns what the file has for a key attribute, nil for nothing.
func (d *entityDecl) template(attr string) *keyTemplateDecl {
	return seq.Find(d.Key, func(k *keyTemplateDecl) bool { return k.name.text == attr })
}

// keyTemplateDecl is the template of a key attribute: a text, or a map.
type keyTemplateDecl struct {
	heading  `noun:"key template"`
	Template word `need:"template: \"...#{name}\""`
	Case     word `one:"lower" or:"keys are not written in %q"`
}

func (d *keyTemplateDecl) short(n node, what string) { d.Template = n.text(what) }

// attributeDecl is an attribute: a type alone, or a map. A type may end in "!", which is short for required.
type attributeDecl struct {
	heading   `noun:"attribute"`
	Type      word `need:"type: string"`
	As        word `of:"number time"`
	Zone      word `of:"time"`
	Required  bool
	Default   node
	Enum      []word `of:"string any"`
	Min       node   `of:"number"`
	Max       node   `of:"number string any"`
	Whole     bool   `of:"number"`
	Hidden    bool
	Legacy    []pair
	After     []pair
	Else      word   `of:"list strings numbers"` // Entity.field
	By        []pair `with:"else"`
	Forward   bool
	From      word `of:"number"`
	Plus      node `with:"from"`
	maxLength int  // of a text, by its max; -1 for none
}

func (d *attributeDecl) short(n node, _ string) {
	d.Type, d.maxLength = n.word("the type of an attribute"), -1
	d.Type.text, d.Required = strings.CutSuffix(d.Type.text, "!")
}

// check reads the max of a text, which is at most 409,600 characters: DynamoDB's limit of a row if each has one byte.
// min and max of a number are numbers of any size.
func (d *attributeDecl) check() {
	d.maxLength = -1
	if d.Type.text == string(TypeNumber) {
		return
	}
	if d.Max.y != nil {
		d.maxLength = d.Max.number(d.what("max"), 1, 400<<10)
	}
	d.Min, d.Max = node{}, node{}
}

// onceDecl says in which rows idempotency keys are kept.
type onceDecl struct {
	heading `noun:"once"`
	Of      word `need:"of: ENTITY"`
	Key     word `need:"key: ATTRIBUTE"`
	Set     []pair
}

// supersedeDecl says which row a command's row replaces, and what that row then takes over.
type supersedeDecl struct {
	heading `noun:"supersede"`
	Where   []testDecl
	Row     []pair
	Append  []pair
}

func (d *supersedeDecl) check() {
	for _, key := range []string{"where", "row", "append"} {
		if m, ok := d.has[key]; !ok || m.isMap() && len(m.y.Content) == 0 {
			d.missing(key, "supersede: {where: {state: DONE}, row: {state: OPEN}, append: {times: doneAt}}")
		}
	}
}

// pair is a name and the word it stands for.
type pair struct{ name, value word }

// pairs reads a map of names to texts.
func (n node) pairs(what string) []pair {
	return seq.Map(n.entries(what), func(e entry) pair { return pair{e.name, e.value.text(what)} })
}

// text is word, but reports what YAML takes for a number or a boolean.
func (n node) text(what string) word {
	w := n.word(what)
	if w.given() && n.y.ShortTag() != "!!str" {
		n.r.report(w.pos, "put it in quotes", "%s must be a text, not %s", what, w.text)
	}
	return w
}

// namesOrPairs is a map of names to words, or a list of names, each of which stands for itself.
type namesOrPairs []pair

func (list *namesOrPairs) read(n node, what string) {
	if n.isMap() {
		*list = n.pairs(what)
		return
	}
	for _, w := range n.words(what) {
		name := w
		name.text = strings.TrimSuffix(w.text, "?")
		if i := strings.IndexByte(name.text, '='); i > 0 {
			name.text = name.text[:i]
		}
		*list = append(*list, pair{name, w})
	}
}
