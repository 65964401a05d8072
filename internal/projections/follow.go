package projections

import (
	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// foldFollows: a row contributes the values of its fields that others follow. A
// row that goes takes nothing away: what followed it keeps the last value.
func foldFollows(c *Change, e *Effects) {
	if c.Is == nil {
		return
	}
	for i, f := range c.Is.Follow {
		if followedBefore(c.Is.Follow[:i], f.Field.Name) {
			continue
		}
		v := f.Field.Get(c.New)
		if c.Was == c.Is && value.Equal(v, f.Field.Get(c.Old)) {
			continue
		}
		if !e.holds(FollowedField(c.Is, f.Field.Name)+" followed", f.Field.Name, value.Item{{Value: v}}.Size(), false) {
			v = value.Value{}
		}
		e.Spreads = append(e.Spreads, Spread{Source: c.Row, Entity: c.Is, Field: f.Field.Name, Value: v, Position: c.Position})
	}
}

func followedBefore(fs []*model.Follow, field string) bool {
	for _, f := range fs {
		if f.Field.Name == field {
			return true
		}
	}
	return false
}

// FollowedField names what is followed, as the book's rows do.
func FollowedField(e *model.Entity, field string) string { return e.Name + "." + field }

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
