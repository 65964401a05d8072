package model

import (
	"strings"

	"weir/internal/value"
)

// Type is the type of an attribute, in the words of the model file.
type Type string

// The types. A flag is a boolean in commands and results, but is stored as the string "true"
// or "false", so that it can be an index key. A time is a string in RFC 3339.
const (
	TypeString  Type = "string"
	TypeNumber  Type = "number"
	TypeBoolean Type = "boolean"
	TypeFlag    Type = "flag"
	TypeTime    Type = "time"
	TypeBinary  Type = "binary"
	TypeList    Type = "list"
	TypeMap     Type = "map"
	TypeStrings Type = "strings" // a string set
	TypeNumbers Type = "numbers" // a number set
	TypeCommas  Type = "commas"  // a string that lists values with commas between them
	TypeAny     Type = "any"
)

// isScalar reports whether values of the type are single ones.
func isScalar(t Type) bool {
	switch t {
	case TypeList, TypeMap, TypeStrings, TypeNumbers:
		return false
	}
	return true
}

// Elements returns a value of the field as queries and filters compare it: of a text that lists values with commas between
// them the list of these, without the blanks around each; any other as it is.
func (f *Field) Elements(v value.Value) value.Value {
	if f.Type != TypeCommas || v.Kind() != value.String {
		return v
	}
	var vs []value.Value
	for part := range strings.SplitSeq(v.Text(), ",") {
		vs = append(vs, value.OfString(strings.TrimSpace(part)))
	}
	return value.OfList(vs...)
}

// checkFits reports a value that cannot be part of the key of the row that it should find: one of another type, or a
// constant that the where of such rows does not let pass.
// Names of a key fit anything that is one value, since a key is a text.
func (c *compiler) checkFits(at pos, what string, target *Entity, names []Assign) {
	for _, a := range names {
		f := a.Expr.Field
		if f == nil {
			c.findsNone(at, what, target, a)
			continue
		}
		want := target.Field(a.Name)
		if !isScalar(f.Type) || f.Key == nil && want.Key == nil && typesClash(f.Type, want.Type) {
			c.addFlaw(at, "", "%s finds %s by %s, and %s is a %s", what, target.Name, a.Name, f.Name, f.Type)
		}
	}
}

// findsNone reports a constant that no row of the target has under the name.
func (c *compiler) findsNone(at pos, what string, target *Entity, a Assign) {
	text := value.Scalar(a.Expr.Const)
	for _, w := range target.Where {
		if text != "" && w.Field.Name == a.Name && !w.Is.Holds(value.OfString(text)) {
			c.addFlaw(at, "", "%s never has an effect: it is for rows with the %s %q, and the where of %s lets none of them pass", what, a.Name, text, target.Name)
		}
	}
}

// typesClash reports whether no value can have both types.
func typesClash(a, b Type) bool {
	return typeFamily(a) != "" && typeFamily(b) != "" && typeFamily(a) != typeFamily(b)
}

// typeFamily groups the types that hold the same kind of value; "" fits any.
// Times, flags and lists with commas are texts in the table.
func typeFamily(t Type) Type {
	switch t {
	case TypeAny:
		return ""
	case TypeTime, TypeFlag, TypeCommas:
		return TypeString
	}
	return t
}

// readConstant is word, but reports a number or a boolean: it is not clear whether that means a
// field or a value.
func (n node) readConstant(what string) word {
	w := n.readWord(what)
	if tag := n.y.ShortTag(); w.isGiven() && tag != "!!str" {
		n.r.addFlaw(w.pos, "a constant is written ="+w.text, "%s must be the name of a field, not %s", what, w.text)
		return word{}
	}
	return w
}
