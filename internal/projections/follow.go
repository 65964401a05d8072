package projections

import (
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// foldFollows folds the values that other rows follow: a row contributes the fields that
// have followers. A row that was deleted, or that no longer belongs to its entity,
// contributes that it is gone, with the last value where a follower keeps that.
func foldFollows(c *Change, e *Effects) {
	if c.Was != nil && c.Was != c.Is {
		for _, field := range followed(c.Was) {
			v := value.Value{}
			if KeptLast(c.Was, field) {
				v = e.followed(c.Was, field, c.Old, true)
			}
			e.Spreads = append(e.Spreads, Spread{Source: c.Row, Entity: c.Was, Field: field.Name, Value: v, Gone: true, Position: c.Position})
		}
	}
	if c.Is == nil {
		return
	}
	for _, field := range followed(c.Is) {
		if c.Was == c.Is && value.Equal(field.Get(c.New), field.Get(c.Old)) {
			continue
		}
		v := e.followed(c.Is, field, c.New, false)
		e.Spreads = append(e.Spreads, Spread{Source: c.Row, Entity: c.Is, Field: field.Name, Value: v, Position: c.Position})
	}
}

// followed returns a field's value for the rows that follow it. If the value is too large
// for our own table, it notes a fault and returns Missing.
func (e *Effects) followed(of *model.Entity, field *model.Field, row value.Item, old bool) value.Value {
	v := field.Get(row)
	if !e.faults.Holds(FollowedField(of, field.Name)+" followed", field.Name, value.Item{{Value: v}}.Size(), old) {
		return value.Value{}
	}
	return v
}

// followed returns the fields of an entity that other rows follow, each once.
func followed(e *model.Entity) (fields []*model.Field) {
	for _, f := range e.Follow {
		if !slices.ContainsFunc(fields, func(have *model.Field) bool { return have.Name == f.Field.Name }) {
			fields = append(fields, f.Field)
		}
	}
	return fields
}

// KeptLast reports whether some follower of the field keeps the field's last value after
// the source row is gone.
func KeptLast(e *model.Entity, field *model.Field) bool {
	return slices.ContainsFunc(e.Follow, func(f *model.Follow) bool { return f.Keep && f.Field.Name == field.Name })
}

// KeepsLast reports whether rows of entity e keep the last value that their attribute
// follows. list is the partition that holds the value in our own table.
func KeepsLast(m *model.Model, e *model.Entity, attr, list string) bool {
	return slices.ContainsFunc(m.Follows, func(f *model.Follow) bool {
		return f.Keep && f.Rule.Into == e && f.Attr == attr && strings.HasPrefix(list, book.FollowedOf(m.Name, FollowedField(f.Source, f.Field.Name)))
	})
}

// foldUnfollows ends the links of a history row that was deleted. For a copy, foldState
// does this.
func foldUnfollows(c *Change, e *Effects) {
	if c.Was == nil || c.Is == c.Was {
		return
	}
	for _, rule := range c.Was.MadeBy {
		for i := range rule.Fields {
			f := rule.Fields[i].Expr.Follow
			if f == nil || len(rule.Keep) == 0 {
				continue
			}
			if of, ok := FollowedBy(f, c.Old); ok {
				e.Unfollows = append(e.Unfollows, Unfollow{c.Row, Following{f, of}})
			}
		}
	}
}

// FollowedField returns the name of a followed field, as it is used in keys of our own
// table.
func FollowedField(e *model.Entity, field string) string { return e.Name + "." + field }

// Attributes of the row in our own table that keeps a followed value. The row also has a
// position, and the table and the key of the followed row.
const (
	FollowedValue = book.Told
	FollowedGone  = "g" // the followed row is gone; the value, if kept, is its last
)

// Attributes of a member row: an entry in the list of the rows that follow a field.
const (
	MemberAttr  = "a"   // the attribute that follows
	MemberTable = "t"   // the follower's table
	MemberKey   = "key" // the follower's key, as a map
)

// MemberOf reads a member row: it returns the row that follows, and the name of its
// attribute. ok is false if the member row does not name them.
func MemberOf(m *model.Model, place value.Item) (row store.Ref, attr string, ok bool) {
	t := m.Table(place.Get(MemberTable).Text())
	if t == nil {
		return row, "", false
	}
	key, ok := t.KeyOf(place.Get(MemberKey).Item())
	return store.Ref{Table: t.Name, Key: key}, place.Get(MemberAttr).Text(), ok
}

// IsMember reports whether a member row belongs to this row and attribute.
func IsMember(m *model.Model, place value.Item, row store.Ref, attr string) bool {
	of, name, ok := MemberOf(m, place)
	return ok && name == attr && SameRow(of, row)
}

// differing returns the attributes of an image that differ from the other image, without
// derived attributes. It returns Missing if there is no image or nothing differs.
func differing(c *Change, image, other value.Item, e *model.Entity) value.Value {
	if image == nil {
		return value.Value{}
	}
	image, other = Own(e, image), Own(e, other)
	var attrs value.Item
	for _, a := range image {
		if !book.IsOurs(a.Name) && !IsDerived(e, a.Name) && !value.Equal(a.Value, other.Get(a.Name)) {
			attrs = append(attrs, a)
		}
	}
	if len(attrs) == 0 {
		return value.Value{}
	}
	return value.OfMap(attrs)
}

// IsDerived reports whether weir computes this attribute on rows of the entity. weir
// ignores what an application writes to such an attribute.
func IsDerived(e *model.Entity, name string) bool {
	if e == nil {
		return false
	}
	for _, t := range e.Values {
		if t.Attr == name && !t.Hidden {
			return true
		}
	}
	return false
}
