package query

import (
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/value"
)

// shape is how rows of an entity look outside: plain rows without bookkeeping and
// without hidden values, flags as booleans, and no derived value missing.
type shape struct {
	hidden map[string]bool
	flags  []string
	empty  []value.Attr // derived attributes that show the value of no rows where they are absent
	unseen []value.Attr // those that do so only as long as nothing was shown on the row, because it may be impossible to show them
}

// newShape is the shape of an entity's rows; of sparse ones there are only keys.
// A tally that no row has counted for is shown as its value of no rows, so readers need not know
// that nothing was written yet.
func newShape(e *model.Entity, sparse bool) shape {
	s := shape{hidden: map[string]bool{}}
	for _, a := range e.Attributes {
		if a.Hidden {
			s.hidden[a.Name] = true
		}
		if a.Type == model.TypeFlag {
			s.flags = append(s.flags, a.Name)
		}
	}
	for _, t := range e.Values {
		switch {
		case sparse || t.Hidden || t.Kind.Empty.IsMissing():
		case t.Max > 0:
			s.unseen = append(s.unseen, value.Attr{Name: t.Attr, Value: t.Kind.Empty})
		default:
			s.empty = append(s.empty, value.Attr{Name: t.Attr, Value: t.Kind.Empty})
		}
	}
	return s
}

// outsideRow is the row as people see it.
// The row that it is given stays as it is. Flags are booleans outside, whatever the table has.
func (s *shape) outsideRow(row value.Item) value.Item {
	var changed []value.Attr
	for _, name := range s.flags {
		if v := row.Get(name); v.Kind() == value.String && (v.Text() == "true" || v.Text() == "false") {
			changed = append(changed, value.Attr{Name: name, Value: value.OfBool(v.Text() == "true")})
		}
	}
	empty := s.empty
	if row.Get(owntable.Version).Kind() != value.Number { // else an absent value cannot be shown
		empty = slices.Concat(empty, s.unseen)
	}
	changed = append(changed, seq.Where(empty, func(a value.Attr) bool { return !row.Has(a.Name) })...)
	return row.With(changed...).Filter(func(name string) bool { return !owntable.IsOurs(name) && !s.hidden[name] })
}

// readingAttributes are the attributes of an entity that read otherwise than they are
// stored.
func readingAttributes(e *model.Entity) []*model.Attribute {
	return seq.Where(e.Attributes, func(a *model.Attribute) bool { return a.Reading != nil })
}

// rowAsRead is the row as people read it now: words of an older application are those
// of today, and a value that time has overtaken says so. The stored value stays as it is.
func (s *step) rowAsRead(row value.Item, now time.Time) value.Item {
	if s.sparse || row == nil {
		return row
	}
	if k := s.kindOf(row); k != nil {
		return k.rowAsRead(row, now)
	}
	for _, a := range s.readings {
		v := row.Get(a.Name)
		if today, ok := a.Reading.Legacy[v.Text()]; ok && v.Kind() == value.String {
			row = row.With(value.Attr{Name: a.Name, Value: value.OfString(today)})
		}
		if f := a.Reading.After; f != nil && isPast(s.readTyped(f, row), now) {
			row = row.With(value.Attr{Name: a.Name, Value: value.OfString(a.Reading.Late)})
		}
	}
	return row
}
