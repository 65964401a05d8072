package ingest

import (
	"weir/internal/model"
	"weir/internal/value"
)

// Fit converts a row of the entity that no command wrote into the form that rows have:
// a flag given as a boolean becomes its text, a set given as an array becomes a set.
// The problems are those for which a command with these values would be refused.
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
				problems = append(problems, Problem{Pointer(a.Name), "is required"})
			}
			continue
		}
		if holdsKind(a.Type, v.Kind()) {
			continue
		}
		fit, reason := convertValue(a, v)
		if reason != "" {
			problems = append(problems, Problem{Pointer(a.Name), reason})
		} else if fit.Kind() != v.Kind() {
			row = row.With(value.Attr{Name: a.Name, Value: fit})
		}
	}
	return row, problems
}

// holdsKind reports whether a value of this kind is one that rows hold for the type,
// although commands give the type in another form.
func holdsKind(t model.Type, k value.Kind) bool {
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
