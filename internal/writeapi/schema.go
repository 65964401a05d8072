package writeapi

import (
	"encoding/json"
	"slices"

	"weir/internal/api"
	"weir/internal/model"
	"weir/internal/value"
)

// object is a JSON object. Written as JSON its names are in order, so that the same
// model gives the same bytes.
type object = map[string]any

// field is the schema of a field as it is given.
// The schema is the caller's to change. It allows all that the writer accepts, and no less.
func (e *entity) field(name string) object {
	s := api.TypeSchema(e.typeOf(name), true)
	if a := e.Attribute(name); a != nil {
		if a.Max > 0 {
			s["maxLength"] = a.Max
		}
		for limit, v := range map[string]value.Value{"minimum": a.Least, "maximum": a.Most} {
			if !v.IsMissing() {
				s[limit] = json.Number(v.Text())
			}
		}
		if a.Whole {
			s["type"] = "integer"
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
		return value.Scalar(v) == "true"
	}
	return v
}

// orNull is a schema that allows null besides: as good as nothing in a row that is
// given whole, and the value that removes a field in a merge.
func orNull(s object) object {
	if len(s) == 0 {
		return s // anything already
	}
	return object{"anyOf": []any{s, object{"type": "null"}}}
}

// whole is the schema of a row that is given whole, by a create or a put. A field of a new
// row gets by itself a create need not give; where there is a row already, a put need
// not give fields that no query returns.
func (e *entity) whole(create bool) object {
	props, required := object{}, []string{}
	for _, name := range e.InputNames() {
		if e.needs(name, create) {
			props[name] = e.field(name)
			required = append(required, name)
		} else {
			props[name] = orNull(e.field(name))
		}
	}
	flat := closed(props, required)
	if len(e.Nested) == 0 {
		return flat
	}
	return object{"anyOf": []any{flat, e.nest(props, required)}}
}

// needs reports whether a field must be given.
func (e *entity) needs(name string, create bool) bool {
	a, inKey := e.Attribute(name), slices.Contains(e.keys, name)
	made := slices.ContainsFunc(e.New, func(n model.New) bool { return n.Name == name })
	switch {
	case a != nil && !a.Default.IsMissing(), made && (create || !inKey):
		return false
	case inKey:
		return true
	}
	return a != nil && a.Required && (create || !a.Hidden)
}

// closed is an object with these members and no others.
func closed(props object, required []string) object {
	s := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// nest is the form in which attributes are members of objects.
// It shares the schemas in props with its result; neither may be changed afterwards.
func (e *entity) nest(props object, required []string) object {
	out, needed := object{}, []string{}
	inner, innerNeeded := map[string]object{}, map[string][]string{}
	for name, schema := range props {
		member, rest := e.MemberOf(name)
		switch {
		case member == "":
			out[name] = schema
		case inner[member] == nil:
			inner[member] = object{}
			fallthrough
		default:
			inner[member][rest] = schema
		}
	}
	for _, name := range required {
		member, rest := e.MemberOf(name)
		if member == "" {
			needed = append(needed, name)
			continue
		}
		innerNeeded[member] = append(innerNeeded[member], rest)
		if !slices.Contains(needed, member) {
			needed = append(needed, member)
		}
	}
	for member := range inner {
		out[member] = closed(inner[member], innerNeeded[member])
	}
	return closed(out, needed)
}

// puts reports whether a put has to give other fields than a create.
func (e *entity) puts() bool {
	return slices.ContainsFunc(e.InputNames(), func(name string) bool { return e.needs(name, true) != e.needs(name, false) })
}

// merge is the schema of the fields that are merged into a row: null removes a field that need
// not be there.
func (e *entity) merge() object {
	props := object{}
	for _, name := range e.InputNames() {
		if slices.Contains(e.keys, name) {
			continue // the query string names the row
		}
		s := e.field(name)
		delete(s, "default")
		if a := e.Attribute(name); a == nil || !a.Required {
			s = orNull(s)
		}
		props[name] = s
	}
	if len(e.Nested) == 0 {
		return closed(props, nil)
	}
	return object{"anyOf": []any{closed(props, nil), e.nest(props, nil)}}
}

// row is the schema of a row as it is answered: derived values are there too, the
// keys that the table has, and whatever others wrote besides.
// It is open: a row that others wrote may have more attributes than its model declares.
func (e *entity) row() object {
	return object{"type": "object", "properties": api.RowProperties(e.Entity)}
}
