package projections

import (
	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Mend is a copy that may not be as weir left it: somebody else wrote over it or
// removed it, or a worker that slept brought it back after its removal.
type Mend struct {
	Change *Change
	Entity *model.Entity
	Ours   events.Position // the position our last write of it had; zero when unknown
	// Back: the row is there and written by us, so that only its tombstone can
	// speak against it.
	Back bool
}

// needsMending looks at a change of a row that only weir writes, as state. Our own
// writes raise the position that the row carries, or change what it follows.
func needsMending(c *Change) (Mend, bool) {
	e := c.Is
	if e == nil {
		e = c.Was
	}
	if e == nil || !isCopy(e) {
		return Mend{}, false
	}
	was, is := c.Old.Get(book.Version), c.New.Get(book.Version)
	m := Mend{Change: c, Entity: e, Ours: events.PositionFrom(was)}
	switch {
	case c.New == nil:
		return m, true
	case is.Kind() != value.Binary:
		return m, true
	case c.Old == nil:
		m.Ours, m.Back = events.PositionFrom(is), true
		return m, true
	case was.Kind() != value.Binary || value.Compare(is, was) > 0:
		return Mend{}, false
	case value.Compare(is, was) < 0:
		return m, true
	}
	return m, !value.EqualItems(own(e, c.Old), own(e, c.New)) || followedOverwritten(e, c)
}

// followedOverwritten reports whether an attribute that follows was changed by
// somebody else: weir raises its version with it.
func followedOverwritten(e *model.Entity, c *Change) bool {
	for _, r := range e.MadeBy {
		for i := range r.Fields {
			f := r.Fields[i].Expr.Follow
			if f == nil {
				continue
			}
			version := book.FollowVersion(f.Attr)
			was, is := events.PositionFrom(c.Old.Get(version)), events.PositionFrom(c.New.Get(version))
			if d := is.Compare(was); d < 0 || d == 0 && !value.Equal(c.Old.Get(f.Attr), c.New.Get(f.Attr)) {
				return true
			}
		}
	}
	return false
}

func isCopy(e *model.Entity) bool {
	for _, r := range e.MadeBy {
		if len(r.Keep) == 0 {
			return true
		}
	}
	return false
}

// own is what a copy's rule writes: all but what the row follows.
func own(e *model.Entity, row value.Item) value.Item {
	return row.Filter(func(name string) bool {
		if book.IsOurs(name) {
			return false
		}
		for _, r := range e.MadeBy {
			for i := range r.Fields {
				if r.Fields[i].Name == name && r.Fields[i].Expr.Follow != nil {
					return false
				}
			}
		}
		return true
	})
}

// SourceOf is the key of the row that a rule made this row from, read out of the
// row itself.
func SourceOf(rule *model.RowRule, row value.Item) (store.Ref, bool) {
	key, ok := rule.Source.Key(func(name string) value.Value { return taken(rule, name, row) })
	return store.Ref{Table: rule.Source.Table.Name, Key: key}, ok
}

// FollowedBy is the row whose field an attribute of this row follows, read out of
// the row itself; ok is false where the row does not say it, or no such rule made it.
func FollowedBy(f *model.Follow, row value.Item) (of store.Ref, ok bool) {
	for i := range f.Rule.Fields {
		made := &f.Rule.Fields[i]
		have := f.Rule.Into.Field(made.Name).Get(row)
		if !made.Expr.Const.IsMissing() && !have.IsMissing() && value.Scalar(have) != value.Scalar(made.Expr.Const) {
			return of, false
		}
	}
	key, ok := f.Source.Key(func(name string) value.Value {
		for i := range f.Key {
			switch x := &f.Key[i].Expr; {
			case f.Key[i].Name != name:
			case x.Field != nil:
				return taken(f.Rule, x.Field.Name, row)
			default:
				return x.Const
			}
		}
		return value.Value{}
	})
	return store.Ref{Table: f.Source.Table.Name, Key: key}, ok
}

// taken is a field of the row that a rule made this row from, as that row's key has
// it, Missing where the row has nothing of it.
func taken(rule *model.RowRule, name string, row value.Item) value.Value {
	for i := range rule.Fields {
		f := rule.Fields[i].Expr.Field
		if f == nil || f.Name != name {
			continue
		}
		into := rule.Into.Field(rule.Fields[i].Name)
		v := into.Get(row)
		switch {
		case into.Typed():
			return v
		case f.Typed() && row.Has(into.Name):
			return v
		case f.Typed():
			return value.OfString(model.Unescape(v.Text()))
		}
		return into.Raw(row)
	}
	return value.Value{}
}
