package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/seq"
)

// params are a query's parameters, as a person would type them.
type params = map[string]string

// A check is one question and its answer.
type check struct {
	Query   string              `json:"query"`
	Params  params              `json:"params"`
	Ordered bool                `json:"ordered"`
	Subset  bool                `json:"subset,omitempty"`
	Except  map[string][]string `json:"except,omitempty"`
	Items   []any               `json:"items"`
}

// An expect collects the checks of one model.
type expect struct {
	app      *app
	present  func(row) row // a core row as it must be answered: derived values in, hidden ones out
	checks   []*check
	history  map[string]int
	problems []error
}

func newExpect(a *app) *expect {
	return &expect{app: a, present: cloneRow, history: make(map[string]int)}
}

// addCheck adds a check whose answer is these core rows. by, where it is not nil, is the document's access pattern that
// must give the same rows.
func (e *expect) addCheck(query string, p params, ordered bool, rows []row, by *access) *check {
	if by != nil {
		if err := e.app.auditAnswer(*by, ordered, rows); err != nil {
			e.addProblem(query, p, err)
		}
	}
	return e.addDerived(query, p, ordered, seq.Map(rows, e.present))
}

// addDerived adds a check whose answer is these rows as they stand.
func (e *expect) addDerived(query string, p params, ordered bool, rows []row) *check {
	if p == nil {
		p = params{}
	}
	c := &check{Query: query, Params: p, Ordered: ordered, Items: []any{}}
	for _, r := range rows {
		c.Items = append(c.Items, plainValue(normalValue(r)))
	}
	for _, other := range e.checks {
		if other.Query == query && maps.Equal(other.Params, p) {
			e.addProblem(query, p, errors.New("stated twice"))
		}
	}
	e.checks = append(e.checks, c)
	return c
}

func (e *expect) addProblem(query string, p params, err error) {
	e.problems = append(e.problems, fmt.Errorf("check %s %v: %w", query, p, err))
}

func (e *expect) err() error {
	if len(e.problems) > 10 {
		return errors.Join(append(e.problems[:10:10], fmt.Errorf("and %d more", len(e.problems)-10))...)
	}
	return errors.Join(e.problems...)
}

// summary names the queries with the number of their checks.
func (e *expect) summary() string {
	count := make(map[string]int)
	var order []string
	for _, c := range e.checks {
		if count[c.Query]++; count[c.Query] == 1 {
			order = append(order, c.Query)
		}
	}
	for i, q := range order {
		order[i] = fmt.Sprintf("%s %d", q, count[q])
	}
	return strings.Join(order, ", ")
}

// makeFile writes expected.json.gz, one check a line so that two versions can be compared.
func (e *expect) makeFile(name string, records int) (file, error) {
	left := make(map[string]int)
	for table, t := range e.app.tables {
		left[table] = len(t.rows)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for _, part := range []struct {
		name  string
		value any
	}{{"model", name}, {"records", records}, {"rows", left}, {"history", e.history}} {
		value, err := compactJSON(part.value)
		if err != nil {
			return file{}, err
		}
		fmt.Fprintf(&b, "%q: %s,\n", part.name, value)
	}
	b.WriteString(`"checks": [`)
	for i, c := range e.checks {
		line, err := compactJSON(c)
		if err != nil {
			return file{}, fmt.Errorf("check %s %v: %w", c.Query, c.Params, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	if !json.Valid(b.Bytes()) {
		return file{}, errors.New("expected.json is not JSON")
	}
	return compressFile("expected.json.gz", b.Bytes())
}

func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// sortRows orders rows by a text, as bytes; desc turns the order round.
func sortRows(rows []row, desc bool, by func(row) string) []row {
	out := slices.Clone(rows)
	slices.SortStableFunc(out, func(a, b row) int {
		c := strings.Compare(by(a), by(b))
		if desc {
			return -c
		}
		return c
	})
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// fieldText joins texts of a row.
func fieldText(names ...string) func(row) string {
	return func(r row) string {
		return strings.Join(mapEach[[]string](names, func(name string) string { return rowText(r, name) }), "#")
	}
}
