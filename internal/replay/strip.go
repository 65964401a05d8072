package replay

import (
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

// strip removes from an image what weir derives. A flag given as a boolean becomes the
// string that the table holds.
func strip(t *model.Table, image value.Item) stripped {
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
	image = projections.Own(e, image).Filter(func(name string) bool { return !isDerived(e, name) })
	for _, a := range e.Flags {
		if v := image.Get(a); v.Kind() == value.Bool {
			image = image.With(value.Attr{Name: a, Value: value.OfString(value.Scalar(v))})
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

// dress makes the row to write from the image. now is the row in the store. The new row
// has its mark m, and what the store has derived for the row; or, if nothing was
// counted yet, what an uncounted row shows.
func (s stripped) dress(now value.Item, m mark) value.Item {
	attrs := make([]value.Attr, 0, 8)
	attrs = append(attrs, value.Attr{Name: owntable.SeenMark, Value: m.value()})
	counted := false
	for _, a := range now {
		if a.Name != owntable.SeenMark && a.Name != owntable.Own && isDerived(s.entity, a.Name) {
			attrs = append(attrs, a)
			counted = counted || a.Name == owntable.Version
		}
	}
	if s.entity != nil && (len(s.entity.Values) > 0 || s.entity.IsRecomputed()) && !counted {
		zero, _ := projections.Published(s.entity.Values, nil)
		attrs = append(append(attrs, zero...), value.Attr{Name: owntable.Version, Value: value.OfInt(0)})
	}
	return projections.Keep(s.entity, s.row, now).With(attrs...)
}
