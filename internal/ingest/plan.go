package ingest

import (
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// plan is what a command writes, on the condition that the rows that it was made
// from are still so. No writes: nothing is to be done.
type plan struct {
	writes []store.Write // several are one transaction
	done   Done
	row    value.Item // as it is after
	err    error      // a *Refusal
}

func (p plan) refused(r *Refusal) plan { return plan{err: r} }

// plan decides the command in the light of the row that is there, nil for none.
func (c *checked) plan(row value.Item, now time.Time) plan {
	if row != nil && c.Table.Classify(row) != c.Entity {
		return c.other(row)
	}
	live := row
	if row != nil && c.view.Expired(row, now) {
		live = nil
	}
	if r := c.matches(live); r != nil {
		return plan{err: r}
	}
	switch {
	case c.Op == Delete && row == nil:
		return plan{done: Unchanged}
	case c.Op == Delete:
		w := store.Write{Ref: c.ref, If: c.guard(row, c.watched()), Delete: true, Return: true}
		return plan{done: Deleted, writes: []store.Write{w}}
	case c.Op == Update && live == nil:
		return plan{err: refuse(Missing, "", "there is no such row of %s", c.Name)}
	case c.Op == Create && live != nil:
		return plan{err: refuse(Exists, "", "there is such a row of %s already", c.Name), row: live}
	}
	return c.write(row, live)
}

// other is a plan where a row of another kind stands at the key.
func (c *checked) other(row value.Item) plan {
	what := "a row that " + c.model.Name + " does not know"
	if e := c.Table.Classify(row); e != nil {
		what = "a row of " + e.Name
	}
	switch c.Op {
	case Delete:
		return plan{done: Unchanged}
	case Update:
		return plan{err: refuse(Missing, "", "there is no such row of %s: %s stands at its key", c.Name, what)}
	}
	return plan{err: refuse(Exists, "", "%s stands at the key", what)}
}

// matches says that the row is not the one that the command goes by.
func (c *checked) matches(live value.Item) *Refusal {
	switch {
	case c.IfMatch == "" || live != nil && (c.IfMatch == "*" || c.IfMatch == c.revision(live)):
		return nil
	case live == nil && c.Op == Update:
		return refuse(Missing, "", "there is no such row of %s", c.Name)
	case live == nil:
		return refuse(Stale, "", "there is no such row of %s any more", c.Name)
	}
	return refuse(Stale, "", "the row has changed: its revision is %s now", c.revision(live))
}

// write makes the row what the command wants. What is not the application's stays;
// of a row that has expired, only that.
func (c *checked) write(row, live value.Item) plan {
	was := projections.Own(c.Entity, live)
	is, r := c.image(was)
	if r != nil {
		return plan{err: r}
	}
	if row == nil {
		w := store.Write{Ref: c.ref, If: store.Cond{{{Attr: c.Table.Key.Partition.Name, Is: store.Absent}}}, Put: is, Return: true}
		return plan{done: Created, row: is, writes: []store.Write{w}}
	}
	p := plan{done: Replaced}
	switch {
	case live == nil:
		p.done = Created
		is = is.With(row.Filter(c.derived)...)
	case c.Op == Update:
		p.done = Updated
	}
	p.row = projections.Keep(c.Entity, is, row)
	ops := difference(row, p.row)
	if len(ops) == 0 {
		return plan{done: Unchanged, row: row}
	}
	p.writes = []store.Write{{Ref: c.ref, If: c.guard(row, c.watched()), Ops: ops, Return: true}}
	return p
}

// watched are the attributes that the plan was made from, beside the command.
func (c *checked) watched() []string {
	var out []string
	if c.IfMatch != "" && c.IfMatch != "*" {
		for _, a := range c.Attributes {
			out = append(out, a.Name)
		}
	}
	if ttl := c.Table.TTL; ttl != "" {
		out = append(out, ttl)
	}
	if c.Expires != nil && c.Expires.Key == nil {
		out = append(out, c.Expires.Attr)
	}
	if len(c.Steps) > 0 {
		out = append(out, projections.Basis(c.Entity)...)
	}
	if c.Op == Update {
		for _, k := range c.Keys {
			if c.touches(k) {
				out = append(out, k.Template.Names()...)
			}
		}
	}
	return out
}

// guard is the condition that the row is there, is of the entity, and has the
// attributes named as it was read.
func (c *checked) guard(row value.Item, names []string) store.Cond {
	cond := store.Cond{{{Attr: c.Table.Key.Partition.Name, Is: store.Exists}}}
	names = slices.Clone(names)
	for _, t := range c.Where {
		if t.Field.Key == nil {
			names = append(names, t.Field.Attr)
		}
	}
	if c.IfMatch != "" && c.IfMatch != "*" {
		for _, a := range c.application(row) {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.ContainsFunc(c.PrimaryKey(), func(k *model.KeyTemplate) bool { return k.Attr.Name == name }) {
			continue
		}
		cond = append(cond, []store.Test{same(name, row.Get(name))})
	}
	return cond
}

// same is the test that an attribute is as it was read.
func same(name string, v value.Value) store.Test {
	if v.IsMissing() {
		return store.Test{Attr: name, Is: store.Absent}
	}
	return store.Test{Attr: name, Is: store.Eq, Value: v}
}

// difference is the update that makes a row of another one with the same key.
func difference(from, to value.Item) []store.Op {
	var ops []store.Op
	for _, a := range to {
		if !value.Equal(from.Get(a.Name), a.Value) {
			ops = append(ops, store.Op{Kind: store.Set, Attr: a.Name, Value: a.Value})
		}
	}
	for _, a := range from {
		if !to.Has(a.Name) {
			ops = append(ops, store.Op{Kind: store.Remove, Attr: a.Name})
		}
	}
	return ops
}
