package query

import (
	"time"

	"weir/internal/model"
	"weir/internal/value"
)

// readings are the attributes of an entity that read otherwise than they are
// stored.
func readings(e *model.Entity) []*model.Attribute {
	var out []*model.Attribute
	for _, a := range e.Attributes {
		if a.Reading != nil {
			out = append(out, a)
		}
	}
	return out
}

// reads is the row as people read it now: words of an older application are those
// of today, and what time has overtaken says so. What is stored stays as it is.
func (s *step) reads(row value.Item, now time.Time) value.Item {
	if s.sparse || row == nil {
		return row
	}
	if k := s.kindOf(row); k != nil {
		return k.reads(row, now)
	}
	for _, a := range s.readings {
		v := row.Get(a.Name)
		if today, ok := a.Reading.Legacy[v.Text()]; ok && v.Kind() == value.String {
			row = row.With(value.Attr{Name: a.Name, Value: value.OfString(today)})
		}
		if f := a.Reading.After; f != nil && past(s.typed(f, row), now) {
			row = row.With(value.Attr{Name: a.Name, Value: value.OfString(a.Reading.Late)})
		}
	}
	return row
}
