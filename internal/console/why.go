package console

import (
	"net/http"
	"slices"
	"strconv"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// contributor is one way in which rows of an entity decide a derived value.
type contributor struct {
	name   string // of the derivation
	kind   string
	source *model.Entity
	field  *model.Field // whose value is added up; nil if the rows themselves count
	reads  []*model.Input
	target *model.Entity
	key    func(row value.Item) (store.Key, bool) // of the target, for a row
	to     []model.Assign
}

// contributors returns the derivations that may decide an attribute of an entity's rows.
// History, feeds, copies and search documents have none: their rows are made, not counted. A
// group's attributes are tallies of its row, and the latest of its rows.
func contributors(e *model.Entity, attr string) (out []contributor) {
	keyBy := func(targetOf func(value.Item) (store.Key, *model.Unfit, bool)) func(value.Item) (store.Key, bool) {
		return func(row value.Item) (store.Key, bool) {
			key, unfit, ok := targetOf(row)
			return key, ok && unfit == nil
		}
	}
	from := func(to []model.Assign) func(value.Item) (store.Key, bool) {
		return func(row value.Item) (store.Key, bool) { return e.KeyFrom(to, row) }
	}
	for _, t := range e.Values {
		if t.Attr != attr {
			continue
		}
		for _, s := range t.Sources {
			if s.Amount != nil && s.Amount.Function != nil {
				continue // which rows it adds to is not known without asking it
			}
			out = append(out, contributor{t.Name, t.Kind.Keyword, s.Entity, amountOf(s), []*model.Input{&s.Input, &s.Given}, e, keyBy(s.TargetOf), s.To})
		}
	}
	for _, s := range e.Statuses {
		for _, stage := range s.Stages {
			if slices.Contains(s.Attributes(), attr) {
				out = append(out, contributor{s.Name, "status " + stage.Word, stage.Source, nil, []*model.Input{&stage.Input}, e, from(stage.To), stage.To})
			}
		}
	}
	for _, l := range e.Latest {
		if slices.Contains(l.Attributes(), attr) {
			out = append(out, contributor{l.Name, l.Kind + " by " + l.By.Name, l.Source, l.By, []*model.Input{&l.Input, &l.Given}, e, keyBy(l.TargetOf), l.To})
		}
	}
	return out
}

// amountOf is the field that a source adds up, nil if it counts rows or adds up an expression.
func amountOf(s *model.Source) *model.Field {
	if s.Amount == nil || len(s.Amount.Fields) != 1 {
		return nil
	}
	return s.Amount.Fields[0]
}

// partition returns where all contributors of a target are: a partition of the table or of an
// index whose key the target's names give. ok is false if the whole table has to be read.
// Of several indexes the first in the order of the model is taken that holds whole rows.
func (c *contributor) partition(target value.Item) (q store.Query, ok bool) {
	named := func(name string) value.Value {
		for _, a := range c.to {
			if a.Expr.Field != nil && a.Expr.Field.Name == name {
				return c.target.Field(a.Name).Get(target)
			}
		}
		for i := range c.source.Where {
			if t := &c.source.Where[i]; t.Field.Name == name {
				v, _ := t.Only()
				return v
			}
		}
		return value.Value{}
	}
	t := c.source.Table
	q = store.Query{Table: t.Name}
	if k := c.source.KeyTemplate(t.Key.Partition.Name); k != nil {
		if v, built := k.Build(named); built && v.Kind() == t.Key.Partition.Type {
			q.Partition = v
			return q, true
		}
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		k := c.source.KeyTemplate(ix.Key.Partition.Name)
		if ix.KeysOnly || k == nil || len(k.Template.Names()) == 0 {
			continue
		}
		if v, built := k.Build(named); built && v.Kind() == ix.Key.Partition.Type {
			q.Index, q.Partition = ix.Name, v
			return q, true
		}
	}
	return q, false
}

// whyPage lists the rows that count towards a value now.
type whyPage struct {
	Row        link
	Entity     string
	Attr       string
	Value      shown
	Derivation string
	Kind       string
	Source     string
	Field      string
	Choices    []link // if several entities contribute
	Rows       []whyRow
	Read       int
	Scan       bool // the whole table is read, page by page
	Next       string
	First      string
	Command    string
	None       bool // nothing is known to decide it
	History    *history
}

// whyRow is a row that counts, with its part: the value of the field, or 1.
type whyRow struct {
	Row   link
	Value shown
}

// explainValue lists the rows behind a derived value as they are now: GET /console/{model}/why. A row that counted
// before, and is gone, is in a recording only; the page names the command that finds it there.
func (c *Console) explainValue(r *request) error {
	t, ref, row, err := r.stored()
	if err != nil {
		return err
	}
	e := entityOf(t, ref, row)
	attr := r.param("attr")
	if e == nil || !isDerived(e, attr) {
		return &mistake{http.StatusNotFound, "weir derives no such attribute on this row."}
	}
	m := r.part.Model
	p := whyPage{Row: rowLink(m, ref), Entity: e.Name, Attr: attr, Value: show(r.part.Model.Shown(e, row).Get(attr), cellRunes)}
	p.Command = m.Command("why", brief(printed(t, ref), cellRunes), attr, "--from", "RECORDING…")
	if err := c.fillHistory(r, &p, t, ref, attr); err != nil {
		return err
	}
	all := contributors(e, attr)
	if len(all) == 0 {
		p.None = true
		return r.ok("why", "Why "+attr, &p)
	}
	n, _ := strconv.Atoi(r.param("source"))
	if n < 0 || n >= len(all) {
		n = 0
	}
	for i := range all {
		p.Choices = append(p.Choices, link{all[i].kind + " of " + all[i].source.Name, whyPath(m, ref, attr) + "&source=" + strconv.Itoa(i), i == n})
	}
	if r.param("after") != "" {
		p.First = p.Choices[n].Href
	}
	one := &all[n]
	p.Derivation, p.Kind, p.Source = one.name, one.kind, one.source.Name
	if one.field != nil {
		p.Field = one.field.Name
	}
	if err := c.fillContributions(r, &p, one, ref, n); err != nil {
		return err
	}
	return r.ok("why", "Why "+attr, &p)
}

// fillContributions fills in a page of the rows that count towards the target.
// The rows are read as they are, beside the stream: a row that was written a moment ago may be
// listed before the value counts it.
func (c *Console) fillContributions(r *request, p *whyPage, one *contributor, target store.Ref, n int) error {
	t := one.source.Table
	q, narrow := one.partition(one.target.Table.Item(target.Key))
	p.Scan = !narrow
	var ix *store.Index
	if q.Index != "" {
		ix = t.Table.Index(q.Index)
	}
	var err error
	if q.After, err = cursorFrom(t, ix, r.param("after")); err != nil {
		return err
	}
	b := &browse{Table: t, Entity: one.source, Index: ix, Key: t.Key, query: q}
	if ix != nil {
		b.Key = ix.Key
	}
	b.query.Limit = 4 * pageRows
	b.keep = func(row value.Item) bool {
		if t.Classify(row) != one.source || slices.ContainsFunc(one.reads, func(in *model.Input) bool { return !in.Uses(row) }) {
			return false
		}
		key, ok := one.key(row)
		return ok && projections.SameRow(store.Ref{Table: target.Table, Key: key}, target)
	}
	page := rowsPage{browse: b}
	rows, next, err := c.read(r, &page)
	if err != nil {
		return err
	}
	p.Read = page.Read
	if next != "" {
		p.Next = whyPath(r.part.Model, target, p.Attr) + "&source=" + strconv.Itoa(n) + "&after=" + next
	}
	for _, row := range rows {
		key, _ := t.KeyOf(row)
		line := whyRow{Row: rowLink(r.part.Model, store.Ref{Table: t.Name, Key: key}), Value: shown{Text: "1", Number: true}}
		if one.field != nil {
			line.Value = show(one.field.Get(r.part.Model.Shown(one.source, row)), cellRunes)
		}
		p.Rows = append(p.Rows, line)
	}
	return nil
}
