package model

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A declaration is a struct that a map of the file is read into. Each of its exported fields is a key that the map may
// have: the field's name in small letters. No key is named anywhere else but in models/schema.json and the guide, which
// tests compare. The type of a field says what stands under the key, and tags say more:
//
//	When word      `need:"when: ENTITY"`                        the map needs the key; this is the hint
//	Max  int       `from:"1" to:"1000"`                         a whole number, -1 if there is none
//	Row  []word    `some:"an entity, or a list of them"`        a list that is not empty
//	Keep []word    `one:"insert remove" or:"there is no %q"`    each is one of these words
//	Of   keyword   `keys:"sum mean" either:"it is either %q or %q"`  one of several keys
//	By   []pair    `with:"else"`                    only beside that other key
//	Zone word      `of:"time"`                      of an attribute: only for these types
//
// Other fields are for the compiler.
type declaration interface {
	head() *heading
	check() // reports mistakes of the map that its keys alone do not show, once it is read
}

// shortened is a declaration that may be a single value in place of a map, which short reads.
type shortened interface{ short(n node, what string) }

// readable is the type of a key's value that reads itself. Messages call the value what.
type readable interface{ read(n node, what string) }

// heading begins each declaration. Its tag is the noun of messages for such a map.
type heading struct {
	name   word // under which it stands in its map
	fields      // that map
}

func (h *heading) head() *heading { return h }
func (h *heading) check()         {}
func (h *heading) called() word   { return h.name }

// keyword is the one key of several that a map has, with its value; the zero keyword if it has none.
type keyword struct {
	key string
	node
}

// named are the declarations in a map of names, in the order of the file.
type named[T any] []*T

func (list *named[T]) read(n node, what string) {
	for _, e := range n.entries(what) {
		entry := new(T)
		d := any(entry).(declaration)
		if x, ok := d.(shortened); ok && !e.value.isMap() {
			d.head().name = e.name
			x.short(e.value, what)
		} else {
			e.value.declare(e.name, d)
		}
		*list = append(*list, entry)
	}
}

// declare reads a map into a declaration. It reports keys that the declaration does not have, and those that it lacks.
func (n node) declare(name word, d declaration) {
	v := reflect.ValueOf(d).Elem()
	f := n.fields(nounOf(v.Type()), declaredKeys(v.Type()))
	*d.head() = heading{name, f}
	for _, s := range reflect.VisibleFields(v.Type()) {
		if s.IsExported() {
			f.readKey(s, v.FieldByIndex(s.Index))
		}
	}
	d.check()
}

// nounOf returns what messages call a map of the type.
func nounOf(t reflect.Type) string { return t.Field(0).Tag.Get("noun") }

// declaredKeys returns the keys that a map of the type may have.
func declaredKeys(t reflect.Type) (keys []string) {
	for _, s := range reflect.VisibleFields(t) {
		if of, several := s.Tag.Lookup("keys"); several {
			keys = append(keys, strings.Fields(of)...)
		} else if s.IsExported() {
			keys = append(keys, strings.ToLower(s.Name))
		}
	}
	return keys
}

// readKey reads the value of a key into a field of a declaration.
func (f fields) readKey(s reflect.StructField, into reflect.Value) {
	key := strings.ToLower(s.Name)
	n, ok := f.has[key]
	if x, several := into.Addr().Interface().(*keyword); several {
		*x = f.keyword(strings.Fields(s.Tag.Get("keys")), s.Tag.Get("either"))
		return
	}
	if hint, needed := s.Tag.Lookup("need"); needed && !ok {
		f.missing(key, hint)
	}
	if into.Kind() == reflect.Int {
		into.SetInt(-1)
	}
	if !ok {
		return
	}
	if with, bound := s.Tag.Lookup("with"); bound && f.has[with].y == nil {
		f.r.report(n.pos(), "", "%q goes with %q, which is missing", key, with)
	}
	what := f.what(key)
	switch x := into.Addr().Interface().(type) {
	case *word:
		*x = f.choose(s, n.word(what))
	case *[]word:
		for _, w := range n.words(what) {
			if w = f.choose(s, w); w.given() {
				*x = append(*x, w)
			}
		}
	case *[]pair:
		*x = n.pairs(what)
	case *[]testDecl:
		*x = n.tests(what)
	case *bool:
		*x = n.flag(what)
	case *int:
		from, _ := strconv.Atoi(s.Tag.Get("from"))
		to, _ := strconv.Atoi(s.Tag.Get("to"))
		*x = n.number(what, from, to)
	case *node:
		*x = n
	case readable:
		x.read(n, what)
	default:
		into.Set(reflect.New(into.Type().Elem()))
		n.declare(word{}, into.Interface().(declaration))
	}
	if want, listed := s.Tag.Lookup("some"); listed && len(n.elements()) == 0 {
		n.wrong(what, want)
	}
}

// checkTypes reports keys of an attribute that are for attributes of other types.
func (c *compiler) checkTypes(a *Attribute) {
	for _, s := range reflect.VisibleFields(reflect.TypeOf(*a.decl)) {
		types, limited := s.Tag.Lookup("of")
		key, of := strings.ToLower(s.Name), strings.Fields(types)
		if limited && a.decl.said(key) && !slices.Contains(of, string(a.Type)) {
			c.report(a.decl.at(key), "", "only a %s has %q, %s is a %s", strings.Join(of, " or "), key, a.Name, a.Type)
		}
	}
}

// choose reports a word that is none of those that a key may have, and then returns none.
func (f fields) choose(s reflect.StructField, w word) word {
	words, limited := s.Tag.Lookup("one")
	if limited && w.given() && f.r.refuseUnknown(w, strings.Fields(words), s.Tag.Get("or"), w.text) {
		return word{}
	}
	return w
}

// keyword returns the first of some keys that the map has, and reports the others.
func (f fields) keyword(keys []string, either string) (first keyword) {
	for _, key := range keys {
		n, ok := f.has[key]
		switch {
		case ok && first.key != "":
			f.r.report(n.pos(), "", either, first.key, key)
		case ok:
			first = keyword{key, n}
		}
	}
	return first
}
