package query

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/value"
)

// newKinds are the steps of each kind where a step reads rows of several.
func newKinds(s *model.Step, prior *step) []*step {
	if len(s.Also) == 0 {
		return nil
	}
	var out []*step
	for _, e := range append([]*model.Entity{s.Entity}, s.Also...) {
		one := *s
		one.Entity, one.Also = e, nil
		one.With, one.Any, one.Where = rebindEntity(e, s.With), rebindEntity(e, s.Any), slices.Clone(s.Where)
		one.Range = slices.Clone(s.Range)
		for i := range one.Range {
			one.Range[i].Field = e.Field(one.Range[i].Field.Name)
		}
		for i := range one.Where {
			one.Where[i].Field = e.Field(one.Where[i].Field.Name)
		}
		out = append(out, newStep(&one, prior))
	}
	return out
}

// rebindEntity fixes the same fields of another entity.
func rebindEntity(e *model.Entity, binds []model.Bind) []model.Bind {
	out := slices.Clone(binds)
	for i := range out {
		out[i].Field = e.Field(out[i].Field.Name)
	}
	return out
}

// outsideRow is the row as people see it.
func (s *step) outsideRow(row value.Item) value.Item {
	if k := s.kindOf(row); k != nil {
		return k.withKeyNames(row).With(value.Attr{Name: EntityMark, Value: value.OfString(k.Entity.Name)})
	}
	return s.withKeyNames(row)
}

// EntityMark is the attribute that says which entity a row is, in the answer to a query of
// several. No attribute of a model has such a name.
const EntityMark = owntable.EntityMark

// withKeyNames is the row as people see it, with the names that only its key holds.
func (s *step) withKeyNames(row value.Item) value.Item {
	out := s.shape.outsideRow(row)
	var more []value.Attr
	for _, f := range s.onlyInKeys {
		if out.Has(f.Name) {
			continue
		}
		if v := s.readField(f, row); !v.IsMissing() {
			more = append(more, value.Attr{Name: f.Name, Value: asDeclared(s.Entity.Attribute(f.Name), v)})
		}
	}
	return out.With(more...)
}

// asDeclared is a name's text in a key as a value of the attribute that the entity declares for it.
func asDeclared(a *model.Attribute, v value.Value) value.Value {
	switch {
	case a == nil || v.Kind() != value.String:
	case a.Type == model.TypeNumber:
		if n, err := value.ParseNumber(v.Text()); err == nil {
			return n
		}
	case (a.Type == model.TypeFlag || a.Type == model.TypeBoolean) && (v.Text() == "true" || v.Text() == "false"):
		return value.OfBool(v.Text() == "true")
	}
	return v
}

// keyNames are the names that answers may take from the key: those of the table's key and,
// of rows that hold only keys, of the key that the step reads by.
func (s *step) keyNames() (out []*model.Field) {
	keys := slices.Clone(s.primary)
	if s.sparse {
		keys = append(keys, s.partition, s.sort)
	}
	seen := map[string]bool{}
	for _, k := range keys {
		if k.attr.Name == "" {
			continue
		}
		for _, name := range k.names() {
			if !seen[name] && !s.hidden[name] && !(s.Entity.SetOf() != nil && name == model.Leaf) {
				out = append(out, s.Entity.Field(name))
			}
			seen[name] = true
		}
	}
	return out
}

// Select leaves the attributes with these names, in their order; all where there are no names.
func Select(row value.Item, names []string) value.Item {
	if len(names) == 0 {
		return row
	}
	var out value.Item
	for _, name := range names {
		if v := row.Get(name); !v.IsMissing() {
			out = append(out, value.Attr{Name: name, Value: v})
		}
	}
	return out
}

// kindOf is the step of the row's kind by the row's entity, nil where the step reads
// one kind.
func (s *step) kindOf(row value.Item) *step {
	return seq.Find(s.kinds, func(k *step) bool {
		return k.sparse && k.matchesKeys(row) || !k.sparse && k.Entity.Table.Classify(row) == k.Entity
	})
}
