package projections

import (
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// foldFollows: a row contributes the values of its fields that others follow. One that
// is gone, or a row of that entity no more, contributes that it is gone, with the last
// value, where a follower keeps that.
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

// followed is the value of a field as our table can hold it for those who follow it.
func (e *Effects) followed(of *model.Entity, field *model.Field, row value.Item, old bool) value.Value {
	v := field.Get(row)
	if !e.holds(FollowedField(of, field.Name)+" followed", field.Name, value.Item{{Value: v}}.Size(), old) {
		return value.Value{}
	}
	return v
}

// followed are the fields of an entity that are followed, each once.
func followed(e *model.Entity) (fields []*model.Field) {
	for _, f := range e.Follow {
		if !slices.ContainsFunc(fields, func(have *model.Field) bool { return have.Name == f.Field.Name }) {
			fields = append(fields, f.Field)
		}
	}
	return fields
}

// KeptLast reports whether a follower of the field keeps its last value.
func KeptLast(e *model.Entity, field *model.Field) bool {
	return slices.ContainsFunc(e.Follow, func(f *model.Follow) bool { return f.Keep && f.Field.Name == field.Name })
}

// KeepsLast reports whether rows of an entity keep the last value of what an attribute of
// theirs follows; list is the partition of that value.
func KeepsLast(m *model.Model, e *model.Entity, attr, list string) bool {
	return slices.ContainsFunc(m.Follows, func(f *model.Follow) bool {
		return f.Keep && f.Rule.Into == e && f.Attr == attr && strings.HasPrefix(list, book.FollowedOf(m.Name, FollowedField(f.Source, f.Field.Name)))
	})
}

// foldUnfollows: a row of history that is gone follows nothing any more. Of a copy the
// rule that makes it says so.
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

// FollowedField names what is followed, as the book's rows do.
func FollowedField(e *model.Entity, field string) string { return e.Name + "." + field }

// Attributes of a row that keeps a followed value, beside the position, and the table
// and the key of the row followed.
const (
	FollowedValue = book.Told
	FollowedGone  = "g" // there is no such row any more; the value is its last, where some keep that
)

// Attributes of a row that is a place on a list of those who follow a field.
const (
	MemberAttr  = "a"   // which attribute of the follower follows
	MemberTable = "t"   // the follower's table
	MemberKey   = "key" // and its key, as a map
)

// MemberOf is whose place on a list of those who follow a field a row is, and which
// attribute of it follows; ok is false where the row does not say it.
func MemberOf(m *model.Model, place value.Item) (row store.Ref, attr string, ok bool) {
	t := m.Table(place.Get(MemberTable).Text())
	if t == nil {
		return row, "", false
	}
	key, ok := t.KeyOf(place.Get(MemberKey).Item())
	return store.Ref{Table: t.Name, Key: key}, place.Get(MemberAttr).Text(), ok
}

// IsMember reports whether a place is that of a row's attribute.
func IsMember(m *model.Model, place value.Item, row store.Ref, attr string) bool {
	of, name, ok := MemberOf(m, place)
	return ok && name == attr && SameRow(of, row)
}

// differing is what an image has otherwise than the other one, without derived
// attributes; Missing where there is no image or nothing differs.
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

// IsDerived reports whether weir computes this attribute on rows of the entity,
// so that what an application writes there does not count.
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
