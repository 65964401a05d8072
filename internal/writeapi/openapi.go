package writeapi

import (
	"maps"

	"weir/internal/api"
	"weir/internal/model"
	"weir/internal/seq"
)

// describe is the OpenAPI 3.1 description of the API. It depends on nothing but the
// models, and the same models give the same bytes.
func (a *API) describe(keyed, queries bool) ([]byte, error) {
	d := &description{paths: api.OwnPaths("Whether rows can be written now."), schemas: object{"Problem": api.ProblemSchema, "Results": resultsSchema}}
	tags := []object{}
	for _, t := range a.targets {
		for _, e := range t.entities {
			tags = append(tags, object{"name": t.Model.Name + "." + e.Name})
			d.describeEntity(t.Model, e)
		}
		d.describeBatch(t)
	}
	if queries {
		d.describeQueries(a.targets)
	}
	components := object{"schemas": d.schemas, "responses": api.Problems(append(ofWrites, api.Always...)), "headers": headers}
	return api.Document(object{"tags": tags, "paths": d.paths, "components": components}, about, keyed)
}

// describeQueries adds the paths of queries, which Beside answers at the same address. A GET of a name
// that is both a query and an entity is the query.
func (d *description) describeQueries(targets []*target) {
	models := seq.Map(targets, func(t *target) *model.Model { return t.Model })
	also := api.Describe(models)
	for path, item := range also.Paths {
		if have, ok := d.paths[path].(object); ok {
			have["get"] = item.(object)["get"]
			continue
		}
		d.paths[path] = item
	}
	maps.Copy(d.schemas, also.Schemas)
}

// about is the description's text for people.
const about = "Writes of rows, checked against their models. Fields of the key may be given in the body, as query parameters, or both ways alike."

// description gathers the parts of the document. Two entities never share a schema's name within a model.
type description struct{ paths, schemas object }

// ofWrites are the problems that only writes can meet.
var ofWrites = []int{409, 410, 412, 413, 415}

// ref is a reference to a component.
func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// headers are the headers of answers, as components.
var headers = object{
	"ETag":                object{"description": "The row's revision.", "schema": object{"type": "string"}},
	"Location":            object{"description": "The path of the row.", "schema": object{"type": "string", "format": "uri-reference"}},
	"Idempotent-Replayed": object{"description": "true where the answer is of the same request before.", "schema": object{"type": "string", "enum": []string{"true"}}},
}

// resultsSchema describes outcome. A field that is added there has to be added here.
var resultsSchema = object{
	"type":     "object",
	"required": []string{"results"},
	"properties": object{"results": object{"type": "array", "items": object{
		"type":     "object",
		"required": []string{"status"},
		"properties": object{
			"status":   object{"type": "integer", "description": "As it would be by itself."},
			"done":     object{"enum": []string{"created", "replaced", "updated", "deleted", "unchanged"}},
			"repeated": object{"type": "boolean"},
			"location": object{"type": "string"},
			"revision": object{"type": "string"},
			"problem":  ref("schemas", "Problem"),
		},
	}}},
}

// describeEntity describes the path of an entity's rows.
// Answers are described loosely where rows may come from other programs, which keep no rule of the
// model.
func (d *description) describeEntity(m *model.Model, e *entity) {
	name := api.ComponentName(m.Name + "." + e.Name)
	d.schemas[name] = e.row()
	d.schemas[name+".Whole"] = e.whole(true)
	put := ".Whole"
	if e.puts() {
		put = ".Put"
		d.schemas[name+put] = e.whole(false)
	}
	d.schemas[name+".Merge"] = e.merge()
	row := api.JSONOf(ref("schemas", name))
	ok := func(about string, extra ...string) object {
		h := object{"ETag": ref("headers", "ETag")}
		for _, x := range extra {
			h[x] = ref("headers", x)
		}
		return object{"description": about, "headers": h, "content": row}
	}
	op := func(verb, summary string, params []object, responses object, statuses ...int) object {
		return object{
			"operationId": verb + "." + name, "summary": summary, "tags": []string{m.Name + "." + e.Name},
			"parameters": params, "responses": api.WithProblems(api.WithProblems(responses, api.Always...), statuses...),
		}
	}
	body := func(schema string, types ...string) object {
		content := object{}
		for _, t := range types {
			content[t] = object{"schema": ref("schemas", name+schema)}
		}
		return object{"required": true, "content": content}
	}
	with := func(o object, body object) object { o["requestBody"] = body; return o }
	const typed = "application/json"
	d.paths["/v1/"+m.Name+"/"+e.Name] = object{
		"get": op("get", "One row.", e.parameters(true), object{"200": ok("The row.")}),
		"post": with(op("create", "Create a row where there is none.", e.parameters(false, onceHeader),
			object{"201": ok("It is created.", "Location"), "200": ok("It was created by this request before.", "Idempotent-Replayed")}, 409, 410, 412, 413, 415), body(".Whole", typed)),
		"put": with(op("put", "Create a row, or replace what the application wrote of it.", e.parameters(false, onceHeader, ifMatchHeader),
			object{"201": ok("It is created.", "Location"), "200": ok("It is replaced.")}, 409, 410, 412, 413, 415), body(put, typed)),
		"patch": with(op("update", "Merge fields into a row; null removes one.", e.parameters(true, onceHeader, ifMatchHeader),
			object{"200": ok("It is merged.")}, 409, 410, 412, 413, 415), body(".Merge", typed, "application/merge-patch+json")),
		"delete": op("delete", "Remove a row; one that is gone already is no mistake.", e.parameters(true, onceHeader, ifMatchHeader),
			object{"204": object{"description": "It is gone."}}, 409, 412, 413, 415),
	}
}

var (
	// onceHeader and ifMatchHeader are checked by the patterns that the description shows, so the two cannot differ.
	onceHeader = object{"name": "Idempotency-Key", "in": "header", "description": "The same request sent again with the same key is the same write.",
		"schema": object{"type": "string", "pattern": idempotencyKeys.String()}}
	ifMatchHeader = object{"name": "If-Match", "in": "header", "description": "The ETag of the row that is meant, or *.",
		"schema": object{"type": "string", "pattern": ifMatches.String()}}
)

// parameters are the fields of the key, where they name the row, and headers.
func (e *entity) parameters(keys bool, more ...object) []object {
	out := []object{}
	if keys {
		for _, k := range e.keys {
			out = append(out, object{"name": k, "in": "query", "required": true, "schema": e.field(k)})
		}
	}
	return append(out, more...)
}

// describeBatch describes the path for many commands.
// A command that is no command is answered by a problem of its own, so the description allows any
// object.
func (d *description) describeBatch(t *target) {
	name := api.ComponentName(t.Model.Name)
	d.schemas[name+".Command"] = object{
		"type":     "object",
		"required": []string{"op", "entity", "item"},
		"properties": object{
			"op":             object{"enum": []string{"create", "put", "update", "delete"}},
			"entity":         object{"enum": t.names},
			"item":           object{"type": "object", "description": "The fields, as in the body of a single request."},
			"idempotencyKey": object{"type": "string", "minLength": 1, "maxLength": maxIdempotencyKey},
			"ifMatch":        object{"type": "string", "minLength": 1, "description": "A revision, or *."},
		},
		"additionalProperties": false,
	}
	content := api.JSONOf(object{"type": "array", "maxItems": maxCommands, "items": object{
		"anyOf": []any{ref("schemas", name+".Command"), object{"type": "object", "description": "Anything else is answered by its own problem."}},
	}})
	for _, one := range linesTypes {
		content[one] = object{"schema": object{"type": "string", "description": "A command a line."}}
	}
	d.paths["/v1/"+t.Model.Name+"/batch"] = object{"post": object{
		"operationId": "batch." + name, "summary": "Many commands; each is answered by itself.",
		"requestBody": object{"required": true, "content": content},
		"responses": api.WithProblems(api.WithProblems(object{"200": object{"description": "What became of each.", "content": api.JSONOf(ref("schemas", "Results"))}},
			api.Always...), 413, 415),
	}}
}
