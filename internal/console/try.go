package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/value"
)

// Try are the tools of a process in which everything may be tried out.
type Try struct {
	// Kill ends the follower of a model's streams in the middle of its work, as a crash
	// would, and starts it again. It returns how often it has done so.
	// It returns without waiting until the follower has caught up. Nothing is lost by it: the
	// follower begins at its checkpoints.
	Kill func(model string) int
}

// tryPage has the tools.
type tryPage struct {
	Entities     []link
	Kills        int
	Killed       bool
	Kill, Health string
}

// try is the page of tools: GET /console/{model}/try, in a console that may act and has them.
// Rows of derived entities cannot be made by hand, and are not offered.
func (c *Console) try(r *request) error {
	p := tryPage{Kill: r.path("/kill"), Health: r.path("/health") + "#verify"}
	p.Kills, _ = strconv.Atoi(r.param("kills"))
	p.Killed = p.Kills > 0
	for _, e := range r.part.Model.Entities {
		if !e.Derived {
			p.Entities = append(p.Entities, link{Text: e.Name, Href: r.path("/new/" + url.PathEscape(e.Name))})
		}
	}
	return r.ok("try", "Try", &p)
}

// killFollower ends the follower and starts it again.
func (c *Console) killFollower(r *request) error {
	n := c.options.Try.Kill(r.part.Model.Name)
	return r.redirectTo(r.path("/try", "kills", strconv.Itoa(n)))
}

// newPage is a form for a row of an entity.
type newPage struct {
	Entity  string
	Action  string
	Fields  []newField
	Refused []string // the fault of the row as a whole
	Done    string
	Row     *link
}

// newField is an attribute in the form, with its rule in words.
type newField struct {
	Name, Type, Rule, Value string
	Key                     bool
	OneOf                   []string
	Mistakes                []string
}

// entity returns the entity in the path, which applications write.
func (r *request) entity() (*model.Entity, error) {
	e := r.part.Model.Entity(r.PathValue("entity"))
	if e == nil || e.Derived {
		return nil, &mistake{http.StatusNotFound, "The model has no entity of this name that applications write."}
	}
	return e, nil
}

// newRow is an empty form for a row of an entity that applications write.
func (c *Console) newRow(r *request) error {
	e, err := r.entity()
	if err != nil {
		return err
	}
	return r.ok("new", "A row of "+e.Name, c.formOf(r, e))
}

// formOf makes the form from the entity: the fields that a command may give, keys first.
// Computed attributes have no field. The sent values are in the form again, so that a mistake costs no
// retyping.
func (c *Console) formOf(r *request, e *model.Entity) *newPage {
	p := &newPage{Entity: e.Name, Action: r.path("/new/" + url.PathEscape(e.Name))}
	names := slices.Clone(e.KeyNames())
	for _, name := range e.InputNames() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		f := newField{Name: name, Type: string(e.Field(name).Type), Key: slices.Contains(e.KeyNames(), name), Value: r.PostForm.Get("field." + name)}
		if f.Key {
			f.Rule = "part of the key"
		}
		if a := e.Attribute(name); a != nil {
			f.Type, f.OneOf = string(a.Type), a.Enum
			if a.Type == model.TypeBoolean {
				f.OneOf = []string{"true", "false"}
			}
			if a.Required && !f.Key {
				f.Rule = "required"
			}
		}
		p.Fields = append(p.Fields, f)
	}
	return p
}

// write writes a row with the rules of ingest, and shows a mistake at its field.
// A field that is left empty is absent from the command. For a deletion only the key counts. The
// row is written by the same code as over HTTP, with unique values, defaults and conditions;
// refusals are 422.
func (c *Console) write(r *request) error {
	e, err := r.entity()
	if err != nil {
		return err
	}
	op := ingest.Op(r.PostForm.Get("action"))
	if op != ingest.Create && op != ingest.Put && op != ingest.Delete {
		return errNoAction
	}
	p := c.formOf(r, e)
	var attrs []value.Attr
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Value == "" || op == ingest.Delete && !f.Key {
			continue
		}
		v, err := typedIn(model.Type(f.Type), f.Value)
		if err != nil {
			f.Mistakes = append(f.Mistakes, err.Error())
			continue
		}
		attrs = append(attrs, value.Attr{Name: f.Name, Value: v})
	}
	if slices.ContainsFunc(p.Fields, func(f newField) bool { return len(f.Mistakes) > 0 }) {
		return r.renderPage(http.StatusUnprocessableEntity, "new", "A row of "+e.Name, p)
	}
	to := &ingest.Writer{Model: r.part.Model, Store: c.system.Store}
	res := to.Do(r.ctx, []ingest.Command{{Op: op, Entity: e.Name, Item: value.NewItem(attrs...)}})[0]
	var no *ingest.Refusal
	switch {
	case errors.As(res.Err, &no):
		p.placeProblems(no)
		return r.renderPage(http.StatusUnprocessableEntity, "new", "A row of "+e.Name, p)
	case res.Err != nil:
		return res.Err
	}
	p.Done = "The row is " + string(res.Done) + "."
	return r.ok("new", "A row of "+e.Name, p)
}

// placeProblems puts each problem at its field.
// A problem of no field of the page is listed above the form. Pointers are JSON Pointers (RFC
// 6901).
func (p *newPage) placeProblems(no *ingest.Refusal) {
	for _, one := range no.Problems {
		name, _, _ := strings.Cut(strings.TrimPrefix(one.Pointer, "/"), "/")
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		i := slices.IndexFunc(p.Fields, func(f newField) bool { return f.Name == name })
		if one.Pointer == "" || i < 0 {
			p.Refused = append(p.Refused, brief(one.String(), longRunes))
			continue
		}
		p.Fields[i].Mistakes = append(p.Fields[i].Mistakes, brief(one.Reason, cellRunes))
	}
}

// typedIn reads the text that a person typed for an attribute of a type. A list, a set and a map are JSON.
// A text that is no number or boolean is returned as a text, so that it is refused at its field; only
// wrong JSON is an error.
func typedIn(t model.Type, s string) (value.Value, error) {
	switch t {
	case model.TypeNumber:
		if v, err := value.ParseNumber(s); err == nil {
			return v, nil
		}
		return value.OfString(s), nil // refused at the field
	case model.TypeBoolean:
		if s == "true" || s == "false" {
			return value.OfBool(s == "true"), nil
		}
		return value.OfString(s), nil
	case model.TypeList, model.TypeMap, model.TypeStrings, model.TypeNumbers:
		it, err := ingest.ReadItem([]byte(`{"v":` + s + `}`))
		if err != nil || len(it) != 1 {
			return value.Value{}, fmt.Errorf("is JSON, such as %s", map[bool]string{true: `{"a": 1}`, false: `["a", "b"]`}[t == model.TypeMap])
		}
		return it.Get("v"), nil
	}
	return value.OfString(s), nil
}

// ifTry has h answer where there are tools to try things out.
// Anywhere else the page does not exist, as for a path that was never there.
func (c *Console) ifTry(h func(*request) error) func(*request) error {
	return func(r *request) error {
		if c.options.Try == nil || !c.options.Write {
			return errNothing
		}
		return h(r)
	}
}
