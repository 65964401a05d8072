package model

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

// scalar reports whether values of the type are single ones.
func scalar(t Type) bool {
	switch t {
	case TypeList, TypeMap, TypeStrings, TypeNumbers:
		return false
	}
	return true
}

// checkKeyTypes reports a field whose type does not fit the name of the target's key that it
// sets.
func checkKeyTypes(c *compiler) {
	for _, t := range c.Tallies {
		if t.Group != nil { // checkGroupBy
			continue
		}
		for _, s := range t.Sources {
			c.fits(t.decl.name.pos, t.Name, t.Target, s.To)
		}
	}
	for _, f := range c.Follows {
		c.fits(f.Rule.decl.name.pos, f.Rule.Name+"."+f.Attr, f.Source, f.Key)
	}
}

// fits reports a value that cannot be part of the key of the row that it should find.
// Names of a key fit anything that is one value, since a key is a text.
func (c *compiler) fits(at pos, what string, target *Entity, names []Assign) {
	for _, a := range names {
		f := a.Expr.Field
		if f == nil {
			continue
		}
		want := target.Field(a.Name)
		if !scalar(f.Type) || f.Key == nil && want.Key == nil && clash(f.Type, want.Type) {
			c.report(at, "", "%s finds %s by %s, and %s is a %s", what, target.Name, a.Name, f.Name, f.Type)
		}
	}
}

// clash reports whether no value can have both types.
func clash(a, b Type) bool {
	return family(a) != "" && family(b) != "" && family(a) != family(b)
}

// family groups the types that hold the same kind of value; "" fits any.
// Times, flags and lists with commas are texts in the table.
func family(t Type) Type {
	switch t {
	case TypeAny:
		return ""
	case TypeTime, TypeFlag, TypeCommas:
		return TypeString
	}
	return t
}

// constant is word, but reports a number or a boolean: it is not clear whether that means a
// field or a value.
func (n node) constant(what string) word {
	w := n.word(what)
	if tag := n.y.ShortTag(); w.given() && tag != "!!str" {
		n.r.report(w.pos, "a constant is written ="+w.text, "%s must be the name of a field, not %s", what, w.text)
		return word{}
	}
	return w
}
