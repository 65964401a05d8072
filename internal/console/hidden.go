package console

import (
	"regexp"
	"slices"

	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/value"
)

// What a model hides is on no page. A key never has a hidden attribute: the model refuses that.
const hiddenText = "(hidden)"

// visible returns a row without the values that the model hides from readers. A row of no entity
// may have been of any.
// The row that it is given stays as it is; the result shares its values. A hidden attribute is
// there with hiddenText, so that the reader sees that the row has one.
func visible(m *model.Model, e *model.Entity, row value.Item) value.Item {
	if e == nil {
		return visibleToAll(m, row)
	}
	for _, a := range e.Attributes {
		if a.Hidden && row.Has(a.Name) {
			row = row.With(value.Attr{Name: a.Name, Value: value.OfString(hiddenText)})
		}
	}
	return row
}

// visibleToAll returns a row without the values that any entity of the model hides: a record
// that cannot be applied may be of any.
func visibleToAll(m *model.Model, row value.Item) value.Item {
	for _, e := range m.Entities {
		row = visible(m, e, row)
	}
	return row
}

// hidesSome reports whether a model hides anything. If it does, no page shows the accumulators of
// ledgers, nor what dead letters would have added: they may contain values of hidden attributes.
func hidesSome(m *model.Model) bool {
	hides := func(e *model.Entity) bool {
		return slices.ContainsFunc(e.Attributes, func(a *model.Attribute) bool { return a.Hidden })
	}
	return slices.ContainsFunc(m.Entities, hides) || slices.ContainsFunc(m.Tallies, func(t *model.Tally) bool {
		return t.Hidden && (t.Group == nil || t != t.Group.Rows) // the number of a group's rows is in the ledger only, and no secret
	})
}

// isSecret reports whether what a tally adds up is hidden: the model hides the tally, or an
// attribute that it reads.
func isSecret(t *model.Tally) bool {
	return t.Hidden || slices.ContainsFunc(t.Sources, func(s *model.Source) bool {
		return slices.ContainsFunc(s.Reads(), func(f *model.Field) bool {
			a := (*model.Attribute)(nil)
			if f != nil {
				a = s.Entity.Attribute(f.Attr)
			}
			return a != nil && a.Hidden
		})
	})
}

// isSecretOn reports whether what records add to an attribute of an entity's rows may have a hidden
// value in it. What a tally adds is that of its sources; of everything else it is not told.
func isSecretOn(m *model.Model, e *model.Entity, attr string) bool {
	for _, t := range e.Values {
		if t.Attr == attr {
			return isSecret(t)
		}
	}
	return hidesSome(m)
}

// quoted finds what a reason quotes: values are in quotes, and a number that none can hold is said
// with "about". A quote that was cut off goes to the end.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|\\?$)|about [^\s,]+`)

// reasonOf returns the reason of a dead letter as pages show it. Where the model hides anything, what
// a reason quotes is left out: a list has letters without their records, so nothing says of which
// attribute it is. The reason of a record that could not be used is left out whole, since a decoder
// may quote any part of it.
func reasonOf(m *model.Model, d *runner.Dead) string {
	switch {
	case !hidesSome(m), d.Kind == runner.DeadGap:
		return d.Reason
	case d.Kind == runner.DeadRecord:
		return hiddenText
	}
	return quoted.ReplaceAllLiteralString(d.Reason, hiddenText)
}
