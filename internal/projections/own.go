package projections

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/value"
)

// The application may write a status attribute too (an attribute that moves in `steps`).
// If weir shows another value there, the row also keeps, in the attribute owntable.Own, what
// the application wrote and what weir shows instead: {status: {own: voting, shown:
// selected}}. While the attribute still has the shown value, the application's value is
// the one kept beside it. Otherwise the application has overwritten the attribute since.
// So the row itself always tells what the application wrote, even if a program restored
// the whole row from an old copy.

// Own returns the row as the application wrote it, as far as its status attributes go:
// they have the application's values, and the attribute owntable.Own is removed.
func Own(e *model.Entity, row value.Item) value.Item {
	if e == nil || len(e.Statuses) == 0 || row == nil {
		return row
	}
	var back []value.Attr
	gone := []string{owntable.Own}
	for _, name := range moving(e) {
		own, shown, noted := owntable.Covered(row, name)
		if !noted || !value.Equal(shown, row.Get(name)) {
			continue
		}
		if own.IsMissing() {
			gone = append(gone, name)
		} else {
			back = append(back, value.Attr{Name: name, Value: own})
		}
	}
	return row.With(back...).Filter(func(name string) bool { return !slices.Contains(gone, name) })
}

// Over returns the application's row with the values in shown written over it, and with
// the attribute owntable.Own that records what they cover. An attribute that shown lacks
// stays as it is.
func Over(e *model.Entity, own, shown value.Item) value.Item {
	if e == nil || len(e.Statuses) == 0 || own == nil {
		return own
	}
	var show, notes []value.Attr
	for _, name := range moving(e) {
		is, over := own.Get(name), shown.Get(name)
		if over.IsMissing() || value.Equal(is, over) {
			continue
		}
		show = append(show, value.Attr{Name: name, Value: over})
		notes = append(notes, value.Attr{Name: name, Value: owntable.Covering(is, over)})
	}
	if len(notes) > 0 {
		show = append(show, value.Attr{Name: owntable.Own, Value: value.OfMap(value.NewItem(notes...))})
	}
	return own.With(show...)
}

// Keep returns the application's new image of a row, with the statuses that the row shows
// now. It keeps a shown value only where the application has not changed the value below
// it.
func Keep(e *model.Entity, own, now value.Item) value.Item {
	if e == nil || len(e.Statuses) == 0 || own == nil {
		return own
	}
	under := Own(e, now)
	shown := now.Filter(func(name string) bool {
		return slices.Contains(moving(e), name) && value.Equal(under.Get(name), own.Get(name))
	})
	return AlsoNoted(e, Over(e, own, shown), now)
}

// AlsoNoted returns an image with those notes of a row that are of no status of the model: a retired status has
// covered a value, and its removal puts this back. A note stays while the image shows what it covers the value with.
func AlsoNoted(e *model.Entity, image, row value.Item) value.Item {
	ours := moving(e)
	other := row.Get(owntable.Own).Item().Filter(func(name string) bool {
		_, shown, _ := owntable.Covered(row, name)
		return !slices.Contains(ours, name) && value.Equal(shown, image.Get(name))
	})
	if len(other) == 0 {
		return image
	}
	return image.With(value.Attr{Name: owntable.Own, Value: value.OfMap(image.Get(owntable.Own).Item().With(other...))})
}

// moving returns the attributes that the entity's steps write.
func moving(e *model.Entity) []string {
	if e == nil {
		return nil
	}
	var out []string
	for _, s := range e.Statuses {
		out = append(out, s.Attributes()...)
	}
	return out
}
