package model

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weir/internal/seq"
)

// A declaration is a struct that a map of the file is read into. Each of its exported fields is a key that the map may
// have: the field's name in small letters. The structs are the one table of the language's keys. declare reads with it;
// models/schema.json is made of it and of the fields' comments (TestSchema), and TestGuide holds the guide to it.
// The type of a field is the type of the value under the key, and tags say more:
//
//	When  word     `need:"when: ENTITY"`      the map needs the key, not empty; this is the hint
//	Max   int      `from:"1" to:"1000"`       a whole number, -1 if there is none
//	After []pair   `to:"1"`                   at most so many names
//	Row   []word   `some:"an entity, or a list of them"`  not empty
//	Keep  []word   `one:"insert remove" or:"there is no %q"`  each is one of these words; of a map, each value
//	Of    keyword  `keys:"sum mean" need:"sum: FIELD"`  exactly one of several keys
//	By    []pair   `with:"else"`              only beside that other key, or one of several; with need, always beside it
//	Find  word     `only:"with where"`        beside these keys alone
//	Zone  word     `of:"time"`                of an attribute: only for these types
//	TTL   word     `name:"attribute"`         a name of such a thing; of a map, each of its names (nameRules)
//	Sort  word     `type:"string number"`     a field that is of one of these types
//
// Fields that are not exported are for the compiler.
type declaration interface {
	head() *heading
	check() // reports mistakes of the map that its keys alone do not show, once it is read
}

// shortened is a declaration that may be a single value in place of a map, which short reads.
type shortened interface{ short(n node, what string) }

// readable is the type of a key's value that reads itself. Messages call the value what.
type readable interface{ read(n node, what string) }

// heading begins each declaration. Its comment describes the map, its tag is the noun of messages for such a map, and
// either:"get list" says that the map has exactly one of these keys, with a hint in or.
type heading struct {
	name   word // under which it stands in its map
	fields      // that map
}

func (h *heading) head() *heading { return h }
func (h *heading) check()         {}
func (h *heading) called() word   { return h.name }

// keyword is the one key of several that a map has, with its words; the zero keyword if it has none.
type keyword struct {
	key string
	of  []word
}

// word is the word of a keyword that has only one.
func (k keyword) word() (w word) {
	if len(k.of) > 0 {
		w = k.of[0]
	}
	return w
}

// named are the declarations in a map of names, in the order of the file.
type named[T any] []*T

func (list *named[T]) read(n node, what string) {
	for _, e := range n.readEntries(what) {
		list.add(e, what)
	}
}

func (list *named[T]) add(e entry, what string) {
	one := new(T)
	d := any(one).(declaration)
	d.head().name = e.name
	if x, ok := d.(shortened); ok && !e.value.isMap() {
		x.short(e.value, what)
	} else {
		e.value.readDeclaration(e.name, d)
	}
	*list = append(*list, one)
}

// readDeclaration reads a map into a declaration. It reports keys that the declaration does not have, and those that it lacks.
func (n node) readDeclaration(name word, d declaration) {
	v := reflect.ValueOf(d).Elem()
	f, of := n.readFields(nounOf(v.Type()), declaredKeys(v.Type())), v.Type().Field(0).Tag
	*d.head() = heading{name, f}
	if keys, has := of.Lookup("either"); has {
		f.takeEither(keys, of.Get("or"))
	}
	for _, s := range fieldsOf(v.Type()) {
		if s.IsExported() {
			f.readKey(s, v.FieldByIndex(s.Index))
		}
	}
	d.check()
}

var visibleFields sync.Map // by reflect.Type, its []reflect.StructField, which reflect makes again at each call

func fieldsOf(t reflect.Type) []reflect.StructField {
	found, ok := visibleFields.Load(t)
	if !ok {
		found, _ = visibleFields.LoadOrStore(t, reflect.VisibleFields(t))
	}
	return found.([]reflect.StructField)
}

// nounOf returns the name of a map of the type in messages.
func nounOf(t reflect.Type) string { return t.Field(0).Tag.Get("noun") }

// declaredKeys returns the keys that a map of the type may have.
func declaredKeys(t reflect.Type) (keys []string) {
	for _, s := range fieldsOf(t) {
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
	key, tag := strings.ToLower(s.Name), s.Tag
	k, several := into.Addr().Interface().(*keyword)
	if several {
		k.key = f.takeEither(tag.Get("keys"), tag.Get("need"))
		key = k.key
	} else if into.Kind() == reflect.Int {
		into.SetInt(-1)
	}
	n, ok := f.has[key]
	if !several && f.checkLack(key, tag) || !ok {
		return
	}
	for i := 0; n.isMap() && i < len(n.y.Content); i += 2 {
		name := node{f.r, n.y.Content[i]}
		f.r.checkName(tag.Get("name"), word{name.y.Value, name.pos()})
	}
	what := f.describeKey(key)
	want, listed := tag.Lookup("some")
	switch x := into.Addr().Interface().(type) {
	case *word:
		*x = f.checkChoice(key, tag, n.readWord(what))
		f.r.checkName(tag.Get("name"), *x)
	case *[]word:
		*x = f.chooseAll(key, tag, n)
	case *keyword:
		if n.isList() && !listed {
			n.reportWrong(what, "a word")
			return
		}
		x.of = f.chooseAll(key, tag, n)
	case *[]pair:
		*x = n.readPairs(what)
		for i := range *x {
			(*x)[i].value = f.checkChoice(key, tag, (*x)[i].value)
		}
		if most, _ := strconv.Atoi(tag.Get("to")); most > 0 && len(*x) > most {
			f.r.addFlaw((*x)[most].name.pos, "", "%s takes at most %d name", what, most)
		}
	case *[]testDecl:
		*x = n.readTests(what)
	case *bool:
		*x = n.readFlag(what)
	case *int:
		from, _ := strconv.Atoi(tag.Get("from"))
		to, _ := strconv.Atoi(tag.Get("to"))
		*x = n.readNumber(what, from, to)
	case *node:
		*x = n
	case readable:
		x.read(n, what)
	default:
		d := reflect.New(into.Type().Elem())
		if into.Set(d); n.isGiven() && !n.isMap() && d.Type().Elem() == reflect.TypeFor[eachDecl]() {
			n.r.addFlaw(n.pos(), "each: {of: ENTITY, by: [NAME]}", "%s must say of which entity the subscribers are, and which of them", what)
			return
		}
		n.readDeclaration(word{}, into.Interface().(declaration))
	}
	if listed && n.isEmpty() {
		n.reportWrong(what, want)
	}
}

// checkLack reports a key that is missing or empty and has to be there, and one that stands beside the wrong keys. It returns
// whether there is nothing to read.
func (f fields) checkLack(key string, tag reflect.StructTag) bool {
	beside := strings.Fields(tag.Get("with"))
	other, n := seq.Find(beside, f.hasKey), f.has[key]
	if hint, needed := tag.Lookup("need"); needed && (n.y == nil || n.isEmpty()) && (len(beside) == 0 || other != "") {
		f.reportMissing(other, hint, key)
		return true
	}
	only, limited := tag.Lookup("only")
	for other, in := range f.has {
		if limited && n.y != nil && other != key && !slices.Contains(strings.Fields(only), other) {
			f.r.addFlaw(in.pos(), "beside it stands only "+quotedOr(strings.Fields(only)), "%q does not go with %q", other, key)
		}
	}
	if n.y != nil && len(beside) > 0 && other == "" {
		f.r.addFlaw(n.pos(), "", "%q goes with %s, which is missing", key, quotedOr(beside))
	}
	return false
}

// takeEither returns the first of some keys that the map has. It reports the others, and if it has none.
func (f fields) takeEither(keys, hint string) (first string) {
	for _, key := range strings.Fields(keys) {
		switch {
		case f.hasKey(key) && first != "":
			f.r.addFlaw(f.placeOf(key), "leave one of them out", "%s has either %q or %q", withArticle(f.shape), first, key)
		case f.hasKey(key):
			first = key
		}
	}
	if first == "" {
		f.reportMissing("", hint, strings.Fields(keys)...)
	}
	return first
}

// quotedOr lists keys for a message: "get" or "list".
func quotedOr(keys []string) string { return `"` + strings.Join(keys, `" or "`) + `"` }

// chooseAll is checkChoice for a word or a list of words, without those that are wrong.
func (f fields) chooseAll(key string, tag reflect.StructTag, n node) (out []word) {
	for _, w := range n.readWords(f.describeKey(key)) {
		if w = f.checkChoice(key, tag, w); w.isGiven() {
			out = append(out, w)
		}
	}
	return out
}

// checkChoice reports a word that a key cannot have, and then returns none: one that is not listed, or that names no field.
func (f fields) checkChoice(key string, tag reflect.StructTag, w word) word {
	words, limited := tag.Lookup("one")
	_, dotted := tag.Lookup("form")
	switch {
	case !w.isGiven():
	case limited && f.r.refuseUnknown(w, strings.Fields(words), tag.Get("or"), w.text):
		return word{}
	case dotted && !strings.Contains(w.text, "."):
		f.r.addFlaw(w.pos, key+": "+w.text+".FIELD", "%q needs a field of an entity, not %q", key, w.text)
		return word{}
	}
	return w
}

// checkName reports a name that a thing cannot have.
func (r *reader) checkName(of string, w word) {
	switch rule := nameRules[of]; {
	case of == "" || w.text == "":
	case rule.ours != nil && rule.ours.MatchString(w.text):
		r.addFlaw(w.pos, "choose another name", "%q is reserved: it is weir's own", w.text)
	case !rule.pattern.MatchString(w.text) || rule.most > 0 && len(w.text) > rule.most:
		r.addFlaw(w.pos, rule.like, "%s's name is %s, not %.60q", withArticle(of), rule.is, w.text)
	}
}

// checkType returns a field or an attribute that the file names under a key. It reports one of a type that the key does not take.
func checkType[T interface {
	*Field | *Attribute
	typ() Type
}](c *compiler, d declaration, key string, w word, x T) T {
	s, _ := reflect.TypeOf(d).Elem().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
	if takes := strings.Fields(s.Tag.Get("type")); x != nil && !slices.Contains(takes, string(x.typ())) {
		c.addRemark(w.pos, "", "%s is a %s, and %s takes only %s", w.text, x.typ(), d.head().describeKey(key), strings.Join(takes, ", "))
	}
	return x
}

func (f *Field) typ() Type     { return f.Type }
func (a *Attribute) typ() Type { return a.Type }

// checkTypes reports keys of an attribute that are for attributes of other types.
func (c *compiler) checkTypes(a *Attribute) {
	for _, s := range fieldsOf(reflect.TypeOf(*a.decl)) {
		types, limited := s.Tag.Lookup("of")
		key, of := strings.ToLower(s.Name), strings.Fields(types)
		if limited && a.decl.hasKey(key) && !slices.Contains(of, string(a.Type)) {
			c.addFlaw(a.decl.placeOf(key), "", "only a %s has %q, %s is a %s", strings.Join(of, " or "), key, a.Name, a.Type)
		}
	}
}
