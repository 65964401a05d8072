package projections

import (
	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Mend is a copy that may differ from what weir wrote: another writer changed or deleted
// it, or a worker that was delayed brought it back after weir had removed it.
type Mend struct {
	Change *Change
	Entity *model.Entity
	Ours   events.Position // the position of our last write of the row; zero if unknown
	// Back says that the row exists and carries our mark, so that only a tombstone can
	// show that it should not exist.
	Back bool
}

// needsMending checks a change of a copy, a row that only weir writes. weir's own writes
// raise the position that the row carries, or change what it follows; any other change
// needs mending.
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

// followedOverwritten reports whether another writer changed an attribute that follows a
// value. weir raises the attribute's version whenever it changes the attribute.
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

// isCopy reports whether some rule makes rows of the entity as copies, not as history.
func isCopy(e *model.Entity) bool {
	for _, r := range e.MadeBy {
		if len(r.Keep) == 0 {
			return true
		}
	}
	return false
}

// own returns what the copy's rule writes: the row without the attributes that follow
// other rows.
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

// SourceOf returns the row that a rule made this row from. It reads the key out of the
// row itself.
func SourceOf(rule *model.RowRule, row value.Item) (store.Ref, bool) {
	key, ok := rule.Source.Key(func(name string) value.Value { return taken(rule, name, row) })
	return store.Ref{Table: rule.Source.Table.Name, Key: key}, ok
}

// FollowedBy returns the row whose field an attribute of this row follows. It reads the
// key out of the row itself. ok is false if the row does not contain the whole key, or if
// another rule made the row.
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

// taken returns a field of the row that a rule made this row from, as it stands in that
// row's key. It returns Missing if this row does not hold the field.
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
