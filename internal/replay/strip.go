package replay

import (
	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/value"
)

// strip takes out what weir derives: bookkeeping and derived attributes, and the
// row itself (ours is true) when only weir writes such rows. A flag that came as a
// boolean becomes the string that the table holds.
func strip(t *model.Table, image value.Item) (_ value.Item, ours bool) {
	if image == nil {
		return nil, false
	}
	e := t.Classify(image)
	if e != nil && e.Derived {
		return nil, true
	}
	image = image.Filter(func(name string) bool { return !isDerived(e, name) })
	if e == nil {
		return image, false
	}
	for _, a := range e.Flags {
		if v := image.Get(a); v.Kind() == value.Bool {
			image = image.With(value.Attr{Name: a, Value: value.OfString(model.Scalar(v))})
		}
	}
	return image, false
}

func isDerived(e *model.Entity, name string) bool {
	return book.IsOurs(name) || projections.IsDerived(e, name)
}

// dress gives the image of a new row, or of one that becomes another entity, what
// it shows as long as nothing was counted; and any other row what the store has
// derived for it.
func dress(t *model.Table, image, now value.Item) value.Item {
	e := t.Classify(image)
	if e == nil {
		return image
	}
	kept := now.Filter(func(name string) bool { return name != book.SeenMark && isDerived(e, name) })
	if len(e.Values) > 0 && !kept.Has(book.Version) {
		zero, err := projections.Published(e, nil)
		if err != nil {
			return image
		}
		kept = append(zero, value.Attr{Name: book.Version, Value: value.OfInt(0)})
	}
	return image.With(kept...)
}
