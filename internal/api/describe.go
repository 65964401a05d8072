package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"strconv"

	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/seq"
)

// object is a JSON object. Written as JSON its names are in order, so that the same model
// gives the same bytes.
type object = map[string]any

// limits of a number that a table can hold.
const (
	least = json.Number("-9.9999999999999999999999999999999999999E+125")
	most  = json.Number("9.9999999999999999999999999999999999999E+125")
)

// TypeSchema describes values of a type as people read and, given, as they
// write them: a flag may then be its word too.
// The schema is the caller's to change. A type without a schema of its own gives an empty one, which allows all.
func TypeSchema(t model.Type, given bool) object {
	switch t {
	case model.TypeString:
		return object{"type": "string"}
	case model.TypeNumber:
		return object{"type": "number", "minimum": least, "maximum": most}
	case model.TypeBoolean:
		return object{"type": "boolean"}
	case model.TypeFlag:
		if given {
			return object{"anyOf": []any{object{"type": "boolean"}, object{"type": "string", "enum": []any{"true", "false"}}}}
		}
		return object{"type": "boolean"}
	case model.TypeTime:
		return object{"type": "string", "format": "date-time"}
	case model.TypeBinary:
		return object{"type": "string", "contentEncoding": "base64"}
	case model.TypeList:
		return object{"type": "array", "items": object{}}
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

// Description is the part of an OpenAPI 3.1 description that describes queries.
// The caller owns the maps and may add to them, as writeapi does.
type Description struct{ Paths, Schemas map[string]any }

// describe is the whole document, for a server that only answers queries.
// It is made once, when the API is; requests get the same bytes.
func (a *API) describe() ([]byte, error) {
	d := Describe(seq.Map(a.engines, func(e *query.Engine) *model.Model { return e.Model }))
	maps.Copy(d.Paths, OwnPaths("Whether queries can be answered now."))
	doc := object{"paths": d.Paths, "components": object{"schemas": d.Schemas, "responses": Problems(Always)}}
	return Document(doc, "Queries of models.", a.options.Keyed)
}

// OwnPaths describes the two paths that belong to no model.
func OwnPaths(health string) map[string]any {
	return object{
		"/openapi.json": object{"get": object{
			"operationId": "openapi", "summary": "This description.",
			"responses": WithProblems(object{"200": object{"description": "It.", "content": JSONOf(object{"type": "object"})}}, 401, 421),
		}},
		"/healthz": object{"get": object{
			"operationId": "health", "summary": health, "security": []object{},
			"responses": WithProblems(object{"200": object{"description": "Yes.", "content": JSONOf(object{"type": "object", "required": []string{"status"}})}}, 503),
		}},
	}
}

// Document completes an OpenAPI 3.1 description that has paths and components, and returns it as JSON.
func Document(doc map[string]any, about string, keyed bool) ([]byte, error) {
	doc["openapi"], doc["jsonSchemaDialect"] = "3.1.0", "https://spec.openapis.org/oas/3.1/dialect/base"
	doc["info"] = object{"title": "weir", "version": "1", "description": about}
	doc["servers"] = []object{{"url": "/"}}
	if keyed {
		doc["components"].(object)["securitySchemes"] = object{"key": object{"type": "http", "scheme": "bearer"}}
		doc["security"] = []object{{"key": []string{}}}
	}
	b, err := json.Marshal(doc)
	return append(b, '\n'), err
}

// problemTexts are the statuses of problems, and the text of each.
var problemTexts = map[int]string{
	http.StatusBadRequest:            "The request is not one: no JSON, or a header, a parameter or a cursor that is wrong.",
	http.StatusUnauthorized:          "A key is needed.",
	http.StatusNotFound:              "There is no such row, or no such name.",
	http.StatusConflict:              "The row exists, another has what must be unique, or a status would go back.",
	http.StatusGone:                  "It was done before, by its idempotency key, and the row was removed since.",
	http.StatusPreconditionFailed:    "The row is not the one that If-Match names.",
	http.StatusRequestEntityTooLarge: "The body is too large, or the row would be.",
	http.StatusRequestURITooLong:     "The query string is too long.",
	http.StatusUnsupportedMediaType:  "The body is of another type.",
	http.StatusMisdirectedRequest:    "The server is asked by a name that it does not have.",
	http.StatusUnprocessableEntity:   "Fields are not right, and each is listed; or a query would cost more than a page may.",
	http.StatusTooManyRequests:       "Too much in a short time.",
	http.StatusInternalServerError:   "Something is wrong with the server.",
	http.StatusServiceUnavailable:    "The store does not answer, or too much is asked at once; whether a write was done is not known: send it again.",
}

// Always are the problems that any request can meet.
var Always = []int{400, 401, 404, 414, 421, 422, 429, 500, 503}

// Problems are the responses with the statuses, as components, with the headers that each has.
func Problems(statuses []int) map[string]any {
	out := object{}
	for _, status := range statuses {
		r := object{"description": problemTexts[status], "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
		switch status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			r["headers"] = object{"Retry-After": object{"description": "Seconds to wait.", "schema": object{"type": "string", "pattern": "^[0-9]+$"}}}
		case http.StatusUnauthorized:
			r["headers"] = object{"WWW-Authenticate": object{"schema": object{"type": "string"}}}
		}
		out["Problem"+strconv.Itoa(status)] = r
	}
	return out
}

// WithProblems adds references to the problems with the statuses, and returns responses.
func WithProblems(responses map[string]any, statuses ...int) map[string]any {
	for _, s := range statuses {
		responses[strconv.Itoa(s)] = object{"$ref": "#/components/responses/Problem" + strconv.Itoa(s)}
	}
	return responses
}

// ProblemSchema is the schema of a problem, as of RFC 9457.
var ProblemSchema = object{
	"type":     "object",
	"required": []string{"type", "title", "status", "detail"},
	"properties": object{
		"type":   object{"type": "string", "format": "uri"},
		"title":  object{"type": "string"},
		"status": object{"type": "integer"},
		"detail": object{"type": "string"},
		"errors": object{"type": "array", "items": object{
			"type":     "object",
			"required": []string{"message"},
			"properties": object{
				"pointer":   object{"type": "string", "description": "RFC 6901, into the body."},
				"parameter": object{"type": "string"},
				"message":   object{"type": "string"},
			},
		}},
		"id": object{"type": "string", "description": "Under which the server's log has more."},
	},
}

// JSONOf is content of JSON with a schema.
func JSONOf(schema object) object { return object{"application/json": object{"schema": schema}} }

// Describe describes the queries of models. It depends on nothing but the models, and the
// same models give the same bytes.
func Describe(models []*model.Model) Description {
	d := Description{Paths: object{}, Schemas: object{"Problem": ProblemSchema}}
	for _, m := range models {
		for _, q := range m.Queries {
			d.describeQuery(m, q)
		}
	}
	return d
}

// describeQuery describes the path of a query.
func (d *Description) describeQuery(m *model.Model, q *model.Query) {
	items := object{"type": "object"}
	if len(q.Return) == 0 {
		items = d.rows(m, q)
	}
	params := append(seq.Map(query.Described(q), parameterOf),
		object{"name": "limit", "in": "query", "description": "The most rows of a page.", "schema": object{"type": "integer", "minimum": 1, "maximum": query.MaxLimit}},
		object{"name": "cursor", "in": "query", "description": "The cursor of the page before.", "schema": object{"type": "string"}},
		object{"name": "select", "in": "query", "description": "The attributes to answer, with commas between them.", "schema": object{"type": "string", "minLength": 1}})
	responses := WithProblems(object{"200": object{
		"description": "A page. Only one without a cursor is the last.",
		"headers":     object{Unfinished: object{"description": "Derivations, and the index of a search, whose build is not complete, or that read a table whose stream is off.", "schema": object{"type": "string"}}},
		"content": JSONOf(object{"type": "object", "required": []string{"items"}, "properties": object{
			"items": object{"type": "array", "items": items}, "cursor": object{"type": "string"},
		}}),
	}}, Always...)
	d.Paths["/v1/"+m.Name+"/"+q.Name] = object{"get": object{
		"operationId": "query." + m.Name + "." + q.Name, "summary": "The query " + q.Name + ".", "tags": []string{m.Name},
		"parameters": params, "responses": responses,
	}}
}

// parameterOf describes a parameter as OpenAPI has it: a list is one text with commas, since a query string is read so.
func parameterOf(p query.Parameter) object {
	s := TypeSchema(p.Type, true)
	if p.Type == model.TypeTime {
		s = object{"type": "string", "description": "A time of RFC 3339, or a date."}
	}
	if p.Type.IsList() || p.Type == model.TypeAny || p.Type == model.TypeMap {
		s = object{"type": "string"}
	}
	if p.OneOf != nil {
		s["enum"] = p.OneOf
	}
	out := object{"name": p.Name, "in": "query", "required": !p.Optional, "schema": s}
	if p.List {
		out["schema"], out["style"], out["explode"] = object{"type": "array", "items": s}, "form", false
	}
	if p.Default != "" {
		out["description"] = "Left out, it is " + p.Default + "."
	}
	return out
}

// rows is the schema of the rows that a query answers.
// A query that answers several entities marks each row with its entity, by which the schemas are told apart.
func (d *Description) rows(m *model.Model, q *model.Query) object {
	if q.Search != nil {
		return d.row(m, q.Search.Of)
	}
	last := q.Steps[len(q.Steps)-1]
	if len(last.Also) == 0 {
		return d.row(m, last.Entity)
	}
	var any []object
	for _, e := range append([]*model.Entity{last.Entity}, last.Also...) {
		any = append(any, object{"allOf": []object{d.row(m, e), {
			"required": []string{query.EntityMark}, "properties": object{query.EntityMark: object{"const": e.Name}},
		}}})
	}
	return object{"oneOf": any}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// ComponentName is a name of a component: each other character becomes "_".
func ComponentName(name string) string { return notInNames.ReplaceAllString(name, "_") }

// row is the schema of an entity's rows as queries answer them, by reference.
func (d *Description) row(m *model.Model, e *model.Entity) object {
	name := ComponentName(m.Name+"."+e.Name) + ".Row"
	if d.Schemas[name] == nil {
		d.Schemas[name] = object{"type": "object", "properties": RowProperties(e)}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// RowProperties are the schemas of the attributes of an entity's rows as they are answered:
// declared and derived attributes, and the names that only the key holds.
// An attribute that the model hides is not among them.
func RowProperties(e *model.Entity) map[string]any {
	props := object{}
	for _, k := range e.PrimaryKey() {
		for _, n := range k.Template.Names() {
			if e.SetOf() == nil || n != model.Leaf {
				props[n] = TypeSchema(e.Field(n).Type, false)
			}
		}
	}
	for _, a := range e.Attributes {
		if delete(props, a.Name); a.Hidden {
			continue
		}
		s := TypeSchema(a.Type, false)
		if a.Type == model.TypeTime {
			delete(s, "format") // a row that others wrote is as they wrote it
		}
		if a.Computed != nil {
			s["readOnly"] = true
		}
		if !a.Required {
			orNull(s)
		}
		props[a.Name] = s
	}
	for _, t := range e.Values {
		if t.Shows() {
			props[t.Attr] = object{"type": "number", "readOnly": true}
		}
	}
	for _, l := range e.Latest {
		for _, a := range l.Set {
			s := object{}
			if f := a.Expr.Field; f != nil {
				s = TypeSchema(f.Type, false)
			}
			delete(s, "format")
			s["readOnly"] = true
			props[a.Name] = orNull(s)
		}
	}
	return props
}

// orNull lets a schema take null, which rows that others wrote may have where nothing is required.
// It changes s, and returns it.
func orNull(s object) object {
	if t, ok := s["type"].(string); ok {
		s["type"] = []string{t, "null"}
	}
	if e, ok := s["enum"].([]any); ok {
		s["enum"] = append(e, nil)
	}
	if any, ok := s["anyOf"].([]any); ok {
		s["anyOf"] = append(any, object{"type": "null"})
	}
	return s
}
