package replay

import (
	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/value"
)

// stripped is a recorded image without what weir derives: bookkeeping and derived
// attributes. ours is true, and row nil, when only weir writes such rows.
type stripped struct {
	row    value.Item
	entity *model.Entity
	ours   bool
}

// strip strips an image. A flag that came as a boolean becomes the string that the
// table holds.
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

// isDerived says what is not the recording's to write. That a migration made a row
// is: history does not tell of it.
func isDerived(e *model.Entity, name string) bool {
	return book.IsOurs(name) && name != book.Moved || projections.IsDerived(e, name)
}

// dress makes of the image the row that is to stand where now stands: with its
// mark, and with what the store has derived for the row, or what it shows as long
// as nothing was counted.
func (s stripped) dress(now value.Item, m mark) value.Item {
	attrs := make([]value.Attr, 0, 8)
	attrs = append(attrs, value.Attr{Name: book.SeenMark, Value: m.value()})
	counted := false
	for _, a := range now {
		if a.Name != book.SeenMark && a.Name != book.Own && isDerived(s.entity, a.Name) {
			attrs = append(attrs, a)
			counted = counted || a.Name == book.Version
		}
	}
	if s.entity != nil && len(s.entity.Values)+len(s.entity.Steps) > 0 && !counted {
		zero, _ := projections.Published(s.entity, nil)
		attrs = append(append(attrs, zero...), value.Attr{Name: book.Version, Value: value.OfInt(0)})
	}
	return projections.Keep(s.entity, s.row, now).With(attrs...)
}
