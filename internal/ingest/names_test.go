package ingest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// hostileNames are values near each other in every key that they may stand in.
var hostileNames = []string{
	"a", "a#b", "a%23b", "a%2523b", "n#", "n%23", "a/b", "a%2Fb", "a|b", "a%7Cb", "%", "%25", "#", "/", "|", "\x00", "a\x00b",
	"é", "e\u0301", "50%", "2025-01-01T00:00:00Z", strings.Repeat("long#", 40),
}

// Before the times that rows have, so that none has expired.
var namesNow = time.Date(2024, 12, 31, 0, 0, 0, 0, time.UTC)

// Rows that were written over weir's API and rows that an application wrote itself, keys
// and all, are answered by every query that asks for their values as they are, each
// once, and by no other; rows made of them too.
func TestQueriesAnswerWhatWasWritten(t *testing.T) {
	queriesAnswer(t, func(tables []store.Table) (store.Store, error) {
		return embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem(), Now: func() time.Time { return namesNow }})
	})
}

func queriesAnswer(t *testing.T, open func([]store.Table) (store.Store, error)) {
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
		defer st.Close()
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
		p.ask(names)
	})
}

// plain is what was written, as a map.
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
		if rule.Each != nil || ofRecord(rule) {
			continue
		}
		if made, ok := projections.Make(rule, row); ok {
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
		return value.OfString("2025-01-01T00:00:00Z")
	case a.Type == model.TypeNumber:
		return value.OfInt(7)
	case a.Type == model.TypeBoolean:
		return value.OfBool(true)
	case a.Type == model.TypeFlag:
		return value.OfString("true")
	}
	return value.OfString(text)
}

// over writes a row over the API; nil when it is refused.
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

// direct is a row as an application makes it that knows nothing of escapes; nil when
// it is no row of the entity, or another stands there.
func (p *plain) direct(e *model.Entity, vals map[string]value.Value) value.Item {
	var attrs []value.Attr
	for _, a := range e.Attributes {
		attrs = append(attrs, value.Attr{Name: a.Name, Value: vals[a.Name]})
	}
	for _, w := range e.Where {
		if len(w.OneOf) > 0 && !w.Not {
			attrs = append(attrs, value.Attr{Name: w.Field.Attr, Value: w.OneOf[0]})
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

// ask asks every query of one step for every value.
func (p *plain) ask(names []string) {
	e, err := query.New(query.Config{Model: p.model, Store: p.store, Now: func() time.Time { return namesNow }, Secret: make([]byte, 16)})
	if err != nil {
		p.Fatal(err)
	}
	for _, q := range p.model.Queries {
		if q.Search != nil || len(q.Steps) != 1 || len(q.Return) > 0 {
			continue
		}
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
			p.compare(e, q, params)
		}
	}
}

func (p *plain) param(q *model.Query, d query.Parameter, names []string) string {
	s := q.Steps[0]
	for _, b := range append(slices.Clone(s.With), s.Any...) {
		if b.Param == d.Name {
			return model.Scalar(suitable(s.Entity, b.Field.Name, rapid.SampledFrom(names).Draw(p.T, d.Name)))
		}
	}
	return "2025-01-02T00:00:00Z"
}

func (p *plain) compare(e *query.Engine, q *model.Query, params map[string]string) {
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
			key, _ := q.Steps[0].Entity.Table.KeyOf(row)
			got = append(got, store.Ref{Table: q.Steps[0].Entity.Table.Name, Key: key}.String())
		}
		if page.Cursor = res.Cursor; res.Cursor == "" {
			break
		}
	}
	var want []string
	for name, row := range p.rows {
		if p.matches(q, row, params) {
			want = append(want, name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if s := q.Steps[0]; s.Get && len(want) > 1 && len(got) == 1 && slices.Contains(want, got[0]) {
		return // the same name as it is and escaped: a get gives one of them
	}
	if !slices.Equal(got, want) {
		p.Fatalf("%s %s %q answers\n%s\nand not\n%s", p.model.Name, q.Name, params, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// matches reports whether a row is one that the query asks for, by what was written.
func (p *plain) matches(q *model.Query, row plainRow, params map[string]string) bool {
	s := q.Steps[0]
	if row.entity != s.Entity && !slices.Contains(s.Also, row.entity) {
		return false
	}
	schema := s.Entity.Table.Key
	if s.Index != nil {
		schema = s.Index.Key
	}
	for _, attr := range []string{schema.Partition.Name, schema.Sort.Name} {
		if k := row.entity.KeyTemplate(attr); attr != "" && k != nil && slices.ContainsFunc(required(k), func(n string) bool { return model.Scalar(row.vals[n]) == "" }) {
			return false // it is not in the index
		}
	}
	for _, b := range s.With {
		want, asked := params[b.Param]
		if b.Param == "" {
			want, asked = model.Scalar(b.Const), true
		} else if i := slices.IndexFunc(q.Params, func(d model.Param) bool { return d.Name == b.Param }); !asked && !q.Params[i].Default.IsMissing() {
			want, asked = model.Scalar(q.Params[i].Default), true
		}
		if asked && !has(b.Field, row.vals[b.Field.Name], []string{want}) {
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

func required(k *model.KeyTemplate) []string {
	text, _, _ := strings.Cut(k.Template.String(), "[")
	return slices.DeleteFunc(slices.Clone(k.Template.Names()), func(n string) bool { return !strings.Contains(text, "{"+n+"}") })
}

func has(f *model.Field, v value.Value, want []string) bool {
	have := []string{model.Scalar(v)}
	if f.Type == model.TypeCommas {
		have = strings.Split(have[0], ",")
	}
	return slices.ContainsFunc(have, func(h string) bool { return slices.Contains(want, h) && h != "" })
}
