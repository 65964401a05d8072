package query

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/value"
)

// shape is how rows of an entity look outside: plain rows without bookkeeping and
// without what is hidden, flags as booleans, and no derived value missing.
type shape struct {
	hidden map[string]bool
	flags  []string
	zeros  []string // derived attributes that are 0 where they are absent
	sums   []string // those that are 0 only as long as nothing was shown on the row, because it may be impossible to show them
}

// newShape is the shape of an entity's rows; of sparse ones there are only keys.
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
		case t.Kind.Exact || t.Kind.Max:
			s.sums = append(s.sums, t.Attr)
		default:
			s.zeros = append(s.zeros, t.Attr)
		}
	}
	return s
}

// outside is the row as people see it.
func (s *shape) outside(row value.Item) value.Item {
	var changed []value.Attr
	for _, name := range s.flags {
		if v := row.Get(name); v.Kind() == value.String && (v.Text() == "true" || v.Text() == "false") {
			changed = append(changed, value.Attr{Name: name, Value: value.OfBool(v.Text() == "true")})
		}
	}
	zeros := s.zeros
	if row.Get(owntable.Version).Kind() != value.Number { // else what is absent cannot be shown
		zeros = slices.Concat(zeros, s.sums)
	}
	for _, name := range zeros {
		if !row.Has(name) {
			changed = append(changed, value.Attr{Name: name, Value: value.OfInt(0)})
		}
	}
	return row.With(changed...).Filter(func(name string) bool { return !owntable.IsOurs(name) && !s.hidden[name] })
}
