package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Backfill gives rows the attributes that the model would have given them when they were written:
// defaults, and the keys of indexes. It never changes an attribute that a row has,
// right or wrong. It adds only missing ones, on the condition that they are still
// missing and that the attributes it is made from are as they were read. So it may run
// beside applications, any number of times, and it does not bring back a row that is
// deleted meanwhile.
type Backfill struct {
	Model  *model.Model
	Store  store.Store
	DryRun bool // only count
	Rows   int  // the maximum of rows in a page; 0 is as many as the store returns
	// Each, when set, is called with the attributes that a row gets, and with those that it could not get,
	// where Reason says why. A call without Gets and Reason lists in Other the
	// attributes that differ from those that the model makes.
	Each func(Filling)
	// Page, when set, is called after each page with the number of rows read.
	Page func(rows int)
}

// Filling is the outcome for one row.
type Filling struct {
	Entity *model.Entity
	Row    store.Ref
	Gets   []value.Attr
	Other  []value.Attr // keys of indexes that differ in the row; the values are the model's
	Reason string       // why it gets nothing, without hidden values; "" if it does

	now value.Item
}

// Filled counts the work of a backfill, over all its runs.
// It survives interruptions: the counts are saved with the cursor.
type Filled struct {
	Read    int
	Rows    int            // that got something
	Refused int            // that could not get their missing attributes
	Claims  int            // unique values that were claimed for the rows that have them
	Shared  int            // unique values that another row has too
	Gets    map[string]int // by Entity.attribute, how many rows got it
	Other   map[string]int // by Entity.attribute, how many rows differ from the model's value
}

// Names of counts. Those of attributes contain a period.
const (
	readCount    = "read"
	rowsCount    = "rows"
	refusedCount = "refused"
	claimsCount  = "claims"
	sharedCount  = "shared"
	getsPrefix   = "+"
	otherPrefix  = "!"
)

// Run goes over all tables and continues where an interrupted run stopped. A crash
// loses at most the counts of the page at hand; filling that page again changes
// nothing.
func (b *Backfill) Run(ctx context.Context) (Filled, error) {
	out := Filled{Gets: map[string]int{}, Other: map[string]int{}}
	var places []*cursor
	for _, t := range b.Model.Tables {
		if !slices.ContainsFunc(t.Entities, mayLack) {
			continue
		}
		p := &cursor{Store: b.Store, Ref: owntable.Backfill(b.Model.Name, t.Name), table: t, dry: b.DryRun, rows: b.Rows}
		places = append(places, p)
		err := p.openScan(ctx, planOf(t), false)
		if err == nil {
			err = p.scanPages(ctx, func(rows []value.Item) error { return b.fillPage(ctx, p, rows) })
		}
		if out.addCounts(p.is.Counts); err != nil {
			return out, err
		}
	}
	for _, p := range places {
		if err := p.forgetPlace(ctx); err != nil {
			return out, err
		}
	}
	return out, nil
}

// addCounts adds the counts of one table, by the names under which they are saved.
// Any name but these begins with getsPrefix or otherPrefix.
func (f *Filled) addCounts(counts map[string]int) {
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

// mayLack reports whether rows of the entity may lack something that the model gives.
// Rows that weir derives do not, and old rows are migrated instead.
func mayLack(e *model.Entity) bool { return !e.Derived && len(e.Migrations) == 0 }

// planOf is a hash of everything that a table's rows are given.
// A changed hash begins the table's backfill again.
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
	return owntable.Hash(b.String())
}

// fillPage fills the rows of a page. Rows that others change meanwhile are read again.
// The page counts when all of it is done, so a crash in it reads it again, and rows that were
// filled are then not counted twice: they lack nothing.
func (b *Backfill) fillPage(ctx context.Context, p *cursor, rows []value.Item) error {
	counts := map[string]int{readCount: len(rows)}
	var todo []Filling
	for _, row := range rows {
		if f, ok := findLacking(p.table, row); ok {
			b.countDifferent(counts, f)
			if len(f.Gets) > 0 {
				todo = append(todo, f)
			}
		}
	}
	err := retryUntilDone(ctx, "filling", func() (left string, err error) {
		if len(todo) == 0 {
			return "", nil
		}
		if todo, err = b.writeFillings(ctx, p.table, todo, counts); err != nil || len(todo) == 0 {
			return "", err
		}
		return todo[0].Row.String(), nil
	})
	if err != nil {
		return err
	}
	if err := b.takeClaims(ctx, p.table, rows, counts); err != nil {
		return err
	}
	for name, n := range counts {
		p.is.Counts[name] += n
	}
	if b.Page != nil {
		b.Page(len(rows))
	}
	return nil
}

// countDifferent counts and reports attributes that differ from the model's value. They are
// never written.
func (b *Backfill) countDifferent(counts map[string]int, f Filling) {
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

// writeFillings gives rows their missing attributes, and returns those that have changed since they were
// read.
// Every row of todo is counted once: as written, as refused, or in again.
func (b *Backfill) writeFillings(ctx context.Context, t *model.Table, todo []Filling, counts map[string]int) (again []Filling, err error) {
	ws := seq.Map(todo, func(f Filling) store.Write { return f.fillingWrite() })
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
			if now, ok := findLacking(t, out[i].Row); ok && len(now.Gets) > 0 {
				again = append(again, now)
			}
			continue
		case errors.Is(err, store.ErrRefused):
			counts[refusedCount]++
			f.Reason = b.Model.ShownText(err.Error())
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

// findLacking finds the missing attributes of a row; ok is false for a row that the model does not
// describe, or that is not filled.
func findLacking(t *model.Table, row value.Item) (f Filling, ok bool) {
	e := t.Classify(row)
	key, keyed := t.KeyOf(row)
	if e == nil || !keyed || !mayLack(e) {
		return f, false
	}
	f = Filling{Entity: e, Row: store.Ref{Table: t.Name, Key: key}}
	f.now = row
	whole := row
	for _, a := range e.Attributes {
		if !a.Default.IsMissing() && !row.Has(a.Name) {
			f.addAttribute(value.Attr{Name: a.Name, Value: a.Default})
			whole = whole.With(value.Attr{Name: a.Name, Value: a.Default})
		}
	}
	whole = e.ByOthers(whole)
	for _, a := range e.Attributes {
		if a.Defaults != nil && !row.Has(a.Name) && whole.Has(a.Name) {
			f.addAttribute(value.Attr{Name: a.Name, Value: whole.Get(a.Name)})
		}
		if a.Computed == nil || row.Has(a.Name) {
			continue
		}
		if v := a.Computed.Value(whole); !v.IsMissing() {
			f.addAttribute(value.Attr{Name: a.Name, Value: v})
			whole = whole.With(value.Attr{Name: a.Name, Value: v})
		}
	}
	for i := range t.Indexes {
		attrs, made := projections.KeysOf(e, &t.Indexes[i], whole)
		for _, a := range attrs {
			switch {
			case !made:
			case !row.Has(a.Name):
				f.addAttribute(a)
			case !value.Equal(row.Get(a.Name), a.Value) && !slices.ContainsFunc(f.Other, func(o value.Attr) bool { return o.Name == a.Name }):
				f.Other = append(f.Other, a)
			}
		}
	}
	return f, true
}

// addAttribute adds an attribute, once: two indexes may share one.
func (f *Filling) addAttribute(a value.Attr) {
	if !slices.ContainsFunc(f.Gets, func(have value.Attr) bool { return have.Name == a.Name }) {
		f.Gets = append(f.Gets, a)
	}
}

// fillingWrite is the write that gives the row its missing attributes, on the condition that they are
// still missing and that the row is as it was: a row of the entity, with the same
// fields that the keys are made from.
func (f *Filling) fillingWrite() store.Write {
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
		w.Ops = append(w.Ops, store.Op{Kind: store.Set, Attr: a.Name, Value: a.Value})
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
