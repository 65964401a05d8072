package model

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/seq"
	"weir/internal/value"
)

// checkAttributes reports attributes whose keys do not fit their type or each other.
func checkAttributes(c *compiler, e *Entity) {
	for _, a := range e.Attributes {
		c.checkTypes(a)
		c.checkLimits(a)
		c.checkReading(e, a)
		c.checkComputed(e, a)
	}
	for i, a := range e.Formulas {
		c.checkTypes(a)
		c.checkFormula(e, i)
	}
}

// checkLimits reports an enum, max or min that contradicts itself or that is never checked.
// Lengths are in characters, as the write side counts them.
func (c *compiler) checkLimits(a *Attribute) {
	d := a.decl
	if a.Forward && len(a.Enum) == 0 {
		c.addFlaw(d.placeOf("forward"), "enum: [first, next]", "%s moves forward along its enum, and has none", a.Name)
	}
	if a.Forward && a.Hidden {
		c.addFlaw(d.placeOf("forward"), "leave one of the two out", "%s is hidden, and this would tell something about its value", a.Name)
	}
	reportTwice(c, d.Enum)
	for _, w := range d.Enum {
		if a.Max > 0 && utf8.RuneCountInString(w.text) > a.Max {
			c.addFlaw(w.pos, "", "%q has more than %d characters", w.text, a.Max)
		}
	}
	switch {
	case !a.Least.IsMissing() && !a.Most.IsMissing() && value.Compare(a.Least, a.Most) > 0:
		c.addFlaw(d.placeOf("min"), "min: "+a.Most.Text()+", max: "+a.Least.Text(), "no number is at least %s and at most %s", a.Least.Text(), a.Most.Text())
	case d.From.isGiven() && (!a.Least.IsMissing() || !a.Most.IsMissing()):
		c.addFlaw(d.name.pos, "leave min and max out", "%s is computed, and no command gives it", a.Name)
	}
	for _, l := range a.limits() {
		if want := checkSummable(l.value, true); a.Whole && want != "" {
			c.addFlaw(d.placeOf(l.key), "", "%s is %s, and its %s is %s", a.Name, wantWhole, l.key, l.value.Text())
		}
	}
}

// limit is a number in the declaration of an attribute.
type limit struct {
	key   string
	value value.Value
}

// limits returns the numbers that an attribute declares of its values.
func (a *Attribute) limits() (out []limit) {
	for _, l := range []limit{{"min", a.Least}, {"max", a.Most}, {"default", a.Default}} {
		if n, err := value.ParseNumber(value.Scalar(l.value)); err == nil && a.Type == TypeNumber { // it may be text
			out = append(out, limit{l.key, n})
		}
	}
	return out
}

// checkTemplateNames warns of a name that stands only in the key of an index, and may be another one misspelt.
// A derived value may be a key attribute of an index by itself, since the write that shows it
// writes the key. It cannot be a part of a template's text, which nothing would write again.
func checkTemplateNames(c *compiler, e *Entity) {
	for i, k := range e.Keys {
		at := c.keyPos(e, k)
		for _, name := range k.Template.Names() {
			if _, taken := e.takenField(name); taken && k.Attr.Name != name {
				c.addFlaw(at, "", "a template cannot use %s, a derived value: nothing would write the key again when it changes", name)
				continue
			}
			if c.valueOf(e, name) != nil && e.Attribute(name) == nil && k.Attr.Name != name {
				c.addFlaw(at, "make "+name+" itself the key attribute", "a template cannot use %s, a derived value: nothing would write the key again when it changes", name)
				continue
			}
			if only := e.IndexNames(); i >= len(e.PrimaryKey()) && slices.Contains(only, name) {
				others := slices.DeleteFunc(c.fieldNames(e), func(known string) bool { return slices.Contains(only, known) })
				if ask := didYouMean(name, others); ask != "" {
					c.addWarning(at, ask, "%s has no attribute %q: its key %s alone says it", e.Name, name, k.Attr.Name)
				}
			}
			c.checkHidden(e, word{name, at})
		}
	}
}

// checkTemplateTypes reports an attribute whose type cannot be stored in the key that its
// template makes.
func checkTemplateTypes(c *compiler, e *Entity) {
	for _, k := range e.Keys {
		at := c.keyPos(e, k)
		if k.Attr.Type != value.String && !k.Template.Whole() {
			c.addFlaw(at, "{"+k.Attr.Name+": \"{name}\"}", "the key attribute %s is a %s, and %q makes a text", k.Attr.Name, k.Attr.Type, k.Template)
			continue
		}
		if e.Attribute(k.Attr.Name) != nil && k.Template.String() != "{"+k.Attr.Name+"}" {
			c.addFlaw(at, "leave one of them out", "%s is declared as an attribute and made by a template", k.Attr.Name)
		}
		for _, name := range k.Template.Names() {
			if a := e.Attribute(name); a != nil && !inKey(a, k) {
				c.addFlaw(at, keyHint(a, k), "%s is a %s and cannot stand in the key attribute %s, a %s", name, a.Type, k.Attr.Name, k.Attr.Type)
			}
		}
	}
}

// inKey reports whether a value of the type can be the key attribute, or a part
// of its text.
// DynamoDB has three types of key attributes: string, number and binary ("Core components of Amazon
// DynamoDB").
func inKey(a *Attribute, k *KeyTemplate) bool {
	switch a.Type {
	case TypeAny:
		return true
	case TypeTime:
		return (k.Attr.Type == value.Number) == (a.As != "") || a.As != "" && !k.Template.Whole()
	case TypeString, TypeFlag, TypeCommas:
		return k.Attr.Type == value.String
	case TypeNumber:
		return (k.Attr.Type == value.Number) == (a.As != AsText) || !k.Template.Whole()
	case TypeBoolean:
		return !k.Template.Whole() || a.Name != k.Attr.Name && k.Attr.Type == value.String
	case TypeBinary:
		return k.Attr.Type == value.Binary
	}
	return false
}

// keyHint is the hint for a type that cannot stand in a key, "" for none.
func keyHint(a *Attribute, k *KeyTemplate) string {
	switch {
	case a.Type == TypeBoolean:
		return "a flag is a boolean to people and a text in the table"
	case a.Type == TypeNumber && k.Attr.Type == value.String:
		return a.Name + ": {type: number, as: text}"
	case a.Type == TypeTime && k.Attr.Type == value.Number:
		return a.Name + ": {type: time, as: seconds}, or milliseconds"
	}
	return ""
}

// checkSeparators reports two names in a template without a safe separator between them: a
// character that Escape removes from typed values. Without one, a typed value could move
// the border between the two names and so forge another row's key.
func checkSeparators(c *compiler, e *Entity) {
	for _, k := range e.Keys {
		between, after := "", false
		for _, p := range k.Template.parts {
			if p.slot < 0 {
				between += p.literal
				continue
			}
			if after && !strings.ContainsFunc(between, k.Template.isBorder) {
				c.addFlaw(c.keyPos(e, k), "put a sign like #, | or / between them", "in %q %q does not keep the names around it apart: a value may contain it", k.Template, between)
			}
			between, after = "", true
		}
	}
}

// isBorder reports whether no escaped value contains the character. It is false for "%", the
// escape character itself.
func (t *Template) isBorder(r rune) bool { return r != '%' && t.mustEscape(r) }

// checkWhere reports a where that tests a derived attribute: the entity of a row must not
// depend on other rows. It also reports a where that does not fix one value for each
// attribute of rows that weir makes.
// A where of a made row must be single values because weir writes them into the row that it makes;
// a name in the key of a set's rows may have several.
func checkWhere(c *compiler, e *Entity) {
	for _, d := range e.decl.Where {
		if _, taken := e.takenField(d.name.text); taken || c.valueOf(e, d.name.text) != nil {
			c.addFlaw(d.name.pos, "", "%s is derived, and cannot tell what %s is", d.name.text, e.Name)
		}
		if e.Derived && !d.isSingle() && !(e.SetOf() != nil && e.Field(d.name.text).Key != nil) {
			c.addFlaw(d.name.pos, d.name.text+": "+e.Name, "weir makes rows of %s and writes what its where says, so each line must be one value", e.Name)
		}
		if k := e.KeyTemplate(d.name.text); e.Derived && k != nil && e.Field(d.name.text).Key == nil && !k.gives(e.Stamp(d.name.text)) {
			c.addFlaw(d.name.pos, "leave it out", "weir makes %s of %s by its template %q, which its where contradicts", k.Attr.Name, e.Name, k.Template)
		}
	}
}

// gives reports whether a key that weir makes can be the value that a where tests the key attribute for: the
// template is that attribute's own name, or this text.
func (k *KeyTemplate) gives(v value.Value) bool {
	return k.Template.String() == "{"+k.Attr.Name+"}" || len(k.Template.names) == 0 && k.Template.String() == value.Scalar(v)
}

// valueOf returns the tally that an attribute of the entity shows, nil for none.
// The values of a set in a group are tallies of its row, and among these.
func (c *compiler) valueOf(e *Entity, attr string) *Tally {
	return seq.Find(e.Values, func(t *Tally) bool { return t.Attr == attr })
}

// keyPos returns the place of a template in the file, or of the declared attribute that
// serves as its own template.
func (c *compiler) keyPos(e *Entity, k *KeyTemplate) pos {
	if d := e.decl.templateOf(k.Attr.Name); d != nil {
		return d.Template.pos
	}
	return c.attributePos(e, k.Attr.Name)
}
