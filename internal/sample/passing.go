package sample

import (
	"slices"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/value"
)

// wheres are the conditions of derivations from rows of an entity, and of searches.
func (s *sample) wheres(e *model.Entity) (out [][]model.Test) {
	for _, src := range e.Sources {
		out = append(out, src.Where)
	}
	for _, rule := range e.Rules {
		out = append(out, rule.Where)
	}
	for _, x := range e.Search {
		out = append(out, x.Where)
	}
	for _, status := range s.model.Statuses {
		for _, stage := range status.Stages {
			if stage.Source == e {
				out = append(out, stage.Where)
			}
		}
	}
	return out
}

// pass changes rows so that each condition has one that passes it, as far as that can be: a row of which no other condition
// depends, or else the next one.
func (s *sample) pass(e *model.Entity, rows []ingest.Command) {
	var done [][]model.Test
	for _, where := range s.wheres(e) {
		if !anyPasses(rows, where) {
			for i := len(rows) - 1; i >= 0; i-- {
				was := rows[i].Item
				rows[i].Item = s.passing(e, was, where)
				old, next := keyText(e, was), keyText(e, rows[i].Item)
				if passes(rows[i].Item, where) && (old == next || !s.taken[next]) && !slices.ContainsFunc(done, func(w []model.Test) bool { return !anyPasses(rows, w) }) {
					delete(s.taken, old)
					s.taken[next] = true
					break
				}
				rows[i].Item = was
			}
		}
		if anyPasses(rows, where) {
			done = append(done, where)
		}
	}
}

func anyPasses(rows []ingest.Command, where []model.Test) bool {
	return slices.ContainsFunc(rows, func(c ingest.Command) bool { return passes(c.Item, where) })
}

func passes(item value.Item, where []model.Test) bool {
	return !slices.ContainsFunc(where, func(t model.Test) bool { return !t.Is.Holds(item.Get(t.Field.Name)) })
}

// passing is the item with other values for those of its fields that fail a condition.
func (s *sample) passing(e *model.Entity, item value.Item, where []model.Test) value.Item {
	for i := range where {
		t := &where[i]
		if t.Is.Holds(item.Get(t.Field.Name)) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(item), func(a value.Attr) bool { return a.Name == t.Field.Name })
		if t.Is.Holds(value.Value{}) {
			item = rest
			continue
		}
		if !slices.Contains(e.InputNames(), t.Field.Name) {
			continue
		}
		a := e.Attribute(t.Field.Name)
		for _, v := range append(near(t), s.value(e, t.Field.Name, 0, 0)) {
			if t.Is.Holds(v) && (a == nil || a.Outside(v) == "" && (len(a.Enum) == 0 || slices.Contains(a.Enum, v.Text()))) {
				item = value.NewItem(append(rest, value.Attr{Name: t.Field.Name, Value: v})...)
				break
			}
		}
	}
	return item
}

// near are the values that a test compares with, and some beside each.
func near(t *model.Test) (out []value.Value) {
	for _, v := range t.Constants() {
		out = append(out, v)
		switch v.Kind() {
		case value.Number:
			for _, by := range []string{"1", "-1", "0.5", "-0.5"} {
				if sum, err := value.AddNumbers(v, value.MustNumber(by)); err == nil {
					out = append(out, sum)
				}
			}
		case value.String:
			if at, err := time.Parse(time.RFC3339, v.Text()); err == nil {
				out = append(out, value.OfString(at.Add(time.Hour).Format(time.RFC3339)), value.OfString(at.Add(-time.Hour).Format(time.RFC3339)))
			}
			out = append(out, value.OfString(v.Text()+"1"), value.OfString("A"), value.OfString("z"))
		}
	}
	return out
}
