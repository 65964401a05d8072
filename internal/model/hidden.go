package model

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/value"
)

// This file decides which parts of a row may leave weir: everything but the values of attributes that the model
// hides. The compiler resolves every name in a file with field or fieldFor, which refuse a hidden attribute
// unless its value goes into one that is hidden too. So nothing that leaves is derived from a hidden value,
// ordered or chosen by it. Whole rows and texts of errors pass through Shown and ShownText.

// HiddenText stands where the value of a hidden attribute would.
const HiddenText = "(hidden)"

// Hides reports whether the values of an attribute of the entity's rows stay inside. A nil entity hides nothing.
func (e *Entity) Hides(name string) bool {
	hides := func(a *Attribute) bool { return a.Name == name && a.Hidden }
	return e != nil && (slices.ContainsFunc(e.Attributes, hides) || slices.ContainsFunc(e.Formulas, hides))
}

// hiddenAttributes returns the names of the entity's hidden attributes, sorted.
func (e *Entity) hiddenAttributes() (out []string) {
	for _, a := range e.Attributes {
		if a.Hidden {
			out = append(out, a.Name)
		}
	}
	slices.Sort(out)
	return out
}

// readsImages reports whether an expression has the images of a record in it: $old or $new.
func readsImages(x Expr) bool {
	used := recordsIn(x)
	return slices.Contains(used, "$old") || slices.Contains(used, "$new")
}

// Hides reports whether the model hides anything: an attribute, or the values of a tally.
func (m *Model) Hides() bool {
	return slices.ContainsFunc(m.Entities, func(e *Entity) bool {
		return len(e.hiddenAttributes()) > 0 || slices.ContainsFunc(e.Values, (*Tally).hides)
	})
}

// HidesIn reports whether rows of a table may have a hidden attribute with the name. Of a row
// whose entity is not known, such an attribute is hidden.
func (t *Table) HidesIn(name string) bool {
	return slices.ContainsFunc(t.Entities, func(e *Entity) bool { return e.Hides(name) })
}

// HidesValuesOf reports whether values of a derivation stay inside, by its name as messages print it: "Album.spent",
// "UserItem", "Log(made).title followed". Of a name that says no entity they do if the model derives anything hidden.
func (m *Model) HidesValuesOf(what string) bool {
	head, rest, _ := strings.Cut(what, " ")
	rule, attr, dotted := strings.Cut(head, ".")
	name, _, _ := strings.Cut(rule, "(")
	e := m.Entity(name)
	switch {
	case e == nil:
		return slices.ContainsFunc(m.Entities, func(e *Entity) bool {
			return (len(e.MadeBy)+len(e.Statuses) > 0 || e.Group != nil) && len(e.hiddenAttributes()) > 0
		}) ||
			slices.ContainsFunc(m.Tallies, (*Tally).hides)
	case !dotted || len(e.MadeBy) > 0:
		return len(e.hiddenAttributes()) > 0
	}
	return e.Hides(attr) || e.Hides(rest) || slices.ContainsFunc(e.Values, func(t *Tally) bool { return t.Attr == attr && t.hides() })
}

// hides reports whether the model hides the tally's values.
func (t *Tally) hides() bool { return t.Hidden && !(t.Group != nil && t == t.Group.Rows) }

// Shown returns a row as it may leave, with HiddenText in place of the values that its entity hides. A row of no entity
// (nil) may have been of any: a value that any entity hides is hidden, also inside maps and lists. So it is inside weir's own
// attributes, which keep values of the application.
func (m *Model) Shown(e *Entity, row value.Item) value.Item {
	if e == nil {
		return m.shownInside(row)
	}
	for _, a := range row {
		switch {
		case e.Hides(a.Name):
			row = row.With(value.Attr{Name: a.Name, Value: value.OfString(HiddenText)})
		case owntable.IsOurs(a.Name):
			row = row.With(value.Attr{Name: a.Name, Value: m.shownValue(a.Value)})
		}
	}
	return row
}

func (m *Model) shownInside(row value.Item) value.Item {
	if !m.Hides() {
		return row
	}
	out := slices.Clone(row)
	for i, a := range out {
		if m.hidesAnywhere(a.Name) {
			out[i].Value = value.OfString(HiddenText)
		} else {
			out[i].Value = m.shownValue(a.Value)
		}
	}
	return out
}

func (m *Model) shownValue(v value.Value) value.Value {
	switch v.Kind() {
	case value.Map:
		return value.OfMap(m.shownInside(v.Item()))
	case value.List:
		return value.OfList(seq.Map(v.Elements(), func(e value.Attr) value.Value { return m.shownValue(e.Value) })...)
	}
	return v
}

// quotedText is the quoted part of a text of an error: values are in quotes, a number that none can hold is said
// with "about", and one that is there instead of something else with "not". A quote that was cut off goes to the end.
var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|\\?$)|about [^\s,]+|(, not )-?[0-9.][^\s,]*`)

// pathText is a path in a text: names with periods between them, in quotes where they have other characters, and places in lists,
// such as NewImage.tags[3].name. A colon behind it is not part of the last name.
var pathText = regexp.MustCompile(pathName + `(?:\.` + pathName + `|\[\d+\])+`)

const pathName = `(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|[^ .\[\]"\\]+)`

// pathParts are the names and places of a path, each with the period before it.
var pathParts = regexp.MustCompile(`\.?` + pathName + `|\[\d+\]`)

// ShownText returns the text of an error as it may leave. Where the model hides anything, a path in it stops at the name
// of a hidden attribute, since keys of a map are part of its value, and the quoted part of the text is left out, since nothing
// says of which attribute it is.
func (m *Model) ShownText(text string) string {
	if !m.Hides() {
		return text
	}
	return quotedText.ReplaceAllString(pathText.ReplaceAllStringFunc(text, m.shownPath), "${1}"+HiddenText)
}

// shownPath is a path of a text up to the name of a hidden attribute of any entity.
func (m *Model) shownPath(path string) string {
	path, colon := strings.CutSuffix(path, ":")
	for _, at := range pathParts.FindAllStringIndex(path, -1) {
		name := strings.TrimPrefix(path[at[0]:at[1]], ".")
		if plain, err := strconv.Unquote(name); err == nil {
			name = plain
		}
		if m.hidesAnywhere(name) {
			path = path[:at[1]]
			break
		}
	}
	if colon {
		path += ":"
	}
	return path
}

// ShownPointer is an RFC 6901 pointer into a row up to the name of a hidden attribute of any entity. hides reports whether it
// has one.
func (m *Model) ShownPointer(pointer string) (shown string, hides bool) {
	parts := strings.Split(pointer, "/")
	for i, name := range parts {
		if i > 0 && m.hidesAnywhere(strings.NewReplacer("~1", "/", "~0", "~").Replace(name)) {
			return strings.Join(parts[:i+1], "/"), true
		}
	}
	return pointer, false
}

// hidesAnywhere reports whether an entity of the model hides attributes of the name.
func (m *Model) hidesAnywhere(name string) bool {
	return slices.ContainsFunc(m.Entities, func(e *Entity) bool { return e.Hides(name) })
}

// fieldFor is findField for a name whose value goes into an attribute, which may itself be hidden.
func (c *compiler) fieldFor(e *Entity, w word, hidden bool) *Field {
	if !w.isGiven() || e == nil {
		c.flaws++
		return nil
	}
	if !c.broken[e] && (c.checkUnnamed(e, w, TypeString) || c.refuseUnknown(w, c.fieldNames(e), "%s has no field %q", e.Name, w.text)) {
		return nil
	}
	if !hidden {
		c.checkHidden(e, w)
	}
	return e.Field(w.text)
}

// checkHidden reports a hidden attribute that something would depend on which leaves weir.
func (c *compiler) checkHidden(e *Entity, w word) {
	if e.Hides(w.text) {
		c.addRemark(w.pos, "hide the attribute that takes its value, or leave it out", "%s.%s is hidden, and this would tell something about its value", e.Name, w.text)
	}
}
