package ingest

import (
	"weir/internal/model"
	"weir/internal/value"
)

// Fit is a row of the entity that no command wrote, with the values that its
// attributes hold: a boolean of a flag as its text, an array of a set as the set.
// The problems are what a command with these values would be refused for.
func Fit(e *model.Entity, row value.Item) (value.Item, []Problem) {
	var problems []Problem
	for _, a := range e.Attributes {
		v := row.Get(a.Name)
		if v.IsMissing() && a.Computed != nil {
			v = a.Computed.Value(row)
			row = row.With(value.Attr{Name: a.Name, Value: v})
		}
		if v.IsMissing() {
			if a.Required {
				problems = append(problems, Problem{pointer(a.Name), "is required"})
			}
			continue
		}
		if holds(a.Type, v.Kind()) {
			continue
		}
		fit, reason := convert(a, v)
		if reason != "" {
			problems = append(problems, Problem{pointer(a.Name), reason})
		} else if fit.Kind() != v.Kind() {
			row = row.With(value.Attr{Name: a.Name, Value: fit})
		}
	}
	return row, problems
}

// holds reports whether rows hold values of the type so, where commands give them
// otherwise.
func holds(t model.Type, k value.Kind) bool {
	switch t {
	case model.TypeBinary:
		return k == value.Binary
	case model.TypeStrings:
		return k == value.StringSet
	case model.TypeNumbers:
		return k == value.NumberSet
	}
	return false
}
