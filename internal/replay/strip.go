package replay

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/value"
)

// stripped is a recorded image without bookkeeping and derived attributes. ours is
// true, and row is nil, for rows that only weir writes.
type stripped struct {
	row    value.Item
	entity *model.Entity
	ours   bool
}

// stripDerived removes derived attributes from an image. A flag given as a boolean becomes the
// string that the table holds.
func stripDerived(t *model.Table, image value.Item) stripped {
	if image == nil {
		return stripped{}
	}
	e := t.Classify(image)
	if e == nil {
		return stripped{row: image.Filter(func(name string) bool { return !isDerived(nil, name) })}
	}
	if e.Derived {
		return stripped{entity: e, ours: true}
	}
	image = projections.UncoveredRow(image).Filter(func(name string) bool { return !isDerived(e, name) })
	for _, a := range e.Attributes {
		if a.Type == model.TypeFlag && image.Get(a.Name).Kind() == value.Bool {
			image = image.With(value.Attr{Name: a.Name, Value: value.OfString(value.Scalar(image.Get(a.Name)))})
		}
	}
	return stripped{row: image, entity: e}
}

// isDerived reports whether an attribute is not for the recording to write. owntable.Moved
// is for the recording to write: nothing else in the history says that a migration made
// the row.
func isDerived(e *model.Entity, name string) bool {
	return owntable.IsOurs(name) && name != owntable.Moved || projections.IsDerived(e, name)
}

// dressRow makes the row to write from the image. now is the row in the store. The new row
// has its mark, and the attributes that the store has derived for the row; or, if nothing was
// counted yet, those of an uncounted row.
func (s stripped) dressRow(now value.Item, mark value.Value) value.Item {
	shows := append(carriedAttributes(s.entity, now), value.Attr{Name: owntable.SeenMark, Value: mark})
	return projections.KeepStatuses(s.entity, s.row, now).With(shows...)
}

// carriedAttributes is the attributes that a row goes on to show when it is written as a row of an entity: the
// attributes of the row as it is, now, that are not for the recording to write. A value that a row follows no more is not
// carried: a new value would be written on a row that is none of weir's.
func carriedAttributes(e *model.Entity, now []value.Attr) []value.Attr {
	var attrs []value.Attr
	counted := false
	for _, a := range now {
		if a.Name != owntable.SeenMark && a.Name != owntable.Own && isDerived(e, a.Name) && !marksOther(e, a.Name, now) {
			attrs = append(attrs, a)
			counted = counted || a.Name == owntable.Version
		}
	}
	if e != nil && (len(e.Values) > 0 || e.IsRecomputed()) && !counted {
		zero, _ := projections.PublishedValues(e.Values, nil)
		attrs = append(append(attrs, zero...), value.Attr{Name: owntable.Version, Value: value.OfInt(0)})
	}
	return attrs
}

// marksOther reports whether an attribute is weir's note of one that follows, and rows of the entity do not follow with it.
func marksOther(e *model.Entity, name string, now []value.Attr) bool {
	markOf := strings.TrimPrefix(owntable.FollowsAttr(""), owntable.FollowVersion(""))
	version := strings.TrimSuffix(name, markOf)
	is := func(f *model.Follow) bool { return owntable.FollowVersion(f.Attr) == version }
	of := func(a value.Attr) bool { return owntable.IsOurs(name) && a.Name == version+markOf }
	return slices.ContainsFunc(now, of) && (e == nil || !slices.ContainsFunc(e.Follows, is))
}
