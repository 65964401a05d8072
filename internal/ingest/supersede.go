package ingest

import (
	"slices"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// applySupersede applies the model's supersede rule to a row: it adds the row's time to the
// row's list, and adds to the plan the delete of the superseded row. done says that all
// of it has happened before. A time that is repeated is listed once. A time older than
// the row's own is listed and changes nothing else. A superseded row newer than the
// time stays.
func (c *checked) applySupersede(p *plan, k *known, was, is value.Item) (next value.Item, done bool) {
	s := c.Supersede
	if s == nil || !model.Holds(s.Where, is) {
		return is, false
	}
	at := s.Time.Get(is)
	times, known := insertTime(was.Get(s.List.Name), is.Get(s.List.Name), at)
	if late := was != nil && c.Op != Update && isBefore(at, s.Time.Get(was)); late && known {
		return was, true
	} else if late {
		is = was
	}
	is = is.With(value.Attr{Name: s.List.Name, Value: times})
	if ref, ok := c.supersededRow(); ok {
		other, read := k.knownRow(ref)
		if read && c.isOvertaken(other, at) {
			p.writes = append(p.writes, store.Write{Ref: ref, If: store.Cond{{store.AsRead(s.Time.Attr, s.Time.Get(other))}}, Delete: true})
		}
	}
	return is, false
}

// supersededBy is the row that a row with the command's key supersedes, if any.
func (c *checked) supersededBy(row value.Item) (store.Ref, bool) {
	if c.Supersede == nil || !model.Holds(c.Supersede.Where, row) {
		return store.Ref{}, false
	}
	return c.supersededRow()
}

// isOvertaken reports whether a row is deleted by a row of this time that supersedes it:
// it is of the same entity, and not newer.
func (c *checked) isOvertaken(other value.Item, at value.Value) bool {
	return other != nil && c.Table.Classify(other) == c.Entity && !isBefore(at, c.Supersede.Time.Get(other))
}

// supersededRow is the row at the key that has the other words of the supersede rule.
func (c *checked) supersededRow() (store.Ref, bool) {
	key, ok := c.TypedKey(func(name string) value.Value {
		if j := slices.IndexFunc(c.Supersede.Other, func(a model.Assign) bool { return a.Name == name }); j >= 0 {
			return c.Supersede.Other[j].Expr.Const
		}
		return c.given.get(name)
	})
	return store.Ref{Table: c.Table.Name, Key: key}, ok
}

// insertTime is the list of times with those given and one more, each in its place; known
// says that the one more was in the list before.
func insertTime(had, given, at value.Value) (_ value.Value, known bool) {
	out := seq.Map(had.Elements(), func(e value.Attr) value.Value { return e.Value })
	note := func(t value.Value) (known bool) {
		if slices.ContainsFunc(out, func(v value.Value) bool { return sameTime(v, t) }) {
			return true
		}
		i := slices.IndexFunc(out, func(v value.Value) bool { return isBefore(t, v) })
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

// sameTime reports whether two values are one time, also in two spellings. Values that are no times
// are the same only if they are equal.
func sameTime(a, b value.Value) bool {
	order, ok := value.CompareTimes(a, b)
	return value.Equal(a, b) || ok && order == 0
}

// isBefore reports whether a time is before another. A text that is no time is neither
// before nor after any other.
func isBefore(a, b value.Value) bool {
	order, ok := value.CompareTimes(a, b)
	return ok && order < 0
}
