package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/seq"
	"weir/internal/value"
)

// queryLine is a query with its parameters; those in brackets may be left out.
type queryLine struct {
	Query      link
	Search     bool
	Parameters string
}

// listQueries lists the queries of a model with their parameters, optional ones in brackets. No row is
// read.
func (c *Console) listQueries(r *request) error {
	var all []queryLine
	for _, q := range r.part.Model.Queries {
		var names []string
		for _, a := range r.part.Query.Parameters(q.Name) {
			if a.Optional {
				names = append(names, "["+a.Name+"]")
			} else {
				names = append(names, a.Name)
			}
		}
		all = append(all, queryLine{link{q.Name, r.path("/query/" + url.PathEscape(q.Name)), false}, q.Search != nil, strings.Join(names, " ")})
	}
	return r.ok("queries", "Queries", all)
}

// queryPage is a form for a query and, once it was sent, the answer.
type queryPage struct {
	Name    string
	Action  string
	Search  bool
	Fields  []field
	Asked   bool
	Columns []string
	Rows    [][]shown
	Next    string
	Later   bool
	// Took is the time of the query alone. Curl and API are the same question for the HTTP API, and
	// the command holds no key: it names an environment variable.
	Took string
	Curl string
	API  string
	// Unfinished names derivations whose build is not complete, so that their values in the answer
	// may be absent or old.
	Unfinished string
	Refused    string
}

// field is a parameter in the form, with the typed text and its fault.
type field struct {
	query.Parameter
	Value   string
	Mistake string
}

// query is the form of a named query with its answer: GET /console/{model}/query/{query}. A query
// without required parameters is asked at once. A mistake of the reader is shown at the field
// with the status 200; another answer of the store is an error.
func (c *Console) query(r *request) error {
	name := r.PathValue("query")
	q := r.part.Model.Query(name)
	if q == nil {
		return &mistake{http.StatusNotFound, "The model has no query of this name."}
	}
	p := queryPage{Name: name, Action: r.path("/query/" + url.PathEscape(name)), Search: q.Search != nil, Later: r.param("cursor") != ""}
	params := map[string]string{}
	given := r.URL.Query()
	required := false
	for _, a := range r.part.Query.Parameters(name) {
		v := given.Get(a.Name)
		if v != "" {
			params[a.Name] = v
		}
		required = required || !a.Optional
		p.Fields = append(p.Fields, field{Parameter: a, Value: v})
	}
	p.Asked = given.Has("ask") || len(params) > 0 || !required
	if !p.Asked {
		return r.ok("query", name, &p)
	}
	p.API = "/v1/" + url.PathEscape(r.part.Model.Name) + "/" + url.PathEscape(name) + "?" + apiQuery(params)
	p.Curl = curl("http://"+r.Host+p.API, r.Header.Get("Authorization") != "")
	began := time.Now()
	res, err := r.part.Query.Run(r.ctx, name, params, query.Page{Limit: pageRows, Cursor: r.param("cursor")})
	p.Took = took(time.Since(began))
	if err := p.noteRefusal(err); err != nil {
		return err
	}
	p.Unfinished = strings.Join(res.Unfinished, ", ")
	p.fillTable(q, res.Items)
	if res.Cursor != "" {
		pairs := []string{"ask", "1", "cursor", res.Cursor}
		for _, k := range slices.Sorted(maps.Keys(params)) {
			pairs = append(pairs, k, params[k])
		}
		p.Next = r.path("/query/"+url.PathEscape(name), pairs...)
	}
	return r.ok("query", name, &p)
}

// noteRefusal notes a mistake that the reader can correct, and returns any other error.
// A mistake that names no field of the page is shown above the form.
func (p *queryPage) noteRefusal(err error) error {
	var bad *query.ParameterError
	switch {
	case errors.As(err, &bad):
		for _, one := range bad.Problems {
			i := slices.IndexFunc(p.Fields, func(f field) bool { return f.Name == one.Parameter })
			if i < 0 {
				p.Refused = one.Parameter + " " + one.Message
				continue
			}
			p.Fields[i].Mistake = one.Message
		}
		if p.Refused == "" {
			p.Refused = "A parameter is wrong."
		}
	case errors.Is(err, query.ErrCursor), errors.Is(err, query.ErrUnavailable), errors.Is(err, query.ErrBuilding), errors.Is(err, query.ErrTooMuch):
		p.Refused = err.Error()
	default:
		return err
	}
	return nil
}

// mostAnswered is how many attributes of an answer have columns.
const mostAnswered = 10

// answered returns the entity that the rows of a query are of, nil if it makes rows of several, and
// the attributes that say most of a row, in order.
func answered(q *model.Query) (e *model.Entity, order []string) {
	switch {
	case q.Search != nil:
		e = q.Search.Of
		order = append(order, seq.Map(q.Search.Text, func(f *model.Field) string { return f.Attr })...)
	case len(q.Steps) == 1:
		e = q.Steps[0].Entity
	default:
		return nil, nil
	}
	return e, append(order, telling(e)...)
}

// fillTable makes a table of rows, with the columns that say most first. Attributes that are only keys
// come last.
func (p *queryPage) fillTable(q *model.Query, rows []value.Item) {
	e, order := answered(q)
	rank := func(name string) int {
		if at := slices.Index(order, name); at >= 0 {
			return at
		}
		if e != nil && isKey(e.Table, name) {
			return len(order) + 1
		}
		return len(order)
	}
	for _, row := range rows {
		for _, a := range row {
			if !slices.Contains(p.Columns, a.Name) {
				p.Columns = append(p.Columns, a.Name)
			}
		}
	}
	slices.SortStableFunc(p.Columns, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	p.Columns = p.Columns[:min(len(p.Columns), mostAnswered)]
	for _, row := range rows {
		cells := make([]shown, len(p.Columns))
		for i, name := range p.Columns {
			cells[i] = show(row.Get(name), 60)
		}
		p.Rows = append(p.Rows, cells)
	}
}

// apiQuery encodes parameters with the page's limit, in the order of their names.
func apiQuery(params map[string]string) string {
	values := url.Values{}
	for k, v := range params {
		values.Set(k, v)
	}
	values.Set("limit", fmt.Sprint(pageRows))
	return values.Encode()
}

// curl returns a command for a shell. The URL is encoded, so that it has no quote.
func curl(url string, keyed bool) string {
	if keyed {
		return `curl -s -H "Authorization: Bearer $WEIR_KEY" '` + strings.ReplaceAll(url, "'", "%27") + "'"
	}
	return "curl -s '" + strings.ReplaceAll(url, "'", "%27") + "'"
}
