package ingest

import (
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// supersede is what a row that supersedes another becomes, and what goes with it;
// done says that all of it has happened before. A time that comes twice is noted
// once. One that is older than the row's own is noted, and changes nothing else; what
// is newer than the time is not superseded by it.
func (c *checked) supersede(p *plan, k *known, was, is value.Item) (next value.Item, done bool) {
	s := c.Supersede
	if s == nil || !model.Holds(s.Where, is) {
		return is, false
	}
	at := s.Time.Get(is)
	times, known := noted(was.Get(s.List.Name), is.Get(s.List.Name), at)
	if late := was != nil && c.Op != Update && before(at, s.Time.Get(was)); late && known {
		return was, true
	} else if late {
		is = was
	}
	is = is.With(value.Attr{Name: s.List.Name, Value: times})
	if ref, ok := c.superseded(); ok {
		other, read := k.row(ref)
		if read && c.overtaken(other, at) {
			p.also = append(p.also, store.Write{Ref: ref, If: store.Cond{{store.AsRead(s.Time.Attr, s.Time.Get(other))}}, Delete: true})
		}
	}
	return is, false
}

// supersededBy is the row that a row of the command's key supersedes, if it does any.
func (c *checked) supersededBy(row value.Item) (store.Ref, bool) {
	if c.Supersede == nil || !model.Holds(c.Supersede.Where, row) {
		return store.Ref{}, false
	}
	return c.superseded()
}

// overtaken reports whether a row goes for one of this time that supersedes it: it is of the
// same kind, and not newer.
func (c *checked) overtaken(other value.Item, at value.Value) bool {
	return other != nil && c.Table.Classify(other) == c.Entity && !before(at, c.Supersede.Time.Get(other))
}

// superseded is the row with the other words in its key.
func (c *checked) superseded() (store.Ref, bool) {
	ref := store.Ref{Table: c.Table.Name}
	for i, kt := range c.PrimaryKey() {
		v, ok := kt.BuildTyped(func(name string) value.Value {
			if j := slices.IndexFunc(c.Supersede.Other, func(a model.Assign) bool { return a.Name == name }); j >= 0 {
				return c.Supersede.Other[j].Expr.Const
			}
			return c.given.get(name)
		})
		if !ok {
			return ref, false
		}
		if i == 0 {
			ref.Key.Partition = v
		} else {
			ref.Key.Sort = v
		}
	}
	return ref, true
}

// noted is the list of times with those given and one more, each in its place;
// known says that it was there before.
func noted(had, given, at value.Value) (_ value.Value, known bool) {
	var out []value.Value
	for _, e := range had.Elements() {
		out = append(out, e.Value)
	}
	note := func(t value.Value) (known bool) {
		if slices.ContainsFunc(out, func(v value.Value) bool { return sameTime(v, t) }) {
			return true
		}
		i := slices.IndexFunc(out, func(v value.Value) bool { return before(t, v) })
		if i < 0 {
			i = len(out)
		}
		out = slices.Insert(out, i, t)
		return false
	}
	known = note(at)
	for _, e := range given.Elements() {
		note(e.Value)
	}
	return value.OfList(out...), known
}

func sameTime(a, b value.Value) bool {
	x, errX := time.Parse(time.RFC3339, a.Text())
	y, errY := time.Parse(time.RFC3339, b.Text())
	return value.Equal(a, b) || errX == nil && errY == nil && x.Equal(y)
}

// before reports whether a time is before another; what is no time is before none
// and after none.
func before(a, b value.Value) bool {
	x, errX := time.Parse(time.RFC3339, a.Text())
	y, errY := time.Parse(time.RFC3339, b.Text())
	return errX == nil && errY == nil && x.Before(y)
}
