package projectorcli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"weir/internal/cli"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// queryCommand answers one named query with all its pages, or lists the queries.
type queryCommand struct {
	data
	output
	running
	Only   []string `placeholder:"ATTRIBUTE" help:"Print only these attributes, in this order."`
	Model  string   `arg:"" help:"Name of a built-in model or path of a model file."`
	Name   string   `arg:"" optional:"" help:"Name of the query; without one the queries are listed."`
	Params []string `arg:"" optional:"" name:"key=value" help:"Parameters of the query, and limit=."`
}

func (queryCommand) Help() string {
	return `Prints every row of the answer, all pages: one JSON object a line, or with -o json
one array.

  projector query gallery
  projector query gallery album albumId=a1
  projector query gallery search-albums q="summer beach" limit=3 --only id,title
  projector query wardrobe user-items userId=u1 category=dresses
  projector query gallery albums --aws --stage prod --tables gallery=gallery-prod
  projector query gallery albums --server http://127.0.0.1:8480`
}

// Run prints rows as pages arrive. After an error, those before it are printed.
func (c *queryCommand) Run(p *program) error {
	if c.Name == "" {
		return c.printQueries(p)
	}
	params, limit, err := c.parseParameters()
	if err != nil {
		return err
	}
	if c.Server != "" {
		return c.askServer(p, params, limit)
	}
	s, err := p.existing(c.data, []string{c.Model}, system.Options{})
	if c.found(err, c.data) {
		return c.askServer(p, params, limit)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.fillIndexes(p, s); err != nil {
		return err
	}
	if err := c.sayBehind(p, s.Models[0].Runner); err != nil {
		return err
	}
	e := s.Models[0].Query
	return c.print(p, e.Model, limit, func(limit int, cursor string) (out answerPage, err error) {
		res, err := e.Run(p.ctx, c.Name, params, query.Page{Limit: limit, Cursor: cursor})
		for _, row := range res.Items {
			out.rows = append(out.rows, value.AppendPlainItem(nil, query.Select(row, c.Only)))
		}
		out.cursor, out.unfinished = res.Cursor, res.Unfinished
		return out, err
	})
}

// sayBehind says which values are not derived yet from rows that were written while nothing followed them. It
// asks only where no other process can: on AWS, status and alarms tell that.
func (c *queryCommand) sayBehind(p *program, r *runner.Runner) error {
	if c.shared() {
		return nil
	}
	switch at, err := reader.OldestRecord(p.ctx, r); {
	case errors.Is(err, store.ErrTrimmed):
		fmt.Fprintf(p.stderr, "the stream has lost records that are not applied: %s says what is wrong\n", r.Model.Command("verify"))
	case err != nil:
		return err
	case !at.IsZero():
		fmt.Fprintf(p.stderr, "what was written from %s on is not derived yet; %s derives it\n", at.UTC().Format("2006-01-02 15:04:05 UTC"), r.Model.Command("run"))
	}
	return nil
}

// fillIndexes fills indexes that are new. Where others use the rows too, which may be many, it
// leaves that to projector build.
// A search on an index that is not built is a usage error which names the command that builds it.
func (c *queryCommand) fillIndexes(p *program, s *system.System) error {
	part := s.Models[0]
	searches := slices.ContainsFunc(part.Model.Queries, func(q *model.Query) bool { return q.Name == c.Name && q.Search != nil })
	switch {
	case s.Index == nil:
		return nil
	case !c.shared():
		return p.fill(s)
	case searches:
		if err := s.Built(p.ctx, part); errors.Is(err, system.ErrNotBuilt) {
			return usage("%v: %s builds it", err, part.Model.Command("build"))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// parseParameters reads key=value. limit is of the whole answer, 0 for none.
// limit= is taken out of params. A mistake is a usage error; whether the query has such a parameter is asked later.
func (c *queryCommand) parseParameters() (params map[string]string, limit int, err error) {
	params = map[string]string{}
	for _, kv := range c.Params {
		key, v, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, 0, usage("%q is not key=value", kv)
		}
		if _, twice := params[key]; twice {
			return nil, 0, usage("%s is given twice", key)
		}
		params[key] = v
	}
	if text, ok := params["limit"]; ok {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return nil, 0, usage("limit must be a number from 1, not %q", text)
		}
		delete(params, "limit")
	}
	return params, limit, nil
}

// answerPage is a page of the answer to a query.
type answerPage struct {
	rows       []json.RawMessage
	cursor     string
	unfinished []string
}

// pages are the rows of all pages, limit of them unless it is 0. An error is the last. It calls unfinished once, if the
// answer does not have all that is derived.
// Pages are read as rows are taken: a caller that stops early causes no further read.
func pages(limit int, ask func(limit int, cursor string) (answerPage, error), unfinished func(names []string)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		cursor, seen, n, next := "", "", 0, 1 // seen is the cursor of page 1, 2, 4, …: in a loop it comes again
		for left := limit; ; {
			page, err := ask(min(max(left, 0), query.MaxLimit), cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page.unfinished) > 0 {
				unfinished(page.unfinished)
				unfinished = func([]string) {} // once
			}
			if limit > 0 && len(page.rows) > left {
				page.rows = page.rows[:left]
			}
			for _, row := range page.rows {
				if !yield(row, nil) {
					return
				}
			}
			left -= len(page.rows)
			if cursor = page.cursor; cursor == "" || limit > 0 && left <= 0 {
				return
			}
			if cursor == seen {
				yield(nil, errors.New("the server gives pages that it gave before, without an end"))
				return
			}
			if n++; n == next {
				seen, next = cursor, 2*next
			}
		}
	}
}

// Rows that came before an error are printed. An array that was begun then has no end, so a reader of JSON notices.
func (c *queryCommand) print(p *program, m *model.Model, limit int, ask func(limit int, cursor string) (answerPage, error)) error {
	out := bufio.NewWriter(p.stdout)
	var open, between, end string
	switch c.Output {
	case "json":
		open, between, end = "[\n", ",\n", "\n]\n"
	default:
		between, end = "\n", "\n"
	}
	n, err := 0, error(nil)
	for row, rerr := range pages(limit, ask, func(names []string) { p.sayUnfinished(m, names) }) {
		if err = rerr; err != nil {
			break
		}
		if n++; n == 1 {
			out.WriteString(open)
		} else {
			out.WriteString(between)
		}
		out.Write(row)
	}
	switch {
	case n > 0:
		out.WriteString(end)
	case err == nil && c.Output == "json":
		out.WriteString("[]\n")
	}
	return errors.Join(err, out.Flush())
}

// sayUnfinished says that an answer does not have all that is derived.
func (p *program) sayUnfinished(m *model.Model, names []string) {
	fmt.Fprintf(p.stderr, "not derived yet on these rows, by another definition, or from a stream that is off: %s (%s)\n", strings.Join(names, ", "), m.Command("status"))
}

// offered is a query that can be asked, as JSON.
type offered struct {
	Name       string            `json:"name"`
	Parameters []query.Parameter `json:"parameters"`
}

// printQueries prints the queries of the model with their parameters.
// It opens no store: the secret is none that a cursor was sealed with, and no query runs.
func (c *queryCommand) printQueries(p *program) error {
	m, err := cli.LoadModel(p.ctx, c.Model)
	if err != nil {
		return err
	}
	e, err := query.New(query.Config{Model: m, Secret: make([]byte, 32)})
	if err != nil {
		return err
	}
	out := c.to(p.stdout)
	for _, q := range m.Queries {
		is := offered{q.Name, append([]query.Parameter{}, e.Parameters(q.Name)...)}
		out.printResult(is, func() {
			if len(is.Parameters) == 0 {
				fmt.Fprintln(out.table, is.Name)
				return
			}
			fmt.Fprintf(out.table, "%s\t%s\n", is.Name, usageOf(is.Parameters))
		})
	}
	out.printEnd()
	return nil
}

// usageOf shows parameters as they are typed, with optional ones in brackets.
func usageOf(ps []query.Parameter) string {
	var out []string
	for _, q := range ps {
		if q.Optional {
			out = append(out, "["+q.Name+"="+q.Default+"]")
		} else {
			out = append(out, q.Name+"=")
		}
	}
	return strings.Join(out, " ")
}
