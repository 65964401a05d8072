package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Backfill gives rows what the model would have given them when they were written:
// defaults, and the keys of indexes. What a row has, it keeps, right or not; nothing
// is written but what is missing, on the condition that it still is and that what it
// is made from is as it was read. So it may run beside applications, any number of
// times, and a row that goes meanwhile does not come back.
type Backfill struct {
	Model  *model.Model
	Store  store.Store
	DryRun bool // only count
	Rows   int  // how many rows a page has at the most; 0 is as many as the store gives
	// Each, when set, is told what a row gets; what it was refused, where reason says
	// why; and what it has otherwise than the model makes it (no attributes are given).
	Each func(Filling)
	// Page, when set, is told after each page how many rows were read.
	Page func(rows int)
}

// Filling is what becomes of one row.
type Filling struct {
	Entity *model.Entity
	Row    store.Ref
	Gets   []value.Attr
	Other  []value.Attr // keys of indexes that it has, and that the model would make so
	Reason string       // why it gets nothing; "" where it does

	now value.Item
}

// Filled is what a backfill did, over all runs of it.
type Filled struct {
	Read    int
	Rows    int            // that got something
	Refused int            // that could not get what they miss
	Claims  int            // unique values that were claimed for the rows that have them
	Shared  int            // unique values that another row has too
	Gets    map[string]int // by Entity.attribute, how many rows got it
	Other   map[string]int // by Entity.attribute, how many rows have another value than the model makes
}

// Names of counts, beside those of attributes, which have a point in them.
const (
	readCount    = "read"
	rowsCount    = "rows"
	refusedCount = "refused"
	claimsCount  = "claims"
	sharedCount  = "shared"
	getsPrefix   = "+"
	otherPrefix  = "!"
)

// Run goes over all tables, from where the last run was broken off.
func (b *Backfill) Run(ctx context.Context) (Filled, error) {
	out := Filled{Gets: map[string]int{}, Other: map[string]int{}}
	var places []*place
	for _, t := range b.Model.Tables {
		if !slices.ContainsFunc(t.Entities, fillable) {
			continue
		}
		p := &place{Store: b.Store, Ref: book.Backfill(b.Model.Name, t.Name), table: t, dry: b.DryRun, rows: b.Rows}
		places = append(places, p)
		err := p.open(ctx, planOf(t))
		if err == nil {
			err = p.scan(ctx, func(rows []value.Item) error { return b.page(ctx, p, rows) })
		}
		if out.add(p.counts); err != nil {
			return out, err
		}
	}
	for _, p := range places {
		if err := p.forget(ctx); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (f *Filled) add(counts map[string]int) {
	for name, n := range counts {
		attr := name[1:]
		switch {
		case name == readCount:
			f.Read += n
		case name == rowsCount:
			f.Rows += n
		case name == refusedCount:
			f.Refused += n
		case name == claimsCount:
			f.Claims += n
		case name == sharedCount:
			f.Shared += n
		case strings.HasPrefix(name, getsPrefix):
			f.Gets[attr] += n
		default:
			f.Other[attr] += n
		}
	}
}

// fillable reports whether rows of the entity may miss something that a model gives:
// the rows that weir makes do not, and old ones become others.
func fillable(e *model.Entity) bool { return !e.Derived && len(e.Migrations) == 0 }

// planOf stands for what a table's rows are given.
func planOf(t *model.Table) string {
	var b strings.Builder
	for _, e := range t.Entities {
		fmt.Fprintf(&b, "%s\n", e.Name)
		for _, k := range e.Keys {
			fmt.Fprintf(&b, "%s %q\n", k.Attr.Name, k.Template)
		}
		for _, a := range e.Attributes {
			fmt.Fprintf(&b, "%s %q\n", a.Name, value.AppendPlain(nil, a.Default))
			if a.Defaults != nil {
				for _, w := range slices.Sorted(maps.Keys(a.Defaults.Each)) {
					fmt.Fprintf(&b, "%s %s %q\n", a.Defaults.By.Name, w, value.AppendPlain(nil, a.Defaults.Each[w]))
				}
			}
		}
	}
	for _, ix := range t.Indexes {
		fmt.Fprintf(&b, "%v\n", ix.Key)
	}
	return book.Hash(b.String())
}

// page fills the rows of a page. Those that others change meanwhile are looked at
// again.
func (b *Backfill) page(ctx context.Context, p *place, rows []value.Item) error {
	counts := map[string]int{readCount: len(rows)}
	var todo []Filling
	for _, row := range rows {
		if f, ok := fill(p.table, row); ok {
			b.other(counts, f)
			if len(f.Gets) > 0 {
				todo = append(todo, f)
			}
		}
	}
	err := retry(ctx, "filling", func() (left string, err error) {
		if len(todo) == 0 {
			return "", nil
		}
		if todo, err = b.write(ctx, p.table, todo, counts); err != nil || len(todo) == 0 {
			return "", err
		}
		return todo[0].Row.String(), nil
	})
	if err != nil {
		return err
	}
	if err := b.claim(ctx, p.table, rows, counts); err != nil {
		return err
	}
	for name, n := range counts {
		p.counts[name] += n
	}
	if b.Page != nil {
		b.Page(len(rows))
	}
	return nil
}

func (b *Backfill) other(counts map[string]int, f Filling) {
	if len(f.Other) == 0 {
		return
	}
	for _, a := range f.Other {
		counts[otherPrefix+f.Entity.Name+"."+a.Name]++
	}
	if b.Each != nil {
		b.Each(Filling{Entity: f.Entity, Row: f.Row, Other: f.Other})
	}
}

// write gives rows what they miss, and answers with those that have changed.
func (b *Backfill) write(ctx context.Context, t *model.Table, todo []Filling, counts map[string]int) (again []Filling, err error) {
	ws := make([]store.Write, len(todo))
	for i := range todo {
		ws[i] = todo[i].write()
	}
	out := make([]store.Outcome, len(ws))
	if !b.DryRun {
		if out, err = b.Store.Write(ctx, ws); err != nil {
			return nil, err
		}
	}
	for i, f := range todo {
		switch err := out[i].Err; {
		case err == nil:
			counts[rowsCount]++
			for _, a := range f.Gets {
				counts[getsPrefix+f.Entity.Name+"."+a.Name]++
			}
		case errors.Is(err, store.ErrCondition):
			if now, ok := fill(t, out[i].Row); ok && len(now.Gets) > 0 {
				again = append(again, now)
			}
			continue
		case errors.Is(err, store.ErrRefused):
			counts[refusedCount]++
			f.Reason = err.Error()
		default:
			return nil, fmt.Errorf("filling %s: %w", f.Row, err)
		}
		if b.Each != nil {
			f.Other = nil
			b.Each(f)
		}
	}
	return again, nil
}

// fill finds out what a row misses; ok is false where that is not for a model to
// say.
func fill(t *model.Table, row value.Item) (f Filling, ok bool) {
	e := t.Classify(row)
	key, keyed := t.KeyOf(row)
	if e == nil || !keyed || !fillable(e) {
		return f, false
	}
	f = Filling{Entity: e, Row: store.Ref{Table: t.Name, Key: key}}
	f.now = row
	whole := row
	for _, a := range e.Attributes {
		if !a.Default.IsMissing() && !row.Has(a.Name) {
			f.gets(value.Attr{Name: a.Name, Value: a.Default})
			whole = whole.With(value.Attr{Name: a.Name, Value: a.Default})
		}
	}
	whole = e.ByOthers(whole)
	for _, a := range e.Attributes {
		if a.Defaults != nil && !row.Has(a.Name) && whole.Has(a.Name) {
			f.gets(value.Attr{Name: a.Name, Value: whole.Get(a.Name)})
		}
		if a.Computed == nil || row.Has(a.Name) {
			continue
		}
		if v := a.Computed.Value(whole); !v.IsMissing() {
			f.gets(value.Attr{Name: a.Name, Value: v})
			whole = whole.With(value.Attr{Name: a.Name, Value: v})
		}
	}
	for i := range t.Indexes {
		attrs, made := projections.KeysOf(e, &t.Indexes[i], whole)
		for _, a := range attrs {
			switch {
			case !made:
			case !row.Has(a.Name):
				f.gets(a)
			case !value.Equal(row.Get(a.Name), a.Value) && !slices.ContainsFunc(f.Other, func(o value.Attr) bool { return o.Name == a.Name }):
				f.Other = append(f.Other, a)
			}
		}
	}
	return f, true
}

// gets takes an attribute once: two indexes may share one.
func (f *Filling) gets(a value.Attr) {
	if !slices.ContainsFunc(f.Gets, func(have value.Attr) bool { return have.Name == a.Name }) {
		f.Gets = append(f.Gets, a)
	}
}

// write gives the row what it misses, if it still does and is what it was: a row of
// the entity, with the fields that the keys are made from.
func (f *Filling) write() store.Write {
	e, t := f.Entity, f.Entity.Table
	w := store.Write{Ref: f.Row, Return: true, If: store.Cond{{{Attr: t.Key.Partition.Name, Is: store.Exists}}}}
	tested := map[string]bool{t.Key.Partition.Name: true, t.Key.Sort.Name: true}
	test := func(name string) {
		if tested[name] {
			return
		}
		tested[name] = true
		w.If = append(w.If, []store.Test{store.AsRead(name, f.now.Get(name))})
	}
	for _, a := range f.Gets {
		test(a.Name)
		w.Ops = append(w.Ops, set(a.Name, a.Value))
		if d := e.Attribute(a.Name); d != nil && d.Computed != nil {
			for _, name := range d.Computed.Fields() {
				test(name)
			}
		}
		if k := e.KeyTemplate(a.Name); k != nil {
			for _, name := range k.Template.Names() {
				test(e.Field(name).Attr)
			}
		}
	}
	for _, s := range e.Where {
		test(s.Field.Attr)
	}
	return w
}
