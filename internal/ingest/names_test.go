package ingest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/projections/copies"
	"weir/internal/query"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// hostileNames are values that are close to each other in every key that may contain
// them.
var hostileNames = []string{
	"a", "a#b", "a%23b", "a%2523b", "n#", "n%23", "a/b", "a%2Fb", "a|b", "a%7Cb", "%", "%25", "#", "/", "|", "\x00", "a\x00b",
	"é", "e\u0301", "50%", "2025-01-01T00:00:00Z", strings.Repeat("long#", 40),
}

// The times in rows are so late that DynamoDB, which uses its own clock, deletes none
// of them.
const (
	namesTime  = "2099-01-01T00:00:00Z"
	namesLater = "2099-01-02T00:00:00Z"
)

var namesNow = time.Date(2098, 12, 31, 0, 0, 0, 0, time.UTC)

// TestQueriesAnswerWhatWasWritten: rows that were written through weir's API, and rows
// that an application wrote itself with their keys, are returned by every query for
// their values, unchanged and once, and by no other query. The same holds for rows made
// from them.
func TestQueriesAnswerWhatWasWritten(t *testing.T) {
	queriesAnswer(t, func(tables []store.Table) (store.Store, error) {
		return embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem(), Now: func() time.Time { return namesNow }})
	}, "")
}

func TestQueriesAnswerWhatWasWrittenOnDynamoDB(t *testing.T) {
	queriesAnswerOnDynamoDB(t, "")
}

// TestQueriesAnswerWhatWasWrittenOnServices has the documents in OpenSearch.
func TestQueriesAnswerWhatWasWrittenOnServices(t *testing.T) {
	queriesAnswerOnDynamoDB(t, opensearchtest.URL(t))
}

func queriesAnswerOnDynamoDB(t *testing.T, cluster string) {
	dynamodbtest.Config(t) // skips the test where there is no DynamoDB
	checks := flag.Lookup("rapid.checks").Value
	defer checks.Set(checks.String())
	if err := checks.Set("5"); err != nil {
		t.Fatal(err)
	}
	queriesAnswer(t, func(tables []store.Table) (store.Store, error) {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{}), nil
	}, cluster)
}

// queriesAnswer keeps the documents in an OpenSearch cluster, or beside the rows for "".
func queriesAnswer(t *testing.T, open func([]store.Table) (store.Store, error), cluster string) {
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		m, err := model.Load(rapid.SampledFrom(model.Builtin()).Draw(rt, "model"))
		if err != nil {
			rt.Fatal(err)
		}
		tables, err := system.Tables([]*model.Model{m})
		if err != nil {
			rt.Fatal(err)
		}
		st, err := open(tables)
		if err != nil {
			rt.Fatal(err)
		}
		p := &plain{T: rt, model: m, store: st, writer: &ingest.Writer{Model: m, Store: st}, rows: map[string]plainRow{}}
		var sources []*model.Entity
		for _, e := range m.Entities {
			if !e.Derived {
				sources = append(sources, e)
			}
		}
		names := rapid.SliceOfNDistinct(rapid.SampledFrom(hostileNames), 3, 4, rapid.ID[string]).Draw(rt, "names")
		for range rapid.IntRange(5, 30).Draw(rt, "rows") {
			p.write(sources[rapid.IntRange(0, len(sources)-1).Draw(rt, "entity")], names, rapid.Bool().Draw(rt, "over the API"))
		}
		runs++
		s, err := system.Over(context.Background(), st, filepath.Join(dir, fmt.Sprint(runs)), []*model.Model{m}, system.Options{Now: func() time.Time { return namesNow }, OpenSearch: cluster})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		if err := errors.Join(s.Reach(context.Background(), nil), s.Show(context.Background())); err != nil {
			rt.Fatal(err)
		}
		p.ask(s.Models[0].Query, names)
	})
}

// plain is what was written, as a map. It is the model for the test.
type plain struct {
	*rapid.T
	model  *model.Model
	store  store.Store
	writer *ingest.Writer
	rows   map[string]plainRow
}

// plainRow is a row by the values that its names were given.
type plainRow struct {
	entity *model.Entity
	vals   map[string]value.Value
}

func (p *plain) write(e *model.Entity, names []string, api bool) {
	vals := map[string]value.Value{}
	give := func(name string, must bool) {
		if a := e.Attribute(name); a != nil && (a.Computed != nil || a.Type == model.TypeList || a.Type == model.TypeMap) {
			return
		}
		if e.Once != nil && name == e.Once.Key.Name {
			return // it makes a row of its own
		}
		if _, given := vals[name]; given || !must && rapid.Bool().Draw(p.T, name+" is there") {
			return
		}
		vals[name] = suitable(e, name, rapid.SampledFrom(names).Draw(p.T, name))
	}
	for i, k := range e.Keys {
		for _, name := range k.Template.Names() {
			give(name, i < len(e.PrimaryKey()))
		}
	}
	for _, a := range e.Attributes {
		give(a.Name, a.Required)
	}
	by := p.direct
	if api {
		by = p.over
	}
	row := by(e, vals)
	if row == nil {
		return
	}
	p.note(e, row, vals)
	for _, rule := range e.Rules {
		if rule.Subscribers != nil || ofRecord(rule) {
			continue
		}
		if made, ok := copies.Make(rule, row); ok {
			have := map[string]value.Value{}
			for _, f := range rule.Fields {
				if have[f.Name] = f.Expr.Const; f.Expr.Field != nil {
					have[f.Name] = vals[f.Expr.Field.Name]
				}
				if rule.Into.Attribute(f.Name) != nil && f.Expr.Follow == nil && f.Expr.Map == nil && !value.Equal(made.Image.Get(f.Name), have[f.Name]) {
					p.Errorf("%s.%s is %v, not %v", rule.Into.Name, f.Name, made.Image.Get(f.Name), have[f.Name])
				}
			}
			p.put(made.Row, made.Image)
			p.note(rule.Into, made.Image, have)
		}
	}
}

func ofRecord(r *model.RowRule) bool {
	return slices.ContainsFunc(r.Fields, func(f model.Assign) bool { return f.Expr.Record != "" })
}

func suitable(e *model.Entity, name, text string) value.Value {
	a := e.Attribute(name)
	switch {
	case a == nil && e.Field(name).Type == model.TypeNumber:
		return value.OfInt(7)
	case a == nil:
		return value.OfString(text)
	case len(a.Enum) > 0:
		return value.OfString(a.Enum[0])
	case a.Type == model.TypeTime:
		return value.OfString(namesTime)
	case a.Type == model.TypeNumber:
		return value.OfInt(7)
	case a.Type == model.TypeBoolean:
		return value.OfBool(true)
	case a.Type == model.TypeFlag:
		return value.OfString("true")
	}
	return value.OfString(text)
}

// over writes a row through the API; it returns nil if the row is refused.
func (p *plain) over(e *model.Entity, vals map[string]value.Value) value.Item {
	var item []value.Attr
	for name, v := range vals {
		item = append(item, value.Attr{Name: name, Value: v})
	}
	res := p.writer.Do(context.Background(), []ingest.Command{{Op: ingest.Create, Entity: e.Name, Item: value.NewItem(item...)}})[0]
	var refused *ingest.Refusal
	switch {
	case errors.As(res.Err, &refused):
		return nil
	case res.Err != nil:
		p.Fatal(res.Err)
	}
	return res.Row
}

// direct is a row as an application makes it that knows nothing of escapes; nil if it
// is no row of the entity, or another row has its key.
func (p *plain) direct(e *model.Entity, vals map[string]value.Value) value.Item {
	var attrs []value.Attr
	for _, a := range e.Attributes {
		attrs = append(attrs, value.Attr{Name: a.Name, Value: vals[a.Name]})
	}
	for _, w := range e.Where {
		if len(w.Listed()) > 0 {
			attrs = append(attrs, value.Attr{Name: w.Field.Attr, Value: w.Listed()[0]})
		}
	}
	for _, k := range e.Keys {
		if v, ok := k.Build(func(name string) value.Value { return vals[name] }); ok && e.Attribute(k.Attr.Name) == nil {
			attrs = append(attrs, value.Attr{Name: k.Attr.Name, Value: v})
		}
	}
	row := value.NewItem(attrs...)
	key, ok := e.Table.KeyOf(row)
	if ref := (store.Ref{Table: e.Table.Name, Key: key}); ok && e.Table.Classify(row) == e && p.rows[ref.String()].entity == nil {
		p.put(ref, row)
		return row
	}
	return nil
}

func (p *plain) put(ref store.Ref, row value.Item) {
	if _, err := p.store.Write(context.Background(), []store.Write{{Ref: ref, Put: row}}); err != nil {
		p.Fatal(err)
	}
}

func (p *plain) note(e *model.Entity, row value.Item, vals map[string]value.Value) {
	key, _ := e.Table.KeyOf(row)
	all := map[string]value.Value{}
	for _, a := range row {
		all[a.Name] = a.Value
	}
	maps.Copy(all, vals)
	p.rows[store.Ref{Table: e.Table.Name, Key: key}.String()] = plainRow{e, all}
}

// ask sends every query with every value.
func (p *plain) ask(e *query.Engine, names []string) {
	for _, q := range p.model.Queries {
		for range 6 {
			params := map[string]string{}
			for _, d := range e.Parameters(q.Name) {
				if d.Optional && rapid.Bool().Draw(p.T, "left out") {
					continue
				}
				if params[d.Name] = p.param(q, d, names); d.List {
					params[d.Name] = strings.Join(names, ",")
				}
			}
			if len(q.Return) > 0 {
				p.compareReturned(e, q, params)
				continue
			}
			p.compare(e, q, params)
		}
	}
}

func (p *plain) param(q *model.Query, d query.Parameter, names []string) string {
	switch {
	case q.Search != nil && d.OneOf != nil:
		return rapid.SampledFrom(d.OneOf).Draw(p.T, d.Name)
	case q.Search != nil && d.Name == "q":
		return rapid.SampledFrom(append(names, "", " ", "LONG lon", "a zzz", "20", "E")).Draw(p.T, d.Name)
	}
	for _, b := range bound(q) {
		if b.Param == d.Name {
			return value.Scalar(suitable(of(q), b.Field.Name, rapid.SampledFrom(names).Draw(p.T, d.Name)))
		}
	}
	return namesLater
}

// of is the entity to which a query's parameters belong. bound is what the parameters
// fix.
func of(q *model.Query) *model.Entity {
	if q.Search != nil {
		return q.Search.Of
	}
	return q.Steps[0].Entity
}

func bound(q *model.Query) []model.Bind {
	if q.Search != nil {
		return q.With
	}
	return append(slices.Clone(q.Steps[0].With), q.Steps[0].Any...)
}

func (p *plain) compare(e *query.Engine, q *model.Query, params map[string]string) {
	last := of(q)
	if len(q.Steps) > 0 {
		last = q.Steps[len(q.Steps)-1].Entity
	}
	var got []string
	for page, pages := (query.Page{Limit: rapid.IntRange(1, 4).Draw(p.T, "limit")}), 0; ; pages++ {
		if pages > 2*len(p.rows)+10 {
			p.Fatalf("%s %q has no end", q.Name, params)
		}
		res, err := e.Run(context.Background(), q.Name, params, page)
		if err != nil {
			p.Fatalf("%s %q: %v", q.Name, params, err)
		}
		for _, row := range res.Items {
			key, _ := last.Table.KeyOf(row)
			got = append(got, store.Ref{Table: last.Table.Name, Key: key}.String())
		}
		if page.Cursor = res.Cursor; res.Cursor == "" {
			break
		}
	}
	want, gets := p.wanted(q, params), 0
	for _, s := range q.Steps {
		if s.Get {
			gets++
		}
	}
	if gets > 0 { // the same name as it is and escaped: a get gives one of them
		got, want = p.alike(last, got, want), p.alike(last, want, want)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.Fatalf("%s %s %q answers\n%s\nand not\n%s", p.model.Name, q.Name, params, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// alike are those of the rows that are wanted, by what their primary keys are made of, each
// once; others by their keys.
func (p *plain) alike(e *model.Entity, rows, wanted []string) []string {
	var out []string
	for _, name := range rows {
		if slices.Contains(wanted, name) {
			var parts []string
			for _, k := range e.PrimaryKey() {
				for _, n := range k.Template.Names() {
					parts = append(parts, fmt.Sprintf("%s=%q", n, value.Scalar(p.rows[name].vals[n])))
				}
			}
			name = strings.Join(parts, " ")
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wanted returns the rows that a query must return, from what was written.
func (p *plain) wanted(q *model.Query, params map[string]string) (out []string) {
	if q.Search != nil {
		for name, row := range p.rows {
			if row.entity == q.Search.Of && p.holds(q.Search.Where, row) && finds(q.Search, row, params["q"]) && !slices.ContainsFunc(q.With, func(b model.Bind) bool { return !p.fixed(q, b, row, plainRow{}, params) }) {
				out = append(out, name)
			}
		}
		return out
	}
	from := []plainRow{{}}
	for _, s := range q.Steps {
		there := map[string]bool{}
		for _, prior := range from {
			for name, row := range p.rows {
				there[name] = there[name] || p.matches(q, s, row, prior, params)
			}
		}
		out, from = nil, nil
		for name, is := range there {
			if is {
				out, from = append(out, name), append(from, p.rows[name])
			}
		}
	}
	return out
}

// finds reports whether a row has the words that were typed, the last one at least as the
// beginning of a word. Text without words finds nothing, and no text everything.
func finds(s *model.Search, row plainRow, typed string) bool {
	if strings.TrimSpace(typed) == "" {
		return true
	}
	words, has := plainWords(typed), []string{}
	for _, f := range s.Text {
		has = append(has, plainWords(value.Scalar(row.vals[f.Name]))...)
	}
	for i, w := range words {
		if !slices.Contains(has, w) && (i < len(words)-1 || !slices.ContainsFunc(has, func(h string) bool { return strings.HasPrefix(h, w) })) {
			return false
		}
	}
	return len(words) > 0
}

// plainWords cuts the texts of this test into words.
func plainWords(text string) []string {
	text = strings.NewReplacer("é", "e", "e\u0301", "e").Replace(strings.ToLower(text))
	return strings.FieldsFunc(text, func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') })
}

// compareReturned compares what a query makes of the row that it gets. A name that is in
// one row as it is and in another escaped gets one of them.
func (p *plain) compareReturned(e *query.Engine, q *model.Query, params map[string]string) {
	res, err := e.Run(context.Background(), q.Name, params, query.Page{})
	if err != nil {
		p.Fatalf("%s %q: %v", q.Name, params, err)
	}
	var got, want []string
	for _, item := range res.Items {
		got = append(got, string(value.AppendPlainItem(nil, item)))
	}
	for _, name := range p.wanted(q, params) {
		want = append(want, string(value.AppendPlainItem(nil, p.returned(q, p.rows[name]))))
	}
	if len(got) != min(1, len(want)) || len(got) > 0 && !slices.Contains(want, got[0]) {
		p.Fatalf("%s %s %q answers %q and not one of %q", p.model.Name, q.Name, params, got, want)
	}
}

// returned is what a query makes of a row.
func (p *plain) returned(q *model.Query, row plainRow) value.Item {
	var attrs []value.Attr
	for _, ret := range q.Return {
		seen, v := map[string]bool{}, value.Value{}
		switch {
		case ret.Field != nil:
			v = row.vals[ret.Field.Name]
		case ret.Size != nil:
			if ret.Size.Others != nil {
				for _, text := range p.elements(row, ret.Size.Name) {
					seen[text] = true
				}
			}
			v = value.OfInt(int64(len(seen)))
		case ret.Distinct != nil:
			for _, other := range p.rows {
				same := other.entity == ret.Distinct.Entity
				for _, a := range ret.Distinct.Key {
					same = same && value.Scalar(other.vals[a.Name]) == value.Scalar(row.vals[a.Expr.Field.Name])
				}
				if text := value.Scalar(other.vals[ret.Distinct.Field.Name]); same && text != "" {
					seen[text] = true
				}
			}
			v = value.OfInt(int64(len(seen)))
		}
		attrs = append(attrs, value.Attr{Name: ret.Name, Value: v})
	}
	return value.NewItem(attrs...)
}

func (p *plain) holds(tests []model.Test, row plainRow) bool {
	var attrs []value.Attr
	for name, v := range row.vals {
		attrs = append(attrs, value.Attr{Name: name, Value: v})
	}
	return model.Holds(tests, value.NewItem(attrs...))
}

// matches reports whether a row is one that a step asks for.
func (p *plain) matches(q *model.Query, s *model.Step, row, prior plainRow, params map[string]string) bool {
	if row.entity != s.Entity && !slices.Contains(s.Also, row.entity) {
		return false
	}
	schema := s.Entity.Table.Key
	if s.Index != nil {
		schema = s.Index.Key
	}
	for _, attr := range []string{schema.Partition.Name, schema.Sort.Name} {
		if k := row.entity.KeyTemplate(attr); attr != "" && k != nil && slices.ContainsFunc(required(k), func(n string) bool { return value.Scalar(row.vals[n]) == "" }) {
			return false // it is not in the index
		}
	}
	for _, b := range s.With {
		if !p.fixed(q, b, row, prior, params) {
			return false
		}
	}
	asked, any := false, len(s.Any) == 0
	for _, b := range s.Any {
		if want, given := params[b.Param]; given {
			asked = true
			any = any || has(b.Field, row.vals[b.Field.Name], strings.Split(want, ","))
		}
	}
	return any || !asked
}

// fixed reports whether a row has what one of its fields is fixed to.
func (p *plain) fixed(q *model.Query, b model.Bind, row, prior plainRow, params map[string]string) bool {
	want, asked := params[b.Param]
	switch {
	case b.Prior != nil && b.Each():
		return has(b.Field, row.vals[b.Field.Name], p.elements(prior, b.Prior.Name))
	case b.Prior != nil:
		want, asked = value.Scalar(prior.vals[b.Prior.Name]), true
	case b.Param == "":
		want, asked = value.Scalar(b.Const), true
	default:
		i := slices.IndexFunc(q.Params, func(d model.Param) bool { return d.Name == b.Param })
		if !asked && !q.Params[i].Default.IsMissing() {
			want, asked = value.Scalar(q.Params[i].Default), true
		}
	}
	return !asked || has(b.Field, row.vals[b.Field.Name], []string{want})
}

// elements are those of a list that no row here has: what it stands for.
func (p *plain) elements(row plainRow, list string) (out []string) {
	o := row.entity.Attribute(list).Others
	for _, other := range p.rows {
		linked := other.entity == o.Of
		for i, f := range o.Links {
			linked = linked && value.Scalar(other.vals[f.Name]) == value.Scalar(row.vals[o.Key[i].Expr.Field.Name])
		}
		if linked {
			out = append(out, value.Scalar(other.vals[o.Field.Name]))
		}
	}
	return out
}

func required(k *model.KeyTemplate) []string {
	text, _, _ := strings.Cut(k.Template.String(), "[")
	return slices.DeleteFunc(slices.Clone(k.Template.Names()), func(n string) bool { return !strings.Contains(text, "{"+n+"}") })
}

func has(f *model.Field, v value.Value, want []string) bool {
	have := []string{value.Scalar(v)}
	if f.Type == model.TypeCommas {
		have = strings.Split(have[0], ",")
	}
	return slices.ContainsFunc(have, func(h string) bool { return slices.Contains(want, h) && h != "" })
}
