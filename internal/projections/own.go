package projections

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/value"
)

// The application may write a status attribute too (an attribute that moves in `steps`), and one that shows the latest of rows,
// if the entity declares it.
// If weir shows another value there, the row also keeps, in the attribute owntable.Own, the value that
// the application wrote and the one that weir shows instead: {status: {own: voting, shown:
// selected}}. While the attribute still has the shown value, the application's value is
// the one kept beside it. Otherwise the application has overwritten the attribute since.
// So the row itself always tells the application's values, even if a program restored
// the whole row from an old copy.

// OwnRow returns the row as the application wrote it, as far as such attributes go:
// they have the application's values, and the attribute owntable.Own is removed.
func OwnRow(e *model.Entity, row value.Item) value.Item {
	covered := changedAttributes(e)
	if len(covered) == 0 || row == nil {
		return row
	}
	var back []value.Attr
	gone := []string{owntable.Own}
	for _, name := range covered {
		own, shown, noted := owntable.CoveredNote(row, name)
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

// UncoveredRow returns a row as the application wrote it, whatever shows other values there: also a status that is retired, of
// which the row alone still tells.
func UncoveredRow(row value.Item) value.Item {
	notes := row.Get(owntable.Own).Item()
	if len(notes) == 0 {
		return row
	}
	for _, note := range notes {
		if own, shown, noted := owntable.CoveredNote(row, note.Name); noted && value.Equal(shown, row.Get(note.Name)) {
			row = row.With(value.Attr{Name: note.Name, Value: own})
		}
	}
	return row.With(value.Attr{Name: owntable.Own})
}

// WriteOver returns the application's row with the values in shown written over it, and with
// the attribute owntable.Own that records the covered values. An attribute that shown lacks
// stays as it is.
func WriteOver(own, shown value.Item) value.Item {
	var show, notes []value.Attr
	for _, over := range shown {
		is := own.Get(over.Name)
		if own == nil || over.Value.IsMissing() || value.Equal(is, over.Value) {
			continue
		}
		show = append(show, over)
		notes = append(notes, value.Attr{Name: over.Name, Value: owntable.CoveringNote(is, over.Value)})
	}
	if len(notes) > 0 {
		show = append(show, value.Attr{Name: owntable.Own, Value: value.OfMap(value.NewItem(notes...))})
	}
	return own.With(show...)
}

// KeepStatuses returns the application's new image of a row, with the statuses that the row shows now, also those that are retired. It
// keeps a shown value only where the application has not changed the value below it.
func KeepStatuses(e *model.Entity, own, now value.Item) value.Item {
	if e == nil || own == nil {
		return own
	}
	names, under := changedAttributes(e), UncoveredRow(now)
	names = append(names, seq.Map(now.Get(owntable.Own).Item(), func(note value.Attr) string { return note.Name })...)
	shown := now.Filter(func(name string) bool {
		return slices.Contains(names, name) && value.Equal(under.Get(name), own.Get(name))
	})
	return AlsoNoted(e, WriteOver(own, shown), now)
}

// AlsoNoted returns an image with those notes of a row that are of no status of the model: a retired status has
// covered a value, and its removal puts this back. A note stays while the image shows the covering value.
func AlsoNoted(e *model.Entity, image, row value.Item) value.Item {
	ours := changedAttributes(e)
	other := row.Get(owntable.Own).Item().Filter(func(name string) bool {
		_, shown, _ := owntable.CoveredNote(row, name)
		return !slices.Contains(ours, name) && value.Equal(shown, image.Get(name))
	})
	if len(other) == 0 {
		return image
	}
	return image.With(value.Attr{Name: owntable.Own, Value: value.OfMap(image.Get(owntable.Own).Item().With(other...))})
}

// changedAttributes returns the attributes of the entity's rows that show other values than the application wrote.
func changedAttributes(e *model.Entity) []string {
	if e == nil {
		return nil
	}
	return e.Covered()
}
