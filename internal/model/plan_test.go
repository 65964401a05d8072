package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// TestPlan shows what model files are compiled into.
func TestPlan(t *testing.T) {
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			m, err := Load(strings.TrimSpace(d.Input))
			if err != nil {
				return err.Error() + "\n"
			}
			p := printer{}
			p.model(m)
			return p.String()
		})
	})
}

type printer struct{ strings.Builder }

func (p *printer) line(format string, args ...any) {
	p.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (p *printer) model(m *Model) {
	p.line("model %s", m.Name)
	for _, t := range m.Tables {
		p.line("table %s %v ttl=%q stream=%v old=%v", t.Name, t.Key, t.TTL, t.Stream, t.Images == store.NewAndOldImages)
		for _, ix := range t.Indexes {
			p.line("  index %s %v local=%v keys=%v", ix.Name, ix.Key, ix.Local, ix.KeysOnly)
		}
	}
	for _, e := range m.Entities {
		p.entity(e)
	}
	for _, t := range m.Tallies {
		p.line("tally %s %s %s.%s round=%d max=%d hidden=%v", t.Name, t.Kind.Keyword, t.Target.Name, t.Attr, t.Round, t.Max, t.Hidden)
		for _, s := range t.Sources {
			p.line("  of %s %s where%s to %s", s.Entity.Name, amount(s.Amount), tests(s.Where), assigns(s.To))
		}
	}
	for _, r := range m.Rows {
		p.line("row %s: %s into %s keep %v where%s", r.Name, r.Source.Name, r.Into.Name, r.Keep, tests(r.Where))
		if r.Subscribers != nil {
			var by []string
			for _, m := range r.Subscribers.By {
				by = append(by, field(m.Field)+"="+expr(m.Expr))
			}
			p.line("  each %s by %v", r.Subscribers.Of.Name, by)
		}
		p.line("  set %s", assigns(r.Fields))
	}
	for _, f := range m.Follows {
		p.line("follow %s: %s <- %s.%s by %s", strings.TrimSuffix(f.Name, "."+f.Attr), f.Attr, f.Source.Name, field(f.Field), assigns(f.Key))
	}
	for _, s := range m.Statuses {
		p.line("steps %s on %s.%s, writing %v", s.Name, s.Target.Name, s.Attr.Name, s.Attributes())
		for _, st := range s.Stages {
			p.line("  %d %s when %s where%s to %s each %s who %s max %d set %s", st.Rank, st.Word, st.Source.Name, tests(st.Where), assigns(st.To), listName(st.List), field(st.Who), st.Max, assigns(st.Set))
		}
	}
	for _, s := range m.Searches {
		p.line("search %s of %s where%s text %v filters %v sorts %v", s.Name, s.Of.Name, tests(s.Where), fieldList(s.Text), fieldList(s.Filters), fieldList(s.Sorts))
	}
	for _, q := range m.Queries {
		p.query(q)
	}
}

func (p *printer) entity(e *Entity) {
	p.line("entity %s in %s derived=%v where%s expires %s", e.Name, e.Table.Name, e.Derived, tests(e.Where), field(e.Expires))
	for _, k := range e.Keys {
		p.line("  key %s %s %s", k.Attr.Name, k.Attr.Type, k.Template)
	}
	for _, a := range e.Attributes {
		p.line("  %s %s required=%v default=%s enum=%v max=%d hidden=%v", a.Name, a.Type, a.Required, text(a.Default), a.Enum, a.Max, a.Hidden)
		if !a.Least.IsMissing() || !a.Most.IsMissing() {
			p.line("    from %s to %s", text(a.Least), text(a.Most))
		}
	}
	for _, a := range e.Attributes {
		if r := a.Reading; r != nil {
			p.line("  %s reads %v, %s after %s", a.Name, r.Legacy, r.Late, field(r.After))
		}
		if o := a.Others; o != nil {
			p.line("  %s else %s.%s by %s links %s used=%v", o.Name, o.Of.Name, field(o.Field), assigns(o.Key), fieldList(o.Links), o.Used)
		}
	}
	back := seq.Map(e.Values, func(t *Tally) string { return "value " + t.Name })
	back = append(back, seq.Map(e.Sources, func(s *Source) string { return "source of " + s.Tally.Name })...)
	back = append(back, seq.Map(e.Rules, func(r *RowRule) string { return "makes " + r.Name })...)
	back = append(back, seq.Map(e.Follow, func(f *Follow) string { return "followed by " + f.Name })...)
	back = append(back, seq.Map(e.Statuses, func(s *Status) string { return "moves " + s.Name })...)
	back = append(back, seq.Map(e.Stages, func(s *Stage) string { return "reaches " + s.Word + " of " + s.Status.Name })...)
	back = append(back, seq.Map(e.Others, func(o *Others) string { return "stands for " + o.Name })...)
	back = append(back, seq.Map(e.Search, func(s *Search) string { return "in " + s.Name })...)
	if len(back) > 0 {
		p.line("  %s", strings.Join(back, ", "))
	}
}

func (p *printer) query(q *Query) {
	var params []string
	for _, a := range q.Params {
		name := a.Name
		if a.Optional {
			name = "[" + name + "]"
		}
		if !a.Default.IsMissing() {
			name += "=" + text(a.Default)
		}
		params = append(params, name+" "+string(a.Type))
	}
	p.line("query %s(%s) single=%v unique=%v", q.Name, strings.Join(params, ", "), q.Single, q.Unique)
	if q.Sort != nil {
		p.line("  sort %s", field(q.Sort))
	}
	for _, r := range q.Return {
		switch {
		case r.Distinct != nil:
			p.line("  return %s: distinct %s.%s by %s", r.Name, r.Distinct.Entity.Name, field(r.Distinct.Field), assigns(r.Distinct.Key))
		default:
			p.line("  return %s: %s size %s", r.Name, field(r.Field), listName(r.Size))
		}
	}
	if q.Search != nil {
		p.line("  search %s with %s", q.Search.Name, binds(q.With))
	}
	for _, s := range q.Steps {
		by, below := "table", ""
		if s.Index != nil {
			by = s.Index.Name
		}
		for _, t := range s.Range {
			below += t.Op.String() + " " + binds([]Bind{t.Bind})
		}
		p.line("  %s get=%v by %s with %s %s reverse=%v expired=%v", s.Entity.Name, s.Get, by, binds(s.With), below, s.Reverse, s.Expired)
		if len(s.Any) > 0 {
			p.line("    any %s", binds(s.Any))
		}
		if len(s.Also) > 0 {
			p.line("    also %v", seq.Map(s.Also, func(e *Entity) string { return e.Name }))
		}
	}
}

func listName(a *Attribute) string {
	if a == nil {
		return "-"
	}
	return a.Name
}

func binds(bs []Bind) string {
	var out []string
	for _, b := range bs {
		from := "?" + b.Param
		if b.Prior != nil {
			from = "prior " + field(b.Prior)
		} else if b.Param == "" {
			from = text(b.Const)
		}
		out = append(out, field(b.Field)+"="+from)
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func assigns(as []Assign) string {
	var out []string
	for _, a := range as {
		out = append(out, a.Name+": "+expr(a.Expr))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func expr(x Expr) string {
	switch {
	case x.Field != nil:
		return field(x.Field)
	case x.Record != "":
		return x.Record
	case x.Map != nil:
		return assigns(x.Map)
	case x.Subscriber != nil:
		return "subscriber's " + field(x.Subscriber)
	case x.Follow != nil:
		return "follow " + x.Follow.Source.Name + "." + field(x.Follow.Field)
	}
	return text(x.Const)
}

func amount(a *Amount) string {
	switch {
	case a == nil:
		return "-"
	case a.Computed():
		return a.Text
	}
	return field(a.Fields[0])
}

func field(f *Field) string {
	if f == nil {
		return "-"
	}
	if f.Key != nil {
		return fmt.Sprintf("%s(%s in %s)", f.Name, f.Type, f.Attr)
	}
	return fmt.Sprintf("%s(%s)", f.Name, f.Type)
}

func fieldList(fs []*Field) []string { return seq.Map(fs, field) }

func tests(ts []Test) string {
	var b strings.Builder
	for _, t := range ts {
		fmt.Fprintf(&b, " %s", field(t.Field))
		for _, term := range t.Is {
			fmt.Fprintf(&b, " %s %s", term.Op, seq.Map(term.Values, text))
		}
	}
	return b.String()
}

func text(v value.Value) string {
	if v.IsMissing() {
		return "-"
	}
	return string(value.AppendTyped(nil, v))
}
