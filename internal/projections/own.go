package projections

import (
	"slices"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/value"
)

// An attribute that moves in steps is the application's too. Where weir shows
// something else there, the row keeps beside it, in the attribute book.Own, what
// the application wrote and what is shown instead: {status: {own: voting, shown:
// selected}}. As long as the attribute still is what was shown, the application's
// value is the one kept; otherwise the application has written over it since. So a
// row tells by itself what the application wrote, also where it was put back whole
// from a copy of long ago.
const (
	ownAttr   = "own" // absent: the application has no such attribute
	shownAttr = "shown"
)

// Own is the row as the application wrote it, as far as its steps go: their
// attributes have the application's values, and the note of what is shown instead
// is gone.
func Own(e *model.Entity, row value.Item) value.Item {
	if e == nil || len(e.Steps) == 0 || row == nil {
		return row
	}
	var back []value.Attr
	gone := []string{book.Own}
	for _, name := range moving(e) {
		note := row.Get(book.Own).Item().Get(name).Item()
		if note == nil || !value.Equal(note.Get(shownAttr), row.Get(name)) {
			continue
		}
		if own := note.Get(ownAttr); own.IsMissing() {
			gone = append(gone, name)
		} else {
			back = append(back, value.Attr{Name: name, Value: own})
		}
	}
	return row.With(back...).Filter(func(name string) bool { return !slices.Contains(gone, name) })
}

// Over is a row of the application's with what is to be shown over it, and the
// note of what is under it. Of what shown does not have, the row's own stands.
func Over(e *model.Entity, own, shown value.Item) value.Item {
	if e == nil || len(e.Steps) == 0 || own == nil {
		return own
	}
	var show, notes []value.Attr
	for _, name := range moving(e) {
		is, over := own.Get(name), shown.Get(name)
		if over.IsMissing() || value.Equal(is, over) {
			continue
		}
		show = append(show, value.Attr{Name: name, Value: over})
		note := value.NewItem(value.Attr{Name: ownAttr, Value: is}, value.Attr{Name: shownAttr, Value: over})
		notes = append(notes, value.Attr{Name: name, Value: value.OfMap(note)})
	}
	if len(notes) > 0 {
		show = append(show, value.Attr{Name: book.Own, Value: value.OfMap(value.NewItem(notes...))})
	}
	return own.With(show...)
}

// Keep is an image of the application's, showing over it what the row there shows
// now, where the application has not changed what is under that.
func Keep(e *model.Entity, own, now value.Item) value.Item {
	if e == nil || len(e.Steps) == 0 || own == nil {
		return own
	}
	under := Own(e, now)
	shown := now.Filter(func(name string) bool {
		return slices.Contains(moving(e), name) && value.Equal(under.Get(name), own.Get(name))
	})
	return Over(e, own, shown)
}

// moving are the attributes that the entity's steps write.
func moving(e *model.Entity) []string {
	if e == nil {
		return nil
	}
	var out []string
	for _, s := range e.Steps {
		out = append(out, s.Attributes()...)
	}
	return out
}
