package query

import (
	"slices"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// keyPart makes and reads one key attribute of an entity's rows, in the table or
// in an index.
type keyPart struct {
	attr  store.KeyAttr
	name  string          // the key is this name's value; "" where there is a template
	tmpl  *model.Template // nil: the attribute is its own name
	typed []string        // names whose values stand escaped in this key
	via   *model.Template // of a key that is one name: the source's key from which weir takes it as it stands there
}

// newKeyPart returns how an entity's rows make the attribute. attr may be none (a table without a sort key).
// An attribute that no template makes is a part with its own name.
func newKeyPart(e *model.Entity, attr store.KeyAttr) keyPart {
	k := keyPart{attr: attr, name: attr.Name}
	kt := e.KeyTemplate(attr.Name)
	if kt == nil {
		return k
	}
	k.tmpl, k.name = kt.Template, ""
	if k.tmpl.Whole() {
		k.name = k.tmpl.Names()[0]
	}
	if e.Derived && k.name != "" {
		k.via = templateOf(e, k.name)
	} else if e.Derived {
		k.typed = escapedNames(e, k.tmpl.Names())
	}
	return k
}

// names are the names that the key is made of.
func (k *keyPart) names() []string {
	switch {
	case k.attr.Name == "":
		return nil
	case k.name != "":
		return []string{k.name}
	}
	return k.tmpl.Names()
}

// lookup returns the value of a name, Missing for nothing.
type lookup func(name string) value.Value

// buildPrefix makes as much of the key as the names have values for. whole is false
// when that is only the beginning of the key, or nothing.
func (k *keyPart) buildPrefix(get lookup) (v value.Value, whole bool) {
	if k.name != "" {
		v = k.convertValue(get(k.name))
		return v, !v.IsMissing()
	}
	s, whole := k.tmpl.Prefix(k.textLookup(get))
	if short, ok := k.tmpl.Build(k.textLookup(get)); !whole && ok {
		s = short // only the optional tail is open
	}
	if s == "" {
		return value.Value{}, false
	}
	return value.OfString(s), whole
}

// buildKey makes the whole key, without its optional tail where that has no value.
// It reports false where a name that is needed has no value.
func (k *keyPart) buildKey(get lookup) (value.Value, bool) {
	if k.name != "" {
		return k.buildPrefix(get)
	}
	s, ok := k.tmpl.Build(k.textLookup(get))
	return value.OfString(s), ok && s != ""
}

// valueUnless is v, or Missing.
func valueUnless(gone bool, v value.Value) value.Value {
	if gone {
		return value.Value{}
	}
	return v
}

// textLookup is a lookup for templates, which take texts.
func (k *keyPart) textLookup(get lookup) func(string) string {
	return func(name string) string { return value.Scalar(get(name)) }
}

// convertValue makes a value one of the key attribute's type, Missing when it cannot
// be.
func (k *keyPart) convertValue(v value.Value) value.Value {
	switch {
	case v.Kind() == value.Binary || k.attr.Type == value.Binary:
		return valueUnless(v.Kind() != k.attr.Type || v.Text() == "", v)
	case k.attr.Type == value.Number:
		n, err := value.ParseNumber(value.Scalar(v))
		return valueUnless(err != nil, n)
	}
	s := value.Scalar(v)
	return valueUnless(s == "", value.OfString(s))
}

// readName takes a name's value out of a row's key, Missing when it is not in there.
func (k *keyPart) readName(name string, row value.Item) value.Value {
	v := row.Get(k.attr.Name)
	if k.name != "" {
		return valueUnless(k.name != name, v)
	}
	slot := k.tmpl.Slot(name)
	values := make([]string, len(k.tmpl.Names()))
	if slot < 0 || v.Kind() != value.String || !k.tmpl.Match(v.Text(), values) || values[slot] == "" {
		return value.Value{}
	}
	return value.OfString(k.meaningOf(name, values[slot]))
}

// meaningOf is the value that a text in the key stands for.
func (k *keyPart) meaningOf(name, text string) string {
	if slices.Contains(k.typed, name) {
		return model.Unescape(text)
	}
	return text
}

// matchesShape reports whether a row's key has this shape.
func (k *keyPart) matchesShape(row value.Item) bool {
	v := row.Get(k.attr.Name)
	if k.tmpl == nil || k.name != "" {
		return v.Kind() == k.attr.Type
	}
	return v.Kind() == value.String && k.tmpl.Match(v.Text(), make([]string, len(k.tmpl.Names())))
}
