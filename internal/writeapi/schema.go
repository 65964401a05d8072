package writeapi

import (
	"encoding/json"
	"slices"

	"weir/internal/model"
	"weir/internal/value"
)

// object is a JSON object. Written as JSON its names are in order, so that the same
// model gives the same bytes.
type object = map[string]any

// limits of a number that a table can hold.
const (
	least = json.Number("-9.9999999999999999999999999999999999999E+125")
	most  = json.Number("9.9999999999999999999999999999999999999E+125")
)

// typeSchema says what values of a type are as people read and, given, as they
// write them: a flag may then be its word too.
func typeSchema(t model.Type, given bool) object {
	switch t {
	case model.TypeString:
		return object{"type": "string"}
	case model.TypeNumber:
		return object{"type": "number", "minimum": least, "maximum": most}
	case model.TypeBoolean:
		return object{"type": "boolean"}
	case model.TypeFlag:
		if given {
			return object{"enum": []any{true, false, "true", "false"}}
		}
		return object{"type": "boolean"}
	case model.TypeTime:
		return object{"type": "string", "format": "date-time"}
	case model.TypeBinary:
		return object{"type": "string", "contentEncoding": "base64"}
	case model.TypeList:
		return object{"type": "array"}
	case model.TypeMap:
		return object{"type": "object"}
	case model.TypeStrings:
		return object{"type": "array", "items": object{"type": "string"}, "minItems": 1, "uniqueItems": true}
	case model.TypeNumbers:
		return object{"type": "array", "items": object{"type": "number"}, "minItems": 1, "uniqueItems": true}
	case model.TypeCommas:
		return object{"type": "string"}
	}
	return object{}
}

// fields are the names that people give, in order: the attributes, and what stands
// only in the key.
func (e *entity) fields() []string {
	var out []string
	for _, a := range e.Attributes {
		out = append(out, a.Name)
	}
	for _, k := range e.keys {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// field is the schema of a field as it is given.
func (e *entity) field(name string) object {
	s := typeSchema(e.typeOf(name), true)
	if a := e.Attribute(name); a != nil {
		if a.Max > 0 {
			s["maxLength"] = a.Max
		}
		if len(a.Enum) > 0 {
			s["enum"] = a.Enum
		}
		if !a.Default.IsMissing() {
			s["default"] = plain(a.Type, a.Default)
		}
	}
	if s["type"] == "string" && slices.Contains(e.keys, name) {
		s["minLength"] = 1
	}
	return s
}

// plain is a default as people read it.
func plain(t model.Type, v value.Value) any {
	if t == model.TypeFlag {
		return model.Scalar(v) == "true"
	}
	return v
}

// orNull is a schema that allows null besides: as good as nothing in a row that is
// given whole, and what removes a field in a merge.
func orNull(s object) object {
	if len(s) == 0 {
		return s // anything already
	}
	return object{"anyOf": []any{s, object{"type": "null"}}}
}

// whole is the schema of a row that is given whole. Where there is a row already, what
// nobody can read need not be given.
func (e *entity) whole(hidden bool) object {
	props, required := object{}, []string{}
	for _, name := range e.fields() {
		props[name] = e.field(name)
		a := e.Attribute(name)
		switch {
		case slices.Contains(e.keys, name) || a != nil && a.Required && a.Default.IsMissing() && (hidden || !a.Hidden):
			required = append(required, name)
		default:
			props[name] = orNull(e.field(name))
		}
	}
	s := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// hides reports whether the entity has attributes that nobody can read.
func (e *entity) hides() bool {
	return slices.ContainsFunc(e.Attributes, func(a *model.Attribute) bool { return a.Hidden })
}

// merge is the schema of what is merged into a row: null removes a field that need
// not be there.
func (e *entity) merge() object {
	props := object{}
	for _, name := range e.fields() {
		if slices.Contains(e.keys, name) {
			continue // the query string names the row
		}
		s := e.field(name)
		delete(s, "default")
		if a := e.Attribute(name); a != nil && !a.Required {
			s = orNull(s)
		}
		props[name] = s
	}
	return object{"type": "object", "properties": props, "additionalProperties": false}
}

// row is the schema of a row as it is answered: what is derived is there too, the
// keys that the table has, and whatever others wrote besides.
func (e *entity) row() object {
	props := object{}
	for _, name := range e.fields() {
		a := e.Attribute(name)
		if a == nil || a.Hidden {
			continue
		}
		s := typeSchema(a.Type, false)
		if a.Type == model.TypeTime {
			delete(s, "format") // a row that others wrote has what they wrote
		}
		props[name] = s
	}
	for _, t := range e.Values {
		if !t.Hidden && t.Kind != model.Set {
			props[t.Attr] = object{"type": "number", "readOnly": true}
		}
	}
	return object{"type": "object", "properties": props}
}
