package model

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/value"
)

// fromText returns a constant of the type and checks it against the attribute's limits; Missing after a problem. a
// is nil if no attribute is declared.
func (c *compiler) fromText(name string, typ Type, a *Attribute, w word) value.Value {
	v, err := scalarOf(typ, w.text)
	bound := ""
	if a != nil {
		bound = a.Outside(v)
	}
	switch text := v.Kind() == value.String; {
	case err != nil:
		c.addFlaw(w.pos, "", "%s: %v", name, err)
	case bound != "":
		c.addFlaw(w.pos, "", "%s is %s, never %s", name, bound, w.text)
	case a != nil && text && len(a.Enum) > 0 && c.refuseUnknown(w, a.Enum, "%s is never %q", name, w.text):
	case a != nil && text && a.Max > 0 && utf8.RuneCountInString(w.text) > a.Max:
		c.addFlaw(w.pos, "", "%s has at most %d characters, %q has more", name, a.Max, w.text)
	default:
		return v
	}
	return value.Value{}
}

// scalarOf parses a text as a value of the type, in the form that rows hold.
// Lists, maps, sets and binaries have no text, and are an error.
func scalarOf(typ Type, text string) (value.Value, error) {
	switch typ {
	case TypeString, TypeCommas, TypeAny, "":
		return value.OfString(text), nil
	case TypeTime:
		if _, ok := value.Time(value.OfString(text)); !ok {
			return value.Value{}, fmt.Errorf("%q is not a time like 2026-01-31T12:00:00Z, or a date", text)
		}
		return value.OfString(text), nil
	case TypeNumber:
		v, err := value.ParseNumber(text)
		if err != nil {
			return value.Value{}, fmt.Errorf("%q is not a number", text)
		}
		return v, nil
	case TypeBoolean, TypeFlag:
		if text != "true" && text != "false" {
			return value.Value{}, fmt.Errorf("%q is neither true nor false", text)
		}
		if typ == TypeFlag {
			return value.OfString(text), nil
		}
		return value.OfBool(text == "true"), nil
	}
	return value.Value{}, fmt.Errorf("a %s is compared to no value and has none by default", typ)
}

// defaultOf compiles a default. Commands need a time of day, and so do the rows that they write.
func (c *compiler) defaultOf(a *Attribute, n node) value.Value {
	v := a.Store(c.readTyped(&Field{Name: a.Name, Type: a.Type}, a, n))
	if a.Type == TypeTime && a.As == "" && len(v.Text()) == len(time.DateOnly) {
		c.addFlaw(n.pos(), v.Text()+"T00:00:00Z", "%s: a default needs a time of day, as commands do", a.Name)
	}
	return v
}

// findMeasured returns a field as sums and the order of rows take it: a name in the key that the
// entity declares as a number is a number, which the key has as text.
func (c *compiler) findMeasured(e *Entity, w word) *Field { return c.measuredFor(e, w, false) }

// measuredFor is findMeasured for a value that may be hidden, as fieldFor is findField.
func (c *compiler) measuredFor(e *Entity, w word, hidden bool) *Field {
	if w.isGiven() && e != nil && c.checkUnnamed(e, w, TypeNumber) {
		return nil
	}
	f := c.fieldFor(e, w, hidden)
	if f == nil || f.Key == nil {
		return f
	}
	if a := e.Attribute(f.Name); a != nil && a.Type == TypeNumber {
		f.Number, f.Type = true, TypeNumber
	}
	return f
}

// compileExpr compiles a word of the file as an expression over rows of source: a field, or, for
// =text, a constant in the form in which into holds that name. It does not know the names
// that stand for the record ($time and so on); a caller that allows these checks first.
func (c *compiler) compileExpr(source *Entity, w word, into *Entity, name string) Expr {
	return c.exprFor(source, w, into, name, into.Hides(name))
}

// exprFor is compileExpr for a value that may be hidden, as fieldFor is findField.
func (c *compiler) exprFor(source *Entity, w word, into *Entity, name string, hidden bool) Expr {
	if text, ok := strings.CutPrefix(w.text, "="); ok {
		typ, a := TypeString, (*Attribute)(nil)
		if into != nil {
			typ, a = into.Field(name).Type, into.Attribute(name)
		}
		return Expr{Const: c.fromText(name, typ, a, word{text, w.pos})}
	}
	return Expr{Field: c.fieldFor(source, w, hidden)}
}
